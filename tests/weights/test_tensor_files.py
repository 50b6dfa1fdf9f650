from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from headstart.errors import CheckpointError
from headstart.weights.tensor_files import read_weights

TENSORS = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.ones(2), "b": torch.zeros(1, dtype=torch.float16)}


def assert_equal(found: dict[str, torch.Tensor]) -> None:
    assert found.keys() == TENSORS.keys()
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in TENSORS.items()
    )


def test_safetensors_come_before_pytorch(tmp_path: Path) -> None:
    torch.save({"other": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    save_file(TENSORS, tmp_path / "model.safetensors")
    where, found = read_weights(tmp_path)
    assert where == tmp_path / "model.safetensors"
    assert_equal(found)


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_files(tmp_path: Path, wrapper: str | None, zipped: bool) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({wrapper: TENSORS, "epoch": 3} if wrapper else TENSORS, path, _use_new_zipfile_serialization=zipped)
    assert_equal(read_weights(tmp_path)[1])


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_shards(tmp_path: Path, name: str) -> None:
    suffix = Path(name).suffix
    parts = {f"one{suffix}": ("a.weight", "b"), f"two{suffix}": ("a.bias",)}
    for file, names in parts.items():
        mine = {tensor: TENSORS[tensor] for tensor in names}
        save_file(mine, tmp_path / file) if suffix == ".safetensors" else torch.save(mine, tmp_path / file)
    table = {tensor: file for file, names in parts.items() for tensor in names}
    index = tmp_path / f"{name}.index.json"
    index.write_text(json.dumps({"weight_map": table}))
    where, found = read_weights(tmp_path)
    assert where == index
    assert_equal(found)
    for file, message in (
        (f"../{tmp_path.name}/one{suffix}", "wanted the name of a file beside it"),
        (str(tmp_path / f"one{suffix}"), "wanted the name of a file beside it"),
        ("..", "wanted the name of a file beside it"),
        (7, "wanted the name of a file beside it"),
        (f"absent{suffix}", rf"absent{suffix}: cannot be read"),
        (f"two{suffix}", rf"says that two{suffix} holds 'b', which it does not"),
    ):
        index.write_text(json.dumps({"weight_map": {**table, "b": file}}))
        with pytest.raises(CheckpointError, match=message):
            read_weights(tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"weight_map": {}}', "[]", "{"])
def test_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index\.json: (has no 'weight_map'|holds a JSON list|not a JSON file)"):
        read_weights(tmp_path)


class Hostile:
    """What a file would do to anyone who unpickles it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


def test_nothing_in_a_pytorch_file_is_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "pytorch_model.bin", tmp_path / "trace"
    bare = pickle.dumps(Hostile(trace))
    for zipped in (True, False):
        torch.save({**TENSORS, "extra": Hostile(trace)}, path, _use_new_zipfile_serialization=zipped)
        with pytest.raises(CheckpointError, match="no code in it was run"):
            read_weights(tmp_path)
    path.write_bytes(bare)
    with pytest.raises(CheckpointError, match="no code in it was run"):
        read_weights(tmp_path)
    assert not trace.exists()
    pickle.loads(bare)
    assert trace.exists()  # so the file would have done it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**TENSORS, "epoch": 3}, "the entry 'epoch' is a int; wanted tensors by name"),
        ({3: TENSORS["b"]}, "the entry 3 is a Tensor; wanted tensors by name, and nothing else"),
        ([TENSORS["b"]], "holds a list; wanted a dictionary of tensors"),
        ({"state_dict": {"a": None}}, "the entry 'a' is a NoneType"),
    ],
)
def test_pytorch_files_of_something_else(tmp_path: Path, content: Any, message: str) -> None:
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=message):
        read_weights(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_files_that_are_cut_or_garbage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save_file(TENSORS, path) if name.endswith("safetensors") else torch.save(TENSORS, path)
    whole = path.read_bytes()
    for broken in (whole[:-5], whole[: len(whole) // 2], whole[:3], b"", b"neither of the two"):
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match=rf"{name}: not a whole (safetensors|PyTorch) file"):
            read_weights(tmp_path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(CheckpointError, match="Run `git lfs pull`"):
        read_weights(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=f"{name}: cannot be read"):
        read_weights(tmp_path)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no weights; wanted model.safetensors or pytorch_model.bin"):
        read_weights(tmp_path)
