"""The campaign of faults: what it counts as wanted, that its cases come again, and a few cases of most kinds."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("bench", reason="bench/ is importable from the repository's folder only")

from bench.faults import ROWS, __main__
from bench.faults.child import LONGEST_SENTENCE, outcomes_of
from bench.faults.divided import outcomes_of_groups
from bench.faults.mutations import MUTATIONS, mutated
from bench.faults.outcome import Outcome, Setting, table
from bench.faults.samples import FILES
from bench.faults.verbs import Ended

from headstart.errors import DataError

ROOT = Path(__file__).parents[1]
FEW = ("text.jsonl", "run config.toml, static", "nul.csv, NUL bytes", "export hf")
"""One group of each kind of fault; the last is among those of most."""


class Runs:
    """What a pickle does when it is read."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


def say(message: str) -> None:
    error = DataError("")
    error.problem = message  # as it would be without the rule that messages are one line
    raise error


FAULTS: dict[str, tuple[Callable[[int], object], str, bool]] = {
    "a result": (lambda n: n, "result", True),
    "one sentence": (lambda n: say("a.csv:2: has no columns."), "sentence", True),
    "a line break": (lambda n: say("a.csv:2:\nhas no columns."), "sentence", False),
    "a control character": (lambda n: say("a.csv:2: has no \x1b]0;x."), "sentence", False),
    "an endless message": (lambda n: say("y" * (LONGEST_SENTENCE + 1)), "sentence", False),
    "an error without a word": (lambda n: say(" "), "sentence", False),
    "a traceback": (lambda n: [][n], "traceback", False),
    "an exit": (lambda n: sys.exit(3), "traceback", False),
    "too much memory": (lambda n: bytearray(200 << 20), "traceback", False),
    "a crash": (lambda n: os.kill(os.getpid(), signal.SIGKILL), "crash", False),
    "a hang": (lambda n: time.sleep(60), "hang", False),
    "an executed byte": (lambda n: pickle.loads(pickle.dumps(Runs())), "executed", False),
    "an executed command": (lambda n: os.system("true"), "executed", False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wanted_and_what_is_not(fault: str) -> None:
    """The cases before and after it are done all the same."""
    do, how, is_wanted = FAULTS[fault]
    limits = {"warm_up": lambda: None, "seconds": 1.0, "memory": 100 << 20}
    found = list(outcomes_of(lambda n: do(n) if n == 1 else n, [0, 1, 2], **limits))
    assert [(number, ended) for number, ended, _ in found] == [(0, "result"), (1, how), (2, "result")]
    assert [not wrong for *_, wrong in found] == [True, is_wanted, True]


def test_a_command_is_wanted_to_end_in_a_result_or_in_one_sentence() -> None:
    assert Ended(0, "", "").judged() == ("result", "")
    assert Ended(2, "", "headstart: a.csv: is empty.\n").judged() == ("sentence", "")
    for code, errors in (
        (2, "Usage: ..."),
        (1, "Traceback ..."),
        (2, "headstart: a\nheadstart: b"),
        (-9, ""),
        (None, ""),
    ):
        assert Ended(code, "", errors).judged()[1]


def test_a_seed_damages_a_file_in_the_same_way_again_and_another_seed_in_another() -> None:
    valid = FILES["squad.json.gz"]()
    damaged = [mutated(valid, f"0 {number}", True) for number in range(200)]
    assert damaged == [mutated(valid, f"0 {number}", True) for number in range(200)]
    assert len(set(damaged)) > 150
    assert sum(content == valid for content in damaged) < 10


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_every_change_takes_any_bytes(mutation: Callable[..., bytes]) -> None:
    import random

    for content in (b"\n", b"\x00\xff", b'{"a": 1}', FILES["labelled.csv"]()):
        assert all(isinstance(mutation(content, random.Random(seed)), bytes) for seed in range(30))


def test_the_table_has_a_line_for_each_group() -> None:
    outcomes = [Outcome("mutated", "csv", n, "result", "" if n else "an error") for n in range(1_200)]
    outcomes.append(Outcome("odd", "fifo", 0, "sentence"))
    lines = table(outcomes).splitlines()
    assert lines[1].split() == ["mutated", "csv", "1,200", "1,199", "1", "result", "1,200"]
    assert lines[2].split() == ["odd", "fifo", "1", "1", "0", "sentence", "1"]


def test_single_cases_can_be_asked_for() -> None:
    setting = Setting(Path(), only=("csv:17", "trees"))
    asked = [("csv", 17), ("csv", 16), ("trees", 3), ("jsonl", 17)]
    assert [setting.wants(*case) for case in asked] == [True, False, True, False]
    assert setting.wants("csv")


def test_a_group_that_breaks_is_told_and_the_others_are_done(tmp_path: Path) -> None:
    def run(group: str, setting: Setting) -> Iterator[Outcome]:
        yield Outcome("row", group, 0, "result")
        if group == "raises":
            raise ValueError("no such job")
        if group == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        yield Outcome("row", group, len(list(setting.folder.parent.iterdir())), "result")

    found = list(outcomes_of_groups("row", run, ["raises", "dies", "is done"], Setting(tmp_path), jobs=2))
    assert sum(outcome.ended == "result" for outcome in found) == 4
    wrong = {outcome.group: outcome.wrong for outcome in found if outcome.wrong}
    assert wrong.keys() == {"raises", "dies"}
    assert "no such job" in wrong["raises"]
    assert "SIGKILL" in wrong["dies"]


@pytest.mark.parametrize("wrong", ["", "an error"])
def test_it_exits_with_1_if_a_case_is_not_as_wanted(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcomes = [Outcome("mutated", "csv", 7, "result", wrong)]
    monkeypatch.setattr(__main__, "import_everything", lambda: None)
    monkeypatch.setattr("bench.faults.mutated.run", lambda group, setting: iter(outcomes))
    monkeypatch.setattr("bench.faults.mutated.GROUPS", ("csv",))
    assert __main__.main(["--only", "mutated", "--folder", str(tmp_path)]) == int(bool(wrong))
    said = capsys.readouterr().out
    assert ("mutated csv:7: an error [--only mutated --case 'csv:7' --seed 0]" in said) == bool(wrong)


def test_docs_tell_of_every_kind() -> None:
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    assert [name for name in ROWS if f"| {name}" not in page] == []


def test_a_few_cases_of_each_kind_end_as_wanted() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.faults", "--quick", "--case", *FEW],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"  {case}  " in done.stdout for case in FEW)
    assert [row for row in ROWS if f"\n{row}  " not in done.stdout and row != "powerless"] == []
