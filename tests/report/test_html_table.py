from __future__ import annotations

from headstart.report.html_table import html_table


def test_every_cell_is_escaped() -> None:
    assert html_table(["<S>", ""], [("a & b", 0.5)]) == (
        "<table><thead><tr><th>&lt;S&gt;</th><th></th></tr></thead>"
        "<tbody><tr><td>a &amp; b</td><td>0.5</td></tr></tbody></table>"
    )
