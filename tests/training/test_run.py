from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headstart.atomic import PARTIAL
from headstart.errors import CheckpointError
from headstart.training import run as run_module
from headstart.training.run import NOTE_SUM, CheckpointNote, RunDirectory
from headstart.training.tensors import read_tensors, write_tensors

STATE = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(3)}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "run")
    run.write_config({"kind": "bert", "training": {"steps": 5}})
    return run


def test_a_checkpoint_comes_back_as_it_was(run: RunDirectory) -> None:
    progress = CheckpointNote(steps=7, elapsed=1.5, units=70, best=3.25, best_step=5, log_bytes=11, began=0.5)
    run.save(progress, STATE)
    found, state, notices = run.restore()
    assert found == progress
    assert state is not None
    assert all(torch.equal(state[name], STATE[name]) for name in STATE)
    assert notices == []


def test_without_a_checkpoint_it_starts_at_zero(run: RunDirectory) -> None:
    assert run.restore() == (CheckpointNote(), None, [])


def test_two_checkpoints_are_kept_and_the_newest_is_used(run: RunDirectory) -> None:
    for steps in (1, 2, 3):
        run.save(CheckpointNote(steps=steps), STATE)
    assert run.restore()[0].steps == 3
    assert sorted(file.name for file in run.state.iterdir()) == [
        f"step-{steps:09d}.{end}" for steps in (2, 3) for end in ("json", "safetensors")
    ]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "note", "a digit of the note", "nested"])
def test_a_broken_checkpoint_is_passed_over_saying_so(run: RunDirectory, damage: str) -> None:
    run.save(CheckpointNote(steps=1), STATE)
    run.save(CheckpointNote(steps=2), STATE)
    tensors, note = run._files(2)
    data = bytearray(tensors.read_bytes())
    if damage == "truncated":
        tensors.write_bytes(data[:-3])
    elif damage == "flipped":
        data[-1] ^= 1
        tensors.write_bytes(data)
    elif damage == "missing":
        tensors.unlink()
    elif damage == "nested":
        note.write_text("[" * 100_000)
    elif damage == "note":
        note.write_text('{"steps": 2')
    else:
        note.write_text(note.read_text().replace('"elapsed": 0.0', '"elapsed": 0.1'))
    progress, _, notices = run.restore()
    assert progress.steps == 1
    assert len(notices) == 1
    assert "step-000000002" in notices[0]
    assert "one before it" in notices[0]


def test_tensors_without_their_note_do_not_count(run: RunDirectory) -> None:
    """The moment between the two writes: a kill there must leave the one before in force."""
    run.save(CheckpointNote(steps=1), STATE)
    write_tensors(run._files(2)[0], STATE)
    assert run.restore()[0].steps == 1


def test_lines_after_the_checkpoint_are_forgotten(run: RunDirectory) -> None:
    run.log({"step": 1})
    kept = run.log_bytes()
    run.log({"step": 2})
    with run.log_file.open("ab") as file:
        file.write(b'{"step": 3, "lo')  # the line a kill cut off
    run.rewind_log(kept)
    assert [json.loads(line) for line in run.log_file.read_text().splitlines()] == [{"step": 1}]


def test_nothing_is_written_over(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"already holds a run.*--resume"):
        RunDirectory.create(run.path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="not empty and not a run"):
        RunDirectory.create(tmp_path / "other")
    with pytest.raises(CheckpointError, match="is a file"):
        RunDirectory.create(tmp_path / "other" / "thesis.txt")


def test_what_is_not_a_run_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such folder"):
        RunDirectory.open(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"not a run directory: it has no config\.toml"):
        RunDirectory.open(tmp_path)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """A disk quota of 4 kB in another process: the error is ours, the old file whole, no partial file left."""
    target = tmp_path / "weights.safetensors"
    write_tensors(target, STATE)
    before = target.read_bytes()
    code = (
        "import resource, sys, torch; from pathlib import Path\n"
        "from headstart.errors import CheckpointError\n"
        "from headstart.atomic import write_text\n"
        "from headstart.training.tensors import write_tensors\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (4096, {resource.RLIM_INFINITY}))\n"
        "failures = 0\n"
        "big = {'a': torch.zeros(10_000)}\n"
        "for write in (lambda p: write_tensors(p, big), lambda p: write_text(p, 'x' * 10_000)):\n"
        "    try: write(Path(sys.argv[1]))\n"
        "    except CheckpointError as error: failures += 'cannot be written' in str(error)\n"
        "sys.exit(failures)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == [target.name]


def test_a_torn_weights_file_is_one_sentence(tmp_path: Path) -> None:
    target = tmp_path / "weights.safetensors"
    write_tensors(target, STATE)
    target.write_bytes(target.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        read_tensors(target)
    with pytest.raises(CheckpointError, match="no such weights file"):
        read_tensors(tmp_path / "none.safetensors")


def test_two_processes_cannot_work_on_one_run(run: RunDirectory) -> None:
    with run.locked(), pytest.raises(CheckpointError, match="another process"), run.locked():
        raise AssertionError("the second lock was given")


def test_what_a_killed_process_left_half_written_is_removed(run: RunDirectory) -> None:
    left = [run.path / f"CARD.md.1.2{PARTIAL}", run.state / f"step-000000001.safetensors.1.2{PARTIAL}"]
    left.append(run.path / ".tmpAb12Cd")  # as safetensors calls what it has not written to its end
    for path in left:
        path.write_text("half")
    with run.locked():
        assert not any(path.exists() for path in left)


def test_a_run_without_checkpoints_leaves_no_lock_behind(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "task")
    with run.locked(new=True):
        run.write_card("done")
    assert os.listdir(run.path) == ["CARD.md"]


def test_the_lock_of_a_new_run_refuses_a_folder_that_was_filled_meanwhile(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "task")
    with RunDirectory(run.path).locked(new=True):
        run.write_card("done")
    with pytest.raises(CheckpointError, match="another process has written a run there"), run.locked(new=True):
        raise AssertionError("the lock was given")


def test_a_run_that_failed_before_it_wrote_anything_leaves_no_folder(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "task")
    with pytest.raises(KeyError), run.locked(new=True):
        raise KeyError
    run.remove_if_empty()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_goes_on_where_every_checkpoint_is_broken(run: RunDirectory, count: int) -> None:
    for steps in range(1, count + 1):
        run.save(CheckpointNote(steps=steps), STATE)
        run._files(steps)[0].write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        run.restore()
    assert "Going on" not in str(caught.value)
    assert ("its only checkpoint is broken" if count == 1 else "all 2 checkpoints are broken") in str(caught.value)


@pytest.mark.parametrize("kind", ["tensors", "note"])
def test_a_folder_in_the_place_of_a_checkpoint_file_is_a_broken_checkpoint(run: RunDirectory, kind: str) -> None:
    run.save(CheckpointNote(steps=1), STATE)
    run.save(CheckpointNote(steps=2), STATE)
    file = run._files(2)[0 if kind == "tensors" else 1]
    file.unlink()
    file.mkdir()
    progress, _, notices = run.restore()
    assert (progress.steps, len(notices)) == (1, 1)


def test_a_folder_in_the_place_of_the_log_is_one_sentence(run: RunDirectory) -> None:
    run.log_file.mkdir()
    with pytest.raises(CheckpointError, match=r"log\.jsonl: is not a file; move it away"):
        run.rewind_log(0)


def test_files_that_only_look_like_checkpoints_do_not_count(run: RunDirectory) -> None:
    (run.state / "step-copy.json").write_text("{}")
    assert run.restore() == (CheckpointNote(), None, [])


def test_a_note_of_a_version_without_its_checksum_is_read(run: RunDirectory) -> None:
    run.save(CheckpointNote(steps=1), STATE)
    note = run._files(1)[1]
    fields = json.loads(note.read_text())
    del fields[NOTE_SUM]
    note.write_text(json.dumps(fields))
    assert run.restore()[0].steps == 1


def test_a_note_whose_numbers_are_words_is_broken(run: RunDirectory) -> None:
    run.save(CheckpointNote(steps=1), STATE)
    note = run._files(1)[1]
    note.write_text(note.read_text().replace('"elapsed": 0.0', '"elapsed": "long"'))
    with pytest.raises(CheckpointError, match="note is broken"):
        run.restore()


def test_the_name_of_the_log_is_on_the_disk_before_a_checkpoint_counts_its_lines(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss may take back the names that were made since a folder was synced."""
    synced: list[Path] = []
    monkeypatch.setattr(run_module, "sync", synced.append)
    monkeypatch.setattr(run_module, "write_text", lambda path, *_: synced.append(path))
    run.log({"step": 1, "loss": 2.0})
    run.save(CheckpointNote(steps=1), {"weight": torch.ones(2)})
    assert synced == [run.log_file, run.path, run.state / "step-000000001.json"]
