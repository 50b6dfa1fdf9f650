"""The vectors of every layer on disk, each layer in a file of its own: written together, read one by one."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryFile, gettempdir
from types import TracebackType
from typing import Self

import numpy as np

from headstart.errors import DataError
from headstart.pretrained import Vectors


class LayerFiles:
    """Rows of K layers of width D in temporary files, which are gone after the `with` block.

    Thirteen layers of 20,000 words are 800 MB; in files, only one layer is in memory at a time.
    """

    def __init__(self, K: int, D: int) -> None:
        self.K, self.D = K, D
        self.rows = 0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._files = [stack.enter_context(TemporaryFile(prefix="headstart-")) for _ in range(self.K)]
            self._open = stack.pop_all()
        return self

    def add(self, rows: Vectors) -> None:
        """rows: (n, K, D)."""
        try:
            for layer, file in enumerate(self._files):
                file.write(np.ascontiguousarray(rows[:, layer], dtype=np.float32).data)
        except OSError as error:
            raise DataError(
                f"{gettempdir()}: the vectors of the layers cannot be kept there ({error.strerror}). Make room, set "
                f"TMPDIR to a larger disk, or ask for fewer words."
            ) from error
        self.rows += len(rows)

    def layer(self, number: int) -> Vectors:
        """(rows, D)."""
        file = self._files[number]
        file.seek(0)
        found: Vectors = np.fromfile(file, np.float32).reshape(self.rows, self.D)
        return found

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._open.close()
