from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headstart.claims.page import finding_text, page_text, verdicts_text, write_page
from headstart.claims.results import ClaimResult, ClaimTable, Finding, Measured, Outcome, Picture, found


@pytest.fixture
def result() -> ClaimResult:
    table = ClaimTable("accuracy in %", ["", "50 labelled"], [["a | b", Measured(0.5, (0.4, 0.6), "%")], ["c", None]])
    findings = [
        found("ELMo above words", Measured(0.031, (0.009, 0.052), "points"), p=0.004),
        found("perplexity below", Measured(-12.4, (-20.0, 1.0)), "below"),
    ]
    outcome = Outcome([table], findings, [Picture("curve", "a curve", "<svg>1</svg>")], ["Mind this."])
    return ClaimResult(
        name="slug", number=3, title="It is so", source="Somebody 2018", command="headstart reproduce slug", key="k",
        seconds=75.0, threads=2, scale="full", headstart="0.1.0", outcome=outcome,
    )  # fmt: skip


def test_the_page_has_sentence_verdict_table_picture_command_and_cost(result: ClaimResult) -> None:
    page = page_text([result], "claims")
    assert "| 3 | [It is so](#slug) | holds 1, undecided 1 | 1 min 15 s |" in page
    assert "Claimed by Somebody 2018. Here: **holds 1, undecided 1**." in page
    assert "- **holds**: ELMo above words: +3.1 points (+0.9 to +5.2), p = 0.004" in page
    assert "- **undecided**: perplexity below: -12.4 (-20 to 1)" in page
    assert "| a \\| b | 50.0 (40.0 to 60.0) |\n| c |  |" in page
    assert "![a curve](claims/curve.svg)" in page
    assert "Mind this." in page
    assert "```\nheadstart reproduce slug\n```" in page
    assert "1 min 15 s on 2 threads" in page


def test_a_claim_whose_findings_agree_has_one_word(result: ClaimResult) -> None:
    agreed = replace(result.outcome, findings=[Finding("a", "fails"), Finding("b", "fails")])
    assert verdicts_text(agreed) == "fails"
    assert finding_text(agreed.findings[0]) == "**fails**: a"


def test_pictures_lie_in_a_folder_of_the_name_of_the_page(result: ClaimResult, tmp_path: Path) -> None:
    write_page(tmp_path / "docs" / "claims.md", [result])
    assert (tmp_path / "docs" / "claims" / "curve.svg").read_text() == "<svg>1</svg>"
    assert "(claims/curve.svg)" in (tmp_path / "docs" / "claims.md").read_text()
