"""What every claim promises, over all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headstart.claims.base import SCALES, PartBegan, Setting
from headstart.claims.registry import CLAIMS
from headstart.claims.reproduce import assumed_setting, run_claim
from headstart.claims.results import ClaimResult, result_from_json, result_to_json
from headstart.progress import result_of


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
def test_a_claim_gives_tables_findings_and_the_command(name: str, setting: Setting) -> None:
    claim = CLAIMS[name]
    assert claim.missing(setting) is None
    events = []
    job = run_claim(claim, setting, "the command")
    while True:
        try:
            events.append(next(job))
        except StopIteration as end:
            result: ClaimResult = end.value
            break
    begun = [event.title for event in events if isinstance(event, PartBegan)]
    assert begun == [part.title for part in claim.plan(setting)]
    assert result.command == "the command"
    assert result.outcome.tables
    assert result.outcome.findings
    assert all(finding.difference is not None or finding.sentence for finding in result.outcome.findings)
    assert all(picture.svg.startswith("<svg") for picture in result.outcome.pictures)
    assert result_from_json(result_to_json(result)) == result


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_again_does_no_work_twice(name: str, setting: Setting) -> None:
    first = result_of(CLAIMS[name].run(setting))
    files = {
        path: path.stat().st_mtime_ns
        for path in setting.runs.rglob("*")
        if path.name in ("weights.safetensors",) or path.parent.name == "cells"
    }
    assert result_of(CLAIMS[name].run(setting)) == first
    assert files == {path: path.stat().st_mtime_ns for path in files}


def test_claims_are_numbered_in_the_order_of_the_page() -> None:
    numbers = [claim.number for claim in CLAIMS.values()]
    assert numbers == sorted(set(numbers))
    assert all(name == claim.name for name, claim in CLAIMS.items())


@pytest.mark.parametrize("name", CLAIMS)
def test_without_its_data_a_claim_says_which_file_would_serve(name: str, setting: Setting) -> None:
    claim = CLAIMS[name]
    bare = replace(setting, data=replace(setting.data, tasks={}, text=None))
    why = claim.missing(bare)
    if claim.needs or claim.any_of:
        assert why is not None
        assert why.startswith(f"{name}: there are no ")
        assert "put " in why
