"""What to say when standard output or temporary files cannot be written, as on a full disk."""

from __future__ import annotations

import errno
import os
import tempfile

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
STANDARD_OUTPUT = 1
TMPDIR = "The environment variable TMPDIR chooses the folder of temporary files."


def refused_file(error: BaseException) -> str | None:
    """The sentence for an error that says so, else None. What is still to be written goes nowhere."""
    if not isinstance(error, OSError):
        return None
    if error.errno in NO_ROOM:
        end_of_output()
        place = error.filename or "Standard output, or a temporary file,"
        return f"{place} cannot be written ({error.strerror}). Make room there, or choose another place. {TMPDIR}"
    if is_of_temporary_files(error):
        return f"Temporary files cannot be written ({error.strerror or error}). {TMPDIR}"
    return None


def end_of_output() -> None:
    """Otherwise Python tries again as it ends, and exits with a code of its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_OUTPUT)
    os.close(nowhere)


def is_of_temporary_files(error: OSError) -> bool:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # there is none that can be written
        return error.filename is None
    return str(error.filename).startswith(os.path.join(folder, tempfile.gettempprefix()))
