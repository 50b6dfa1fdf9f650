"""Matrices in fewer bytes: what is rounded, by how much, and what a damaged file says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from headstart.errors import CheckpointError, ConfigError
from headstart.training.compact import FORMAT, largest_error, pack, relative_error, unpack
from headstart.training.tensors import read_tensors, write_tensors


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_each_row_of_a_matrix_has_its_own_scale() -> None:
    stored = pack({"a": torch.tensor([[127.0, -1.0, 0.4], [0.0, 0.0, 0.0], [0.5, -2.54, 1.0]])}, "int8")
    assert stored["a"].dtype == torch.int8
    assert stored["a"].tolist() == [[127, -1, 0], [0, 0, 0], [25, -127, 50]]
    torch.testing.assert_close(stored["a.scale"], torch.tensor([1.0, 0.0, 0.02]))
    expected = torch.tensor([[127.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.5, -2.54, 1.0]])
    torch.testing.assert_close(unpack(stored)["a"], expected)


@pytest.mark.parametrize(("precision", "largest"), [("int8", 0.01), ("float16", 0.0005)])
@pytest.mark.parametrize("shape", [(50, 64), (20, 4, 5)])
def test_a_file_gives_back_every_tensor_in_float32_and_nearly_the_same(
    shape: tuple[int, ...], precision: str, largest: float, tmp_path: Path
) -> None:
    tensors = {"matrix": normal(*shape), "bias": normal(50), "numbers": torch.arange(6).reshape(2, 3)}
    write_tensors(tmp_path / "w.safetensors", pack(tensors, precision), form=FORMAT)
    found = read_tensors(tmp_path / "w.safetensors")
    assert found.keys() == tensors.keys()
    assert found["matrix"].dtype == torch.float32
    assert found["matrix"].shape == shape
    assert 0 < relative_error(tensors["matrix"], found["matrix"]) < largest
    assert torch.equal(found["bias"], tensors["bias"])
    assert torch.equal(found["numbers"], tensors["numbers"])
    changed = largest_error(tensors, found)
    assert (changed.tensor, changed.share) == ("matrix", relative_error(tensors["matrix"], found["matrix"]))


def test_what_a_precision_cannot_hold_is_kept_in_the_next_one() -> None:
    # One number of each row is a thousand times as large as the others, all of which int8 would round to zero.
    outliers = torch.cat([normal(8, 4_000), torch.full((8, 1), 1e3)], dim=1)
    assert pack({"a": outliers}, "int8")["a"].dtype == torch.float16
    assert pack({"a": 1e6 * outliers}, "int8")["a"].dtype == torch.float32
    assert pack({"a": 1e6 * normal(8, 8)}, "float16")["a"].dtype == torch.float32
    diverged = torch.full((2, 2), torch.nan)
    assert torch.equal(pack({"a": diverged}, "int8")["a"].isnan(), diverged.isnan())


def test_packing_what_was_packed_changes_nothing_more() -> None:
    once = unpack(pack({"a": normal(30, 16)}, "int8"))
    torch.testing.assert_close(unpack(pack(once, "int8")), once, rtol=1e-6, atol=0)


def test_an_unknown_precision_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"No precision called 'float61'\. Did you mean 'float16'"):
        pack({}, "float61")


LEVELS = torch.ones(3, 2, dtype=torch.int8)
DAMAGED = {
    "no scale": ({"a": LEVELS}, FORMAT, r"'a.scale' is missing, wanted a number for each row of 'a'"),
    "a short scale": ({"a": LEVELS, "a.scale": torch.ones(2)}, FORMAT, r"'a.scale' has shape \(2,\)"),
    "another version": ({"a": LEVELS}, "headstart-compact-2", "of another version .*Install the one it was written by"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_file_is_one_sentence(how: str, tmp_path: Path) -> None:
    tensors, form, says = DAMAGED[how]
    write_tensors(tmp_path / "w.safetensors", tensors, form=form)
    with pytest.raises(CheckpointError, match=f"w.safetensors: .*{says}"):
        read_tensors(tmp_path / "w.safetensors")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"made": "elsewhere"}])
def test_a_file_of_other_tools_is_read_as_it_is(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    tensors = {"a": LEVELS, "a.scale": torch.ones(3), "b": torch.ones(2, dtype=torch.float16)}
    save_file(tensors, tmp_path / "w.safetensors", metadata)
    found = read_tensors(tmp_path / "w.safetensors")
    assert {name: tensor.dtype for name, tensor in found.items()} == {
        "a": torch.int8, "a.scale": torch.float32, "b": torch.float16,
    }  # fmt: skip
