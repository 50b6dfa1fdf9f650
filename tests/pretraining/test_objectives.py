"""The table of objectives, and how a run directory is recognised as one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headstart.config import resolve, settings_of
from headstart.errors import CheckpointError
from headstart.pretraining.objectives import OBJECTIVES, recorded
from headstart.training.run import RunDirectory

DATA = {"sources": ["text.txt"]}


def test_the_table_is_keyed_by_name() -> None:
    assert list(OBJECTIVES) == ["skipgram", "cbow", "glove", "elmo", "bert"]
    assert all(name == pretraining.name for name, pretraining in OBJECTIVES.items())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_run_is_of_the_objective_that_wrote_it(name: str, tmp_path: Path) -> None:
    pretraining = OBJECTIVES[name]
    settings = settings_of(resolve(pretraining.config, pretraining.defaults(None, {})))
    run = RunDirectory.create(tmp_path / "run")
    run.write_config({**settings, "data": DATA})
    found = recorded(run)
    assert found.pretraining is pretraining
    assert (found.settings, found.data) == (settings, DATA)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"kind": "bert"}, r"has no \[data\] sources"),
        ({"data": DATA}, r"has no \[data\] sources"),
        ({"kind": "gpt", "data": DATA}, "kind 'gpt' is of none of the objectives skipgram, cbow, glove, elmo, bert"),
        ({"kind": "static", "objective": {"method": "lsa"}, "data": DATA}, "is of none of the objectives"),
    ],
)
def test_what_no_objective_wrote_is_refused(table: dict[str, object], says: str, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run")
    run.write_config(table)
    with pytest.raises(CheckpointError, match=says):
        recorded(run)
