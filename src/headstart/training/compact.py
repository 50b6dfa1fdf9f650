"""Weights in fewer bytes: matrices as int8 with a scale for each row, or as float16. Vectors stay float32.

In the file, a matrix in int8 is a pair of tensors: `name`, and `name.scale` with a number for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headstart.config import pick
from headstart.errors import CheckpointError

COMPACT = "headstart-compact-"
"""What the metadata of such a file begins with, as its format; a version follows."""
FORMAT = f"{COMPACT}1"
SCALE = ".scale"
LEVELS = 127
LARGEST_ERROR = 0.02
"""Of a matrix, relative to its norm. int8 gives normally distributed weights an error of 0.6 to 0.8 %; a matrix whose
rows have outliers, and with them a larger error, is kept in the next larger precision."""


@dataclass(frozen=True, slots=True)
class LargestError:
    """The tensor that changed most: |changed - exact| / |exact|, in the Euclidean norm."""

    tensor: str
    share: float


def pack(tensors: Mapping[str, Tensor], precision: str) -> dict[str, Tensor]:
    """The tensors of a compact file. precision: of the matrices, int8 or float16.

    Biases and norms are less than a hundredth of the numbers, so they keep every bit.
    """
    pick(PACKINGS, precision, "precision")
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.ndim > 1:
            stored |= pack_matrix(name, tensor.detach().cpu().float(), precision)
        else:
            stored[name] = tensor
    return stored


def pack_matrix(name: str, matrix: Tensor, precision: str) -> dict[str, Tensor]:
    """In the first precision, from the one asked for upwards, that is exact enough."""
    names = list(PACKINGS)
    for candidate in names[names.index(precision) :]:
        stored = PACKINGS[candidate](name, matrix)
        if relative_error(matrix, unpack(stored)[name]) <= LARGEST_ERROR:
            return stored
    return {name: matrix}


def int8_rows(name: str, matrix: Tensor) -> dict[str, Tensor]:
    rows = matrix.flatten(1)
    scales = rows.abs().amax(dim=1) / LEVELS
    levels = rows / scales.clamp(min=torch.finfo(torch.float32).tiny)[:, None]  # a row of zeros has the scale 0
    return {name: levels.round().to(torch.int8).reshape(matrix.shape), f"{name}{SCALE}": scales}


def halves(name: str, matrix: Tensor) -> dict[str, Tensor]:
    return {name: matrix.half()}


PACKINGS: dict[str, Callable[[str, Tensor], dict[str, Tensor]]] = {"int8": int8_rows, "float16": halves}
"""From the fewest bytes to the most."""


def unpack(stored: Mapping[str, Tensor], where: Path | str = "") -> dict[str, Tensor]:
    """The tensors of a compact file in float32. where: the file, for messages."""
    return {
        name: restored(name, tensor, stored, where) for name, tensor in stored.items() if not is_scale(name, stored)
    }


def is_scale(name: str, stored: Mapping[str, Tensor]) -> bool:
    return name.endswith(SCALE) and name.removesuffix(SCALE) in stored


def restored(name: str, tensor: Tensor, stored: Mapping[str, Tensor], where: Path | str) -> Tensor:
    if tensor.dtype != torch.int8:
        return tensor.float() if tensor.is_floating_point() else tensor
    scales = stored.get(f"{name}{SCALE}")
    if scales is None or tensor.ndim < 2 or scales.shape != tensor.shape[:1]:
        found = "is missing" if scales is None else f"has shape {tuple(scales.shape)}"
        raise CheckpointError(
            f"{where}: is not a whole compact file: '{name}{SCALE}' {found}, wanted a number for each row of '{name}', "
            f"which has shape {tuple(tensor.shape)}."
        )
    return (tensor.float().flatten(1) * scales.float()[:, None]).reshape(tensor.shape)


def relative_error(exact: Tensor, changed: Tensor) -> float:
    """NaN where the exact one is not finite."""
    norm = float(exact.norm())
    return float((changed - exact).norm()) / norm if norm else 0.0


def largest_error(exact: Mapping[str, Tensor], changed: Mapping[str, Tensor]) -> LargestError:
    errors = (LargestError(name, relative_error(tensor.float(), changed[name])) for name, tensor in exact.items())
    return max(errors, key=lambda error: error.share)
