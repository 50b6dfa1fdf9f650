"""What to say when the system gives no more memory: how much was asked for, and what to lower."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

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
"""Bytes of address space that torch, scipy and scikit-learn take once they are loaded, rounded. With fewer, some of
them end the process without an error that Python sees."""
WORKING = {"pretrain": 400_000_000}
"""The same of what a command does: the tokenizers library ends the process, too."""
STATM = Path("/proc/self/statm")
WITHOUT_THEM = ("--help", "--version")
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
    """Refuse a command that the limit of the address space leaves no room for. arguments: of the command line."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    command = arguments[0] if arguments else "--help"
    if limit == resource.RLIM_INFINITY or command in WITHOUT_THEM or "--help" in arguments:
        return
    left = limit - address_space()
    needed = (0 if "torch" in sys.modules else LIBRARIES) + WORKING.get(command, 0)
    if left < needed:
        raise ConfigError(
            f"There is not enough memory: this process may take {left / 1e6:,.0f} MB more of address space, and "
            f"`headstart {command}` needs about {needed / 1e6:,.0f} MB with its libraries. Raise the limit (ulimit -v)."
        )


def address_space() -> int:
    """Bytes that this process has mapped; 0 where the system does not tell."""
    try:
        return int(STATM.read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


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
