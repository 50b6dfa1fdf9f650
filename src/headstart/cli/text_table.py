"""Tables of plain text: columns as wide as their widest cell, the first to the left and numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from headstart.tasks.tag_view import without_controls

BETWEEN = "  "


def text_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = True) -> list[str]:
    """right: the cells after the first, which are numbers, end at one place; otherwise they begin at one."""
    lines = [[without_controls(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return [
        BETWEEN.join(
            fitted(cell, width, right=right and place > 0)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    ]


def fitted(cell: str, width: int, *, right: bool) -> str:
    """Wide characters, such as Chinese ones, take two places of a terminal."""
    room = " " * (width - cell_len(cell))
    return f"{room}{cell}" if right else f"{cell}{room}"
