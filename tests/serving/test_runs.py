from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from tests.serving.conftest import Running, serving

from headstart.errors import DataError
from headstart.serving.models import Models
from headstart.serving.runs import MOST_POINTS, Shelf, curve_of, thinned

STEPS = [{"step": n, "loss": 2.0 / n} for n in range(1, 6)]


def write_run(folder: Path, lines: list[object], rest: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('kind = "elmo"\n')
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + rest)
    return folder


def test_a_curve_is_what_the_log_says(tmp_path: Path) -> None:
    lines = [{"step": 0, "evaluation": {"perplexity": 9.0, "note": "x"}}, *STEPS]
    lines += [{"step": 5, "evaluation": {"perplexity": 4}}, {"final": {"perplexity": 4.0}}]
    found = curve_of(write_run(tmp_path / "run", lines) / "log.jsonl")
    assert found.loss == [(n, 2.0 / n) for n in range(1, 6)]
    assert found.evaluations == {"perplexity": [(0, 9.0), (5, 4.0)]}
    assert found.finished


def test_a_log_that_is_being_written_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    odd = ["no object", [1], {"step": 5, "evaluation": 3}]
    folder = write_run(tmp_path / "run", [*STEPS, *odd], rest="[" * 100_000 + '\n{"step": 6, "lo')
    found = curve_of(folder / "log.jsonl")
    assert ([step for step, _ in found.loss], found.finished) == ([1, 2, 3, 4, 5], False)


def test_a_long_curve_is_thinned_to_means() -> None:
    points = [(n, float(n)) for n in range(10 * MOST_POINTS)]
    assert len(thinned(points)) == MOST_POINTS
    assert thinned(points)[0] == (9, 4.5)
    assert thinned(points[:3]) == points[:3]
    assert thinned([]) == []


def test_states_of_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "running", STEPS)
    write_run(tmp_path / "finished", [*STEPS, {"final": {}}])
    stopped = write_run(tmp_path / "stopped", STEPS)
    before = time.time() - 1000
    os.utime(stopped / "log.jsonl", (before, before))
    write_run(tmp_path / "1" / "2" / "3" / "too-deep", STEPS)
    found = {facts["name"]: (facts["kind"], facts["state"], facts["step"]) for facts in Shelf(tmp_path).runs()}
    assert found == {
        "a/running": ("elmo", "running", 5),
        "finished": ("elmo", "finished", 5),
        "stopped": ("elmo", "stopped", 5),
    }


@pytest.mark.parametrize("name", ["../secret", "/etc", "run/..", "none", "", "run/log.jsonl", "."])
def test_nothing_outside_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "secret", STEPS)
    write_run(tmp_path / "shelf" / "run", STEPS)
    with pytest.raises(DataError, match="no run called"):
        Shelf(tmp_path / "shelf").curve(name)


def test_there_may_be_no_folder(tmp_path: Path) -> None:
    assert (Shelf(None).runs(), Shelf(None).comparisons()) == ([], [])
    with pytest.raises(DataError, match="no such folder; --runs"):
        Shelf(tmp_path / "none")


def test_the_server_shows_runs_and_reports(served_models: Models, tmp_path: Path) -> None:
    write_run(tmp_path / "run", STEPS)
    (tmp_path / "compared").mkdir()
    (tmp_path / "compared" / "report.html").write_text("<style>p { color: red }</style><p>Report")
    (tmp_path / "compared" / "results.json").write_text("{}")
    with serving(served_models, runs=tmp_path) as server:
        listed = server.ask("/api/runs").json
        assert ([one["name"] for one in listed["runs"]], listed["comparisons"]) == (["run"], ["compared"])
        assert server.ask("/api/curve", {"run": "run"}).json["loss"][0] == [1, 2.0]
        report = server.ask("/api/report?comparison=compared")
        assert (report.status, report.body.endswith(b"Report")) == (200, True)
        assert "sandbox" in report.headers["content-security-policy"]
        assert "'unsafe-inline'" not in server.ask("/").headers["content-security-policy"]
        for answer in (server.ask("/api/curve", {"run": "../run"}), server.ask("/api/report?comparison=run")):
            assert (answer.status, "no run called" in answer.detail) == (422, True)


def test_a_server_without_runs_has_none(server: Running) -> None:
    assert server.ask("/api/report").status == 422
