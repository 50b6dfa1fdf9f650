"""What every claim promises, over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headstart.claims.base import PartBegan, Setting
from headstart.claims.registry import CLAIMS
from headstart.claims.reproduce import assumed_setting, result_of_claim
from headstart.claims.results import ClaimResult, result_from_json, result_to_json
from headstart.claims.scales import SCALES
from headstart.progress import result_of

Tried = Callable[[str], tuple[list[str], ClaimResult]]


@pytest.fixture(scope="module")
def tried(setting: Setting) -> Tried:
    """A claim's parts as they began, and its result; each claim is run once for all tests."""
    kept: dict[str, tuple[list[str], ClaimResult]] = {}

    def run(name: str) -> tuple[list[str], ClaimResult]:
        if name not in kept:
            begun = []
            job = CLAIMS[name].run(setting)
            while True:
                try:
                    event = next(job)
                except StopIteration as end:
                    kept[name] = begun, result_of_claim(CLAIMS[name], setting, end.value, "the command", 1.0)
                    break
                if isinstance(event, PartBegan):
                    begun.append(event.title)
        return kept[name]

    return run


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_says_what_it_costs_before_it_starts(name: str) -> None:
    for scale in SCALES.values():
        parts = CLAIMS[name].plan(assumed_setting(scale))
        assert parts
        assert all(part.minutes > 0 and part.title for part in parts)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_quick_claim_is_meant_to_take_less_than_ten_minutes(name: str) -> None:
    assert sum(part.minutes for part in CLAIMS[name].plan(assumed_setting(SCALES["quick"]))) < 10


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_gives_tables_findings_and_the_command(name: str, setting: Setting, tried: Tried) -> None:
    claim = CLAIMS[name]
    assert claim.missing(setting) is None
    begun, result = tried(name)
    assert begun == [part.title for part in claim.plan(setting)]
    assert result.command == "the command"
    assert result.outcome.tables
    assert result.outcome.findings
    assert all(finding.difference is not None for finding in result.outcome.findings)
    assert all(picture.svg.startswith("<svg") for picture in result.outcome.pictures)
    assert result_from_json(result_to_json(result)) == result


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_again_gives_the_same_and_does_no_work_twice(name: str, setting: Setting, tried: Tried) -> None:
    _, result = tried(name)
    before = {path: path.stat().st_mtime_ns for path in setting.runs.rglob("*") if path.is_file()}
    assert result_of(CLAIMS[name].run(setting)) == result.outcome
    assert {path: path.stat().st_mtime_ns for path in setting.runs.rglob("*") if path.is_file()} == before


def test_claims_are_numbered_in_the_order_of_the_page() -> None:
    numbers = [claim.number for claim in CLAIMS.values()]
    assert numbers == sorted(set(numbers))
    assert all(name == claim.name for name, claim in CLAIMS.items())


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_needs_only_data_that_it_says_it_uses(name: str) -> None:
    claim = CLAIMS[name]
    assert {*claim.needs, *claim.any_of} <= {*claim.uses}


@pytest.mark.parametrize("name", CLAIMS)
def test_without_its_data_a_claim_says_which_file_would_serve(name: str, setting: Setting) -> None:
    claim = CLAIMS[name]
    bare = replace(setting, data=replace(setting.data, tasks={}, text=None))
    why = claim.missing(bare)
    if claim.needs or claim.any_of:
        assert why is not None
        assert why.startswith(f"{name} needs ")
        assert "put " in why


@pytest.mark.parametrize("name", CLAIMS)
def test_without_its_encoders_a_claim_says_which_option_gives_one(name: str, setting: Setting) -> None:
    claim = CLAIMS[name]
    why = claim.missing(replace(setting, encoders={}))
    assert (why is not None) == bool(claim.encoders)
    assert why is None or f"give one with --{claim.encoders[0]} SRC" in why
