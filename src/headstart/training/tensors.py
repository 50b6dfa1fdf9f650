"""Tensors on disk: safetensors, written atomically, read whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headstart.atomic import ADVICE, write_atomically
from headstart.errors import CheckpointError


def write_tensors(path: Path, tensors: Mapping[str, Tensor], advice: str = ADVICE) -> None:
    """Equal tensors give equal files: there is one entry of metadata, because more come out in any order."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda partial: save_file(plain, partial, {"format": "pt"}), SafetensorError, advice)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: there is no such weights file.") from error
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a whole safetensors file ({error}).") from error
