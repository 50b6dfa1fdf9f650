"""A sentence on one line of the terminal, with one of its words marked."""

from __future__ import annotations

import shutil
import sys

import typer

PIPED = (120, 24)
"""Columns and lines where there is no terminal."""


def sentence_line(sentence: str, start: int, end: int, *, indent: int) -> str:
    """sentence[start:end] is bold, or in brackets where colours are not shown. indent: columns that are taken."""
    from headstart.report.wording import around
    from headstart.tasks.tag_view import without_controls

    before, word, after = around(
        without_controls(sentence), start, end, shutil.get_terminal_size(PIPED).columns - indent - 2
    )
    marked = typer.style(word, bold=True) if sys.stdout.isatty() else f"[{word}]"
    return f"{before}{marked}{after}"
