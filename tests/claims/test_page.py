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
        seconds=75.0, machine="A processor, 2 cores", threads=2, scale="full", headstart="0.1.0", outcome=outcome,
    )  # fmt: skip


def test_the_page_has_sentence_verdict_table_picture_command_and_cost(result: ClaimResult) -> None:
    page = page_text([result, replace(result, name="other", number=4)], "claims")
    assert page.startswith("# What the field claims of these models")
    assert '## <a id="slug"></a>3. It is so' in page
    assert "| 3 | [It is so](#slug) | holds 1, undecided 1 | 1 min 15 s |" in page
    assert "Claimed by Somebody 2018. Here: **holds 1, undecided 1**." in page
    assert "| **holds** | ELMo above words | +3.1 points (+0.9 to +5.2) | 0.004 |" in page
    assert "| **undecided** | perplexity below | -12.4 (-20 to 1) |  |" in page
    assert "| a \\| b | 50.0 (40.0 to 60.0) |\n| c |  |" in page
    assert "![a curve](claims/curve.svg)" in page
    assert "- Mind this." in page
    assert "```\nheadstart reproduce slug\n```" in page
    assert "1 min 15 s on A processor, 2 cores (2 threads), headstart 0.1.0." in page


def test_a_page_of_one_claim_has_its_title_and_no_summary(result: ClaimResult) -> None:
    page = page_text([result], "claims")
    assert page.startswith("# It is so\n")
    assert "*holds* if the 95 %" in page
    assert "[It is so]" not in page
    assert '<a id="' not in page
    table, finding = page.index("| a \\| b |"), page.index("| **holds** | ELMo above words |")
    assert table < finding


def test_what_fails_is_said_before_any_table(result: ClaimResult) -> None:
    failed = [Finding("ELMo above words", "fails"), Finding("a", "holds"), Finding("BERT above ELMo", "fails")]
    page = page_text([replace(result, outcome=replace(result.outcome, findings=failed))], "claims")
    said = page.index("Does not hold here: ELMo above words; BERT above ELMo.")
    assert said < page.index("\n|")
    assert "Does not hold here" not in page_text([result], "claims")


def test_a_claim_whose_findings_agree_has_one_word(result: ClaimResult) -> None:
    agreed = replace(result.outcome, findings=[Finding("a", "fails"), Finding("b", "fails")])
    assert verdicts_text(agreed) == "fails"
    assert finding_text(agreed.findings[0]) == "fails: a"


def test_pictures_lie_in_a_folder_of_the_name_of_the_page(result: ClaimResult, tmp_path: Path) -> None:
    write_page(tmp_path / "docs" / "claims.md", [result])
    assert (tmp_path / "docs" / "claims" / "curve.svg").read_text() == "<svg>1</svg>"
    assert "(claims/curve.svg)" in (tmp_path / "docs" / "claims.md").read_text()
