from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from headstart.errors import CheckpointError
from headstart.training.run import CheckpointNote, RunDirectory, shard_name
from headstart.training.saved_tensors import PLACES, Part, SavedTensors, write_parts

WHOLE = {"a": torch.arange(15.0).view(5, 3), "b": torch.arange(8.0).view(2, 4), "step": torch.tensor(7.0)}
"""`a` is cut by rows, `b` by columns; the step is in the first file alone."""


def files_of(folder: Path) -> list[Path]:
    files = [folder / shard_name(rank, 2) for rank in range(2)]
    write_parts(
        files[0],
        {"a": Part((0, 0), WHOLE["a"][:3]), "b": Part((0, 0), WHOLE["b"][:, :2]), "step": Part((), WHOLE["step"])},
        "",
    )
    write_parts(files[1], {"a": Part((3, 0), WHOLE["a"][3:]), "b": Part((0, 2), WHOLE["b"][:, 2:])}, "")
    return files


def same(found: SavedTensors) -> bool:
    return found.keys() == WHOLE.keys() and all(torch.equal(found[name], WHOLE[name]) for name in WHOLE)


def test_parts_make_whole_tensors_again(tmp_path: Path) -> None:
    assert same(SavedTensors(files_of(tmp_path)))


@pytest.mark.parametrize(("start", "shape"), [((0, 0), (5, 3)), ((2, 0), (2, 3)), ((4, 1), (1, 2)), ((5, 0), (0, 3))])
def test_any_part_of_a_tensor_can_be_read(tmp_path: Path, start: tuple[int, int], shape: tuple[int, int]) -> None:
    found = SavedTensors(files_of(tmp_path)).part("a", start, shape)
    assert torch.equal(found, WHOLE["a"][start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]])


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torchs_distributed_checkpoint_reads_it(tmp_path: Path) -> None:
    from torch.distributed.checkpoint import load
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    files_of(tmp_path)
    found = {name: torch.zeros_like(tensor) for name, tensor in WHOLE.items()}
    load(found, storage_reader=HuggingFaceStorageReader(str(tmp_path)), no_dist=True)
    assert all(torch.equal(found[name], WHOLE[name]) for name in WHOLE)


def test_a_part_that_is_not_there_is_missed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        SavedTensors([tmp_path / "none.safetensors"])
    first, second = files_of(tmp_path)
    with pytest.raises(CheckpointError, match="parts of 'a' are missing"):
        SavedTensors([second])
    assert SavedTensors([first]).shape("a") == (3, 3)  # nobody can tell: the names of all files are in the note


@pytest.mark.parametrize("places", ["[" * 100_000, "[1]", '{"a": 3}', '{"a": {"saved_offsets": [0]}}', '{"b": {}}'])
def test_a_file_of_another_program_is_refused_in_a_sentence(tmp_path: Path, places: str) -> None:
    save_file({"a": torch.zeros(2, 2)}, tmp_path / "odd.safetensors", {PLACES: places})
    with pytest.raises(CheckpointError, match="does not tell where its parts"):
        SavedTensors([tmp_path / "odd.safetensors"])


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "run")
    run.write_config({"kind": "bert"})
    return run


def save(run: RunDirectory, steps: int) -> None:
    def write(folder: Path) -> dict[str, str]:
        from headstart.atomic import sha256_of

        return {file.name: sha256_of(file) for file in files_of(folder)}

    run.save_shards(CheckpointNote(steps=steps), write)


def test_a_divided_checkpoint_comes_back_and_two_are_kept(run: RunDirectory) -> None:
    for steps in (1, 2, 3):
        save(run, steps)
    progress, state, notices = run.restore()
    assert (progress.steps, notices) == (3, [])
    assert state is not None
    assert same(state)
    assert sorted(entry.name for entry in run.state.iterdir()) == [
        f"step-{steps:09d}{end}" for steps in (2, 3) for end in ("", ".json")
    ]


@pytest.mark.parametrize("damage", ["flipped", "missing", "foreign name", "swapped"])
def test_a_damaged_part_is_passed_over_saying_so(run: RunDirectory, damage: str) -> None:
    save(run, 1)
    save(run, 2)
    first, second = sorted((run.state / "step-000000002").iterdir())
    note = run.state / "step-000000002.json"
    if damage == "flipped":
        data = bytearray(second.read_bytes())
        data[-1] ^= 1
        second.write_bytes(data)
    elif damage == "missing":
        second.unlink()
    elif damage == "swapped":
        second.write_bytes(first.read_bytes())
    else:
        fields = json.loads(note.read_text())
        fields["sha256"]["../../config.toml"] = fields["sha256"].pop(second.name)
        fields.pop("note_sha256")
        note.write_text(json.dumps(fields))
    progress, state, notices = run.restore()
    assert progress.steps == 1
    assert state is not None
    assert same(state)
    assert "step-000000002" in notices[0]


def test_files_of_another_number_of_processes_are_removed_once_the_new_ones_count(run: RunDirectory) -> None:
    save(run, 1)
    stale = run.state / "step-000000001" / shard_name(2, 3)
    stale.write_bytes(b"")
    save(run, 1)
    assert not stale.exists()
    assert run.restore()[0].steps == 1
