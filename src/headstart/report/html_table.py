"""A small table as HTML, for objects that show themselves in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import escape


def html_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Every cell is escaped, except for `Markup`."""
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
