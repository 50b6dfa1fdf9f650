"""HDF5 files of arrays: datasets are checked before they are read, and a file is written whole or not at all."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.atomic import write_atomically
from headstart.errors import CheckpointError, ConfigError

Array = NDArray[np.float32]
OVERHEAD = 8_192
"""Bytes of a file beside each dataset, at most: names, groups and headers."""


class Datasets:
    """The datasets of an open file. It remembers which were read."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file = file
        self.path = path
        self.read_so_far: set[str] = set()

    def __contains__(self, name: str) -> bool:
        with self._reporting_damage(name):
            there = name in self.file
        return there

    def shape(self, name: str) -> tuple[int, ...] | None:
        """None: there is no such dataset."""
        with self._reporting_damage(name):
            shape: tuple[int, ...] | None = getattr(self.file.get(name), "shape", None)
        return shape

    def read(self, name: str, *shapes: tuple[int, ...]) -> Array:
        """A dataset of one of these shapes, as float32."""
        wanted = " or ".join(map(str, shapes))
        shape = self.shape(name)
        if shape is None:
            raise CheckpointError(f"{self.path}: the dataset '{name}' is missing; wanted one of shape {wanted}.")
        if shape not in shapes:
            raise CheckpointError(f"{self.path}: '{name}' has shape {shape}, but the options say {wanted}.")
        with self._reporting_damage(name):
            dataset = self.file[name]
            if dataset.dtype.kind != "f":
                raise CheckpointError(f"{self.path}: '{name}' holds {dataset.dtype}, wanted floating-point numbers.")
            array: Array = dataset[...].astype(np.float32)
        self.read_so_far.add(name)
        return array

    def unread(self) -> list[str]:
        names: list[str] = []
        with self._reporting_damage("/"):
            self.file.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
        return [name for name in names if name not in self.read_so_far]

    @contextmanager
    def _reporting_damage(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:  # what h5py raises for damaged files
            raise CheckpointError(f"{self.path}: '{name}' cannot be read; the file is damaged ({error}).") from error


@contextmanager
def open_hdf5(path: Path) -> Iterator[Datasets]:
    h5py = import_h5py()
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such file.")
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError) as error:
        raise CheckpointError(f"{path}: not a whole HDF5 file ({error}).") from error
    with file:
        yield Datasets(file, path)


def write_hdf5(path: Path, arrays: Mapping[str, Array]) -> None:
    h5py = import_h5py()

    def write(partial: Path) -> None:
        # A disk that is full inside h5py leaves objects that it cannot close, with tracebacks; here it is an OSError.
        with partial.open("wb") as room:
            os.posix_fallocate(room.fileno(), 0, sum(array.nbytes + OVERHEAD for array in arrays.values()))
        with h5py.File(partial, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array)

    write_atomically(path, write, RuntimeError)


def import_h5py() -> Any:
    """Imported only when an HDF5 file is opened or written."""
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise ConfigError("ELMo's original files need the package h5py: pip install h5py") from error
