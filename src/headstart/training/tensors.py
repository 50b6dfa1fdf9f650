"""Tensors on disk: safetensors, written atomically, read whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from headstart.atomic import ADVICE, write_atomically
from headstart.errors import CheckpointError
from headstart.training.compact import COMPACT, FORMAT, unpack

PLAIN = "pt"
"""What other tools write into the metadata of a file of PyTorch tensors."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], advice: str = ADVICE, form: str = PLAIN) -> None:
    """Equal tensors give equal files: there is one entry of metadata, because more come out in any order."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda partial: save_file(plain, partial, {"format": form}), SafetensorError, advice)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file; those of a compact one in float32, so that nobody else needs to know that it is one."""
    try:
        with safe_open(path, framework="pt") as file:
            form = (file.metadata() or {}).get("format", PLAIN)
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dictionary)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: there is no such weights file.") from error
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a whole safetensors file ({error}).") from error
    if not form.startswith(COMPACT):
        return found
    if form != FORMAT:
        raise CheckpointError(
            f"{path}: is a compact file of another version ('{form}'); this headstart reads '{FORMAT}'. Install the "
            "one it was written by."
        )
    return unpack(found, path)


def copy_state(target: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Copy `state` into the tensors of `target`, all of it or, when a name or a shape differs, none of it."""
    check_state(target, state)
    with torch.no_grad():
        for name, tensor in target.items():
            tensor.copy_(state[name])


def check_state(target: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    if target.keys() != state.keys():
        missing = sorted(target.keys() - state.keys())
        unknown = sorted(state.keys() - target.keys())
        raise CheckpointError(
            f"The saved state does not fit this model: it lacks {missing or 'nothing'} and has {unknown or 'nothing'} "
            "that the model does not know. Continue with the configuration the run was started with."
        )
    for name, tensor in target.items():
        if tensor.shape != state[name].shape:
            raise CheckpointError(
                f"The saved state does not fit this model: '{name}' has shape {tuple(state[name].shape)}, the model "
                f"wants {tuple(tensor.shape)}. Continue with the configuration the run was started with."
            )
