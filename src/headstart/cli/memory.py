"""What to say when the system gives no more memory: how much was asked for, and what to lower."""

from __future__ import annotations

import re
import resource
from collections.abc import Sequence

from headstart.errors import ConfigError

SPOKEN = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "failed to map segment",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
    "can't start new thread",
)
"""How torch, oneDNN in it, and the loader of libraries say it; in Python and NumPy it is a MemoryError."""
LIBRARIES = 1_000_000_000
"""Bytes of address space that a process takes once torch, scipy and scikit-learn are loaded, rounded. With fewer, some
of them end the process without an error that Python sees."""
WITHOUT_THEM = ("get", "--help", "--version")
BYTES = re.compile(r"tried to allocate (\d+) bytes|Unable to allocate ([\d.]+ [KMGTPE]i?B)")
LOWER = {
    "pretrain": "a smaller --size, or a smaller --set training.batch",
    "transfer": "fewer --labels, a smaller --set fitting.batch, or --how frozen",
    "compare": "fewer --labels, fewer --rows, or a smaller --set transfer.fitting.batch",
    "predict": "a file in parts",
    "evaluate": "a file in parts",
    "encode": "shorter lines, or a smaller model",
}
ELSE = "a smaller file or model"


def check_limit(arguments: Sequence[str]) -> None:
    """Refuse a command whose libraries cannot be loaded within the limit of the address space."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    is_light = not arguments or arguments[0] in WITHOUT_THEM or "--help" in arguments
    if limit != resource.RLIM_INFINITY and limit < LIBRARIES and not is_light:
        raise ConfigError(
            f"There is not enough memory: this process may take {limit / 1e6:,.0f} MB of address space, and its "
            f"libraries alone need about {LIBRARIES / 1e6:,.0f} MB. Raise the limit (ulimit -v)."
        )


def out_of_memory(error: BaseException, arguments: Sequence[str]) -> str | None:
    """The sentence for an error that says so, else None. arguments: of the command line."""
    said = str(error)
    if not isinstance(error, MemoryError) and not any(words in said.lower() for words in SPOKEN):
        return None
    found = BYTES.search(said)
    asked = ""
    if found is not None:
        asked = f": {int(found[1]) / 1e6:,.0f} MB more were needed" if found[1] else f": {found[2]} more were needed"
    lower = LOWER.get(arguments[0] if arguments else "", ELSE)
    return f"There is not enough memory{asked}. Close other programs, or give {lower}."
