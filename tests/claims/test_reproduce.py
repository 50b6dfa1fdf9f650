"""The verb as a whole: results kept, a page written, nothing done twice, what is missing told in a sentence."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headstart.claims import scales
from headstart.claims.base import PartBegan
from headstart.claims.encoders import EncoderRole
from headstart.claims.registry import CLAIMS
from headstart.claims.reproduce import ClaimBegan, ClaimDone, ClaimSkipped, reproduce
from headstart.cli.main import app
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.progress import Notice, result_of

CHEAP = "senses"
"""A claim that needs no data and takes a second."""


@pytest.fixture
def arguments(
    data_folder: Path, sources: dict[EncoderRole, str], tmp_path: Path, tiny_scale: scales.Scale
) -> dict[str, Any]:
    return {
        "data": data_folder,
        "encoders": {**sources, "published": "off"},
        "scale": tiny_scale,
        "out": tmp_path / "out",
        "cache": tmp_path / "cache",
    }


def test_a_claim_leaves_its_result_its_pictures_and_a_page(arguments: dict[str, Any], tmp_path: Path) -> None:
    events = list(reproduce([CHEAP], **arguments))
    began, *_, done = (event for event in events if isinstance(event, ClaimBegan | ClaimDone))
    assert isinstance(began, ClaimBegan)
    assert sum(part.minutes for part in began.parts) > 0
    assert isinstance(done, ClaimDone)
    assert not done.reused
    result = json.loads((tmp_path / "out" / CHEAP / "result.json").read_text())
    assert result["name"] == CHEAP
    assert re.fullmatch(
        rf"headstart reproduce {CHEAP} --data DATA --static static --elmo elmo --bert bert --published off --out OUT",
        result["command"],
    )
    for picture in done.result.outcome.pictures:
        assert (tmp_path / "out" / CHEAP / f"{picture.name}.svg").read_text() == picture.svg
    page = (tmp_path / "out" / "claims.md").read_text()
    assert done.result.title in page
    assert str(tmp_path) not in page


def test_a_claim_that_was_tested_is_not_tested_again_unless_something_changed(arguments: dict[str, Any]) -> None:
    result_of(reproduce([CHEAP], **arguments))
    events = list(reproduce([CHEAP], **arguments))
    assert not any(isinstance(event, ClaimBegan) for event in events)
    assert isinstance(events[-1], ClaimDone)
    assert events[-1].reused
    changed = {**arguments["encoders"], "bert": "off"}
    again = list(reproduce([CHEAP], **{**arguments, "encoders": changed}))
    assert isinstance(again[-1], ClaimDone)
    assert not again[-1].reused


def test_time_counts_over_all_processes_that_worked_on_a_claim(arguments: dict[str, Any], tmp_path: Path) -> None:
    seconds = tmp_path / "out" / CHEAP / "seconds"
    events = reproduce([CHEAP], **arguments)
    while not isinstance(next(events), PartBegan):
        pass
    events.close()
    assert float(seconds.read_text()) > 0
    seconds.write_text("1000.0")
    (result,) = result_of(reproduce([CHEAP], **arguments))
    assert 1000 < result.seconds < 1100
    assert not seconds.exists()


def test_the_page_has_every_result_of_the_folder_in_order(arguments: dict[str, Any], tmp_path: Path) -> None:
    result_of(reproduce([CHEAP], **arguments))
    result_of(reproduce(["in-domain"], **arguments, page=tmp_path / "docs" / "claims.md"))
    page = (tmp_path / "docs" / "claims.md").read_text()
    assert re.findall(r'<a id="([^"]+)">', page) == ["in-domain", CHEAP]


def test_one_claim_has_the_page_to_itself_and_only_its_data_made_ready(
    arguments: dict[str, Any], tmp_path: Path
) -> None:
    (result,) = result_of(reproduce(["six-tasks"], **arguments))
    cut = {path.name.rpartition("-")[0] for path in (tmp_path / "out").glob("data-*/*")}
    assert cut == set(CLAIMS["six-tasks"].uses)
    page = (tmp_path / "out" / "claims.md").read_text()
    assert page.startswith(f"# {result.title}\n")
    assert "The table of six" in page
    assert "(claims/six-tasks-elmo.svg)" in page


def test_what_cannot_be_tested_is_skipped_in_a_sentence(arguments: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(arguments["data"] / "sst", tmp_path / "some" / "sst")
    events = list(reproduce(["masking"], **{**arguments, "data": tmp_path / "some"}))
    assert isinstance(events[-1], ClaimSkipped)
    assert events[-1].why == (
        "masking needs unlabelled text: put lm_imdb_unsup/train.txt.gz and lm_imdb_unsup/valid.txt.gz into the "
        "folder given as --data."
    )


@pytest.mark.parametrize(
    ("changed", "error", "problem"),
    [
        ({"claims": ["sense"]}, ConfigError, "No claim called 'sense'. Did you mean 'senses'?"),
        ({"scale": "slow"}, ConfigError, "No scale called 'slow'"),
        ({"data": Path("nowhere")}, DataError, "nowhere: there is no such folder"),
        ({"encoders": {"static": "nothing"}}, CheckpointError, "nothing: there is no such file or folder"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    changed: dict[str, Any], error: type[Exception], problem: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(error, match=re.escape(problem)):
        result_of(reproduce(changed.pop("claims", [CHEAP]), **{**arguments, **changed}))


def test_an_encoder_of_another_kind_cannot_play_a_part(
    arguments: dict[str, Any], sources: dict[EncoderRole, str]
) -> None:
    with pytest.raises(ConfigError, match=r"--elmo: .* holds bert; wanted an encoder of kind elmo, or 'off'"):
        result_of(reproduce([CHEAP], **{**arguments, "encoders": {"elmo": sources["bert"], "static": "off"}}))


def test_without_any_argument_the_models_of_the_package_meet_reviews_that_are_downloaded(
    house: dict[str, Path], cache_of_reviews: Path, tiny_scale: scales.Scale, tmp_path: Path
) -> None:
    wanted = ["in-domain", CHEAP, "probes"]
    events = list(reproduce(wanted, out=tmp_path / "out", scale=tiny_scale, cache=cache_of_reviews))
    assert any(isinstance(event, Notice) and event.text.endswith("Nobody plays 'published'.") for event in events)
    done = {event.result.name: event.result for event in events if isinstance(event, ClaimDone)}
    assert list(done) == wanted
    assert done["in-domain"].command == "headstart reproduce in-domain --out OUT"
    assert [table.title for table in done["in-domain"].outcome.tables] == ["sentiment, accuracy in %"]
    assert {row[0] for row in done["in-domain"].outcome.tables[0].rows} == {
        "ELMo, frozen",
        "ELMo after the text of the task, frozen",
        "BERT, frozen",
        "BERT after the text of the task, frozen",
    }


def test_a_claim_that_uses_no_data_downloads_none(house: dict[str, Path], tmp_path: Path) -> None:
    events = reproduce([CHEAP], out=tmp_path / "out", encoders={"published": "off"}, cache=tmp_path / "home")
    assert [result.name for result in result_of(events)] == [CHEAP]
    assert not (tmp_path / "home" / "texts").exists()


def test_data_that_cannot_be_downloaded_are_asked_for_without_downloading_others(
    house: dict[str, Path], tmp_path: Path
) -> None:
    *_, skipped = reproduce(["six-tasks"], out=tmp_path / "out", encoders={"published": "off"}, cache=tmp_path / "home")
    assert isinstance(skipped, ClaimSkipped)
    assert "put squad/squad1.1-train.json.gz and squad/squad1.1-dev.json.gz into the folder" in skipped.why
    assert not (tmp_path / "home" / "texts").exists()


def test_the_command_shows_costs_and_verdicts(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(scales.SCALES, "quick", arguments["scale"])
    options = [f"--{role}={source}" for role, source in arguments["encoders"].items()]
    command = ["reproduce", CHEAP, "--quick", f"--data={arguments['data']}", f"--out={tmp_path / 'out'}", *options]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    assert "9. Contextual vectors tell the senses of a word apart" in done.stderr
    assert re.search(r"^   (holds|fails|undecided): ", done.stdout, re.MULTILINE)
    assert done.stdout.splitlines()[-1] == str(tmp_path / "out" / "claims.md")


def test_the_list_names_every_claim_with_its_cost() -> None:
    done = CliRunner().invoke(app, ["reproduce", "--list", "--quick"], catch_exceptions=False)
    assert len(done.stdout.splitlines()) == len(CLAIMS)
    assert re.match(r"1\. generations \(about \d+ min\): ", done.stdout)
