"""What to say when standard output takes no more, as on a full disk."""

from __future__ import annotations

import errno
import os

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
STANDARD_OUTPUT = 1


def output_refused(error: BaseException) -> str | None:
    """The sentence for an error that says so, else None. What is still to be written goes nowhere."""
    if not isinstance(error, OSError) or error.errno not in NO_ROOM:
        return None
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_OUTPUT)  # otherwise Python tries again as it ends, and exits with a code of its own
    os.close(nowhere)
    place = error.filename or "Standard output, or a temporary file,"
    return f"{place} cannot be written ({error.strerror}). Make room there, or choose another place."
