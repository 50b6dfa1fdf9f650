from __future__ import annotations

from markupsafe import Markup

from headstart.report.html_table import html_table


def test_cells_are_escaped_except_for_markup() -> None:
    assert html_table(["a<b"], [["<script>"], [Markup("{}<b>x</b>").format("&")], [0.5]]) == (
        "<table><thead><tr><th>a&lt;b</th></tr></thead>"
        "<tbody><tr><td>&lt;script&gt;</td></tr><tr><td>&amp;<b>x</b></td></tr><tr><td>0.5</td></tr></tbody></table>"
    )


def test_a_table_without_rows() -> None:
    assert html_table(["a", "b"], []) == "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody></tbody></table>"
