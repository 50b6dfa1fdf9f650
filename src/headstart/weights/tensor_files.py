"""The tensors of a Hugging Face folder: safetensors or PyTorch files, whole or in shards. No code in them is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.errors import CheckpointError
from headstart.training.tensors import read_tensors

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
WRAPPERS = ("state_dict", "model")  # keys under which training scripts save the tensors
LFS_POINTER = b"version https://git-lfs"


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """The file that was read, for error messages, and its tensors. safetensors are preferred."""
    for name in (SAFETENSORS, PICKLED):
        whole, index = folder / name, folder / f"{name}{INDEX}"
        if whole.exists():
            return whole, read_file(whole)
        if index.exists():
            return index, read_shards(index)
    raise CheckpointError(f"{folder}: has no weights; wanted {SAFETENSORS} or {PICKLED}, in one file or in shards.")


def read_file(path: Path) -> dict[str, Tensor]:
    if starts_with(path, LFS_POINTER):
        raise CheckpointError(f"{path}: is a Git LFS pointer, not the weights themselves. Run `git lfs pull` there.")
    return read_tensors(path) if path.suffix == ".safetensors" else read_pickled(path)


def starts_with(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error


def read_pickled(path: Path) -> dict[str, Tensor]:
    """PyTorch's own format, read by the loader that refuses anything but tensors."""
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes make it raise almost anything
        raise CheckpointError(
            f"{path}: not a whole PyTorch file of plain tensors, so it was not loaded; no code in it was run. "
            f"If it holds more than tensors, get {SAFETENSORS} instead."
        ) from error
    for wrapper in WRAPPERS:
        if isinstance(loaded, dict) and isinstance(loaded.get(wrapper), dict):
            loaded = loaded[wrapper]
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path}: holds a {type(loaded).__name__}; wanted a dictionary of tensors.")
    for name, value in loaded.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise CheckpointError(
                f"{path}: the entry {name!r} is a {type(value).__name__}; wanted tensors by name, and nothing else."
            )
    return loaded


def read_shards(index: Path) -> dict[str, Tensor]:
    """Every tensor that an index names."""
    table = read_object(index).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise CheckpointError(f"{index}: has no 'weight_map', which says which file each tensor is in.")
    for name, file in table.items():
        if not isinstance(file, str) or not is_plain_name(file):
            raise CheckpointError(f"{index}: '{name}' is said to be in {file!r}; wanted the name of a file beside it.")
    found: dict[str, Tensor] = {}
    for file in sorted(set(table.values())):
        shard = read_file(index.parent / file)
        for name in (name for name, holder in table.items() if holder == file):
            if name not in shard:
                raise CheckpointError(f"{index}: says that {file} holds '{name}', which it does not.")
            found[name] = shard[name]
    return found


def is_plain_name(name: str) -> bool:
    """Whether it names a file beside the index: it must not point to other folders."""
    return Path(name).name == name and "\\" not in name and name.endswith((".safetensors", ".bin"))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that is one object."""
    try:
        loaded = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a JSON file ({error}).") from error
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path}: holds a JSON {type(loaded).__name__}; wanted an object with keys.")
    return loaded
