"""What to say when the system gives no more memory: how much was asked for, and what to lower."""

from __future__ import annotations

import re
from collections.abc import Sequence

SPOKEN = ("can't allocate memory", "cannot allocate memory", "not enough memory", "failed to map segment", "bad_alloc")
"""How torch and the loader of libraries say it; in Python and NumPy it is a MemoryError."""
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
