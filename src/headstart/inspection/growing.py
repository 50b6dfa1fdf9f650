"""Files that grow while vectors are computed, and that can be cut back to where they were."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import CheckpointError

BUFFER_BYTES = 1 << 20


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn an OSError into a CheckpointError of one sentence."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror}). Make room there and give the same command again, which "
            "goes on where it was, or give another --out."
        ) from error


def too_short(path: Path, there: int, size: int) -> CheckpointError:
    return CheckpointError(
        f"{path}: has {there:,} bytes of the {size:,} that were written. Remove {path.parent} to begin anew."
    )


class GrowingFile:
    """Bytes that are only added. `size`: how many there are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file: IO[bytes] | None = None

    def open(self, size: int) -> None:
        """Go on after `size` bytes: what was written behind them was not finished. 0: begin anew."""
        there = self.path.stat().st_size if size and self.path.exists() else 0
        if there < size:
            raise too_short(self.path, there, size)
        with reporting(self.path):
            self._file = self.path.open("r+b" if size else "w+b", BUFFER_BYTES)
            self._file.truncate(size)
            self._file.seek(size)
        self.size = size

    def write(self, data: bytes) -> None:
        with reporting(self.path):
            self.opened.write(data)
        self.size += len(data)

    def copy(self, source: Path, begin: int, end: int) -> None:
        """Add these bytes of another file."""
        try:
            with source.open("rb") as file:
                file.seek(begin)
                while begin < end and (some := file.read(min(BUFFER_BYTES, end - begin))):
                    self.write(some)
                    begin += len(some)
        except OSError as error:
            raise CheckpointError(f"{source}: cannot be read ({error.strerror}).") from error
        if begin < end:
            raise too_short(source, begin, end)

    def flush(self) -> None:
        """To the disk."""
        with reporting(self.path):
            self.opened.flush()
            os.fsync(self.opened.fileno())

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # closing flushes the buffer, and the disk may be full
                self._file.close()

    @property
    def opened(self) -> IO[bytes]:
        if self._file is None:
            raise RuntimeError("a GrowingFile is used after `open`")
        return self._file


class GrowingArray(GrowingFile):
    """A .npy file that grows by rows. Its header tells their number once it is complete."""

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        super().__init__(path)
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.row_shape = row_shape
        self.rows = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows, *self.row_shape

    def open(self, rows: int) -> None:
        """Go on after so many rows."""
        header = self._header(0)
        super().open(len(header) + rows * self._row_bytes if rows else 0)
        if not rows:
            self.write(header)
        self.rows = rows

    def add(self, rows: NDArray[Any]) -> None:
        self.rows += len(rows)
        self.write(rows.astype(self.dtype, copy=False).tobytes())

    def append(self, other: GrowingArray, rows: int) -> None:
        """Add the first rows of another array of the same type."""
        begin = len(self._header(0))
        self.copy(other.path, begin, begin + rows * self._row_bytes)
        self.rows += rows

    def complete(self) -> None:
        """Write the final number of rows into the header, and flush."""
        with reporting(self.path):
            self.opened.seek(0)
            self.opened.write(self._header(self.rows))
            self.opened.seek(0, os.SEEK_END)
        self.flush()

    def read(self) -> NDArray[Any]:
        """All rows, mapped from the disk."""
        return np.load(self.path, mmap_mode="r") if self.rows else np.zeros(self.shape, self.dtype)

    @property
    def _row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.row_shape))

    def _header(self, rows: int) -> bytes:
        # numpy pads the header, so that its length does not depend on the number of rows.
        out = io.BytesIO()
        described = {"descr": self.dtype.str, "fortran_order": False, "shape": (rows, *self.row_shape)}
        np.lib.format.write_array_header_1_0(out, described)
        return out.getvalue()


class GrowingTexts(GrowingFile):
    """A JSON value per line."""

    def add(self, value: str | list[str]) -> None:
        self.write(json.dumps(value).encode("ascii") + b"\n")

    def read(self) -> Iterator[Any]:
        with self.path.open(encoding="ascii") as file:
            for line in file:
                yield json.loads(line)
