"""The tensors of a checkpoint, in one file or with each tensor divided among several.

The files are those of torch's distributed checkpoint in its safetensors form (`HuggingFaceStorageWriter` and
`HuggingFaceStorageReader` of torch.distributed.checkpoint): a tensor has the same name in each file that holds a part
of it, and the file's metadata tells where the part begins. They are written and read here so that a file is written
atomically and without a second copy of the tensors in memory, and so that no process has to unpickle what another one
says about its tensors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from headstart.atomic import write_atomically
from headstart.errors import CheckpointError

PLACES = "DCP_SHARDING_INFO"
"""torch's entry in the metadata of a file that holds parts of tensors."""
BEGINS = "saved_offsets"
DTYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a tensor, or all of it. start: the indices of its first element in the whole tensor."""

    start: tuple[int, ...]
    tensor: Tensor


def write_parts(path: Path, parts: Mapping[str, Part], advice: str) -> None:
    plain = {name: part.tensor.detach().cpu().contiguous() for name, part in parts.items()}
    places = json.dumps({name: {BEGINS: list(part.start)} for name, part in parts.items()})
    write_atomically(path, lambda partial: save_file(plain, partial, {PLACES: places}), SafetensorError, advice)


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a part lies on disk."""

    file: Path
    start: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype


class SavedTensors(Mapping[str, Tensor]):
    """Reads each tensor, or a part of it, when it is asked for."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.pieces: dict[str, list[Piece]] = {}
        for file in self.files:
            for name, piece in pieces_in(file):
                self.pieces.setdefault(name, []).append(piece)
        for name, pieces in self.pieces.items():
            if sum(math.prod(piece.shape) for piece in pieces) != math.prod(self.shape(name)):
                raise CheckpointError(f"{self.files[0].parent}: parts of '{name}' are missing from this checkpoint.")

    def __iter__(self) -> Iterator[str]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, name: str) -> Tensor:
        shape = self.shape(name)
        return self.part(name, (0,) * len(shape), shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of the whole tensor."""
        ends = [[at + size for at, size in zip(piece.start, piece.shape, strict=True)] for piece in self.pieces[name]]
        return tuple(max(sizes) for sizes in zip(*ends, strict=True))

    def part(self, name: str, start: Sequence[int], shape: Sequence[int]) -> Tensor:
        pieces = self.pieces[name]
        for piece in pieces:
            if (piece.start, piece.shape) == (tuple(start), tuple(shape)):
                return read_piece(piece, name, None)
        found = torch.empty(tuple(shape), dtype=pieces[0].dtype)
        for piece in pieces:
            first = [max(a, b) for a, b in zip(start, piece.start, strict=True)]
            last = [min(a + n, b + m) for a, n, b, m in zip(start, shape, piece.start, piece.shape, strict=True)]
            if all(a < b for a, b in zip(first, last, strict=True)):
                found[slices(first, last, start)] = read_piece(piece, name, slices(first, last, piece.start))
        return found


def slices(first: Sequence[int], last: Sequence[int], origin: Sequence[int]) -> tuple[slice, ...]:
    """From `first` to `last`, counted from `origin`."""
    return tuple(slice(a - zero, b - zero) for a, b, zero in zip(first, last, origin, strict=True))


def pieces_in(file: Path) -> Iterator[tuple[str, Piece]]:
    try:
        with safe_open(file, framework="pt") as opened:
            places = json.loads((opened.metadata() or {}).get(PLACES, "{}"))
            for name in opened.keys():  # noqa: SIM118 (it is not a dictionary)
                part = opened.get_slice(name)
                shape = tuple(part.get_shape())
                yield name, Piece(file, beginning(places, name, len(shape)), shape, DTYPES[part.get_dtype()])
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{file}: not a whole safetensors file ({error}).") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: does not tell where its parts of the tensors belong.") from error


def beginning(places: Any, name: str, dimensions: int) -> tuple[int, ...]:
    if not places:
        return (0,) * dimensions
    start = tuple(places[name][BEGINS])
    if len(start) != dimensions or not all(isinstance(at, int) and at >= 0 for at in start):
        raise ValueError(start)
    return start


def read_piece(piece: Piece, name: str, within: tuple[slice, ...] | None) -> Tensor:
    """within: which of it; None for all."""
    try:
        with safe_open(piece.file, framework="pt") as opened:
            found: Tensor = opened.get_tensor(name) if within is None else opened.get_slice(name)[within]
            return found
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{piece.file}: not a whole safetensors file ({error}).") from error
