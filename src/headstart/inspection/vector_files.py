"""The kinds of files that vectors are written into: .npy, ELMo's .h5, and .parquet."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headstart.config import pick
from headstart.errors import CheckpointError, ConfigError
from headstart.inspection.shards import LENGTHS, VECTORS
from headstart.inspection.unfinished import Unfinished
from headstart.pretrained import Pretrained
from headstart.weights.hdf5 import import_h5py

WHOLE = "whole"
"""The finished file while it is in the folder."""
LINES_BETWEEN_REPORTS = 1_000
GROUP_BYTES = 1 << 26
"""Vectors of a parquet file's row group."""


class VectorFile(ABC):
    """One kind of file: what it holds, and how it is made of the rows that were computed."""

    name: ClassVar[str]
    pools: ClassVar[tuple[str, ...]]
    """Those it can hold, its default first."""
    keeps_texts: ClassVar[bool] = True
    """It shows the text beside its vectors."""
    splits_at_space: ClassVar[bool] = False
    """Its words are what stands between spaces, whatever the encoder's own are."""

    @abstractmethod
    def check(self) -> None:
        """Before the work: whether the packages are there that write it."""

    def shown(self, pretrained: Pretrained, text: str, pool: str) -> str | list[str] | None:
        """What it shows of a text, or None."""
        return text

    def places(self, out: Path, pool: str) -> dict[str, Path]:
        """Its files by their names in the folder, and where they belong: the main one last."""
        return {WHOLE: out}

    @abstractmethod
    def assemble(self, part: Unfinished) -> Iterator[int]:
        """Make the finished file of all rows, whole and on the disk; yields how many lines are in it so far."""


class Npy(VectorFile):
    """Rows as they were computed: they are the finished file already."""

    name = ".npy"
    pools = ("mean", "first", "words")
    keeps_texts = False

    def check(self) -> None:
        """It needs none."""

    def shown(self, pretrained: Pretrained, text: str, pool: str) -> str | list[str] | None:
        return None

    def places(self, out: Path, pool: str) -> dict[str, Path]:
        return {LENGTHS: lengths_of(out), VECTORS: out} if pool == "words" else {VECTORS: out}

    def assemble(self, part: Unfinished) -> Iterator[int]:
        return iter(())


class ElmoHdf5(VectorFile):
    """The layout of `allennlp elmo` and of bilm-tf's dump_bilm_embeddings: a dataset per line, named by its number from
    0, (words, D) of one layer or (K, words, D); and which sentence has which number."""

    name = ".h5"
    pools = ("words",)
    splits_at_space = True
    index = "sentence_to_index"

    def check(self) -> None:
        import_h5py()

    def shown(self, pretrained: Pretrained, text: str, pool: str) -> str | list[str] | None:
        return text.strip()

    def assemble(self, part: Unfinished) -> Iterator[int]:
        h5py = import_h5py()
        path = part.folder / WHOLE
        vectors, lengths, texts = every_line(part)
        numbers: dict[str, str] = {}
        end = 0
        try:
            with h5py.File(path, "w") as file:
                for number, (length, text) in enumerate(zip(lengths, texts, strict=True)):
                    rows = vectors[end : end + length]
                    end += length
                    file.create_dataset(str(number), data=rows if rows.ndim == 2 else rows.transpose(1, 0, 2))
                    if text:
                        numbers[text] = str(number)  # of equal sentences the last, as AllenNLP's
                    if number % LINES_BETWEEN_REPORTS == 0:
                        yield number + 1
                index = file.create_dataset(self.index, (1,), dtype=h5py.string_dtype())
                index[0] = json.dumps(numbers)
            to_disk(path)
        except (OSError, RuntimeError) as error:  # h5py raises both when a disk is full
            raise unwritten(path, error) from error


class Parquet(VectorFile):
    """A row per line, or per word: where it stands, its text, its vector."""

    name = ".parquet"
    pools = ("mean", "first", "words")

    def check(self) -> None:
        import_pyarrow()

    def shown(self, pretrained: Pretrained, text: str, pool: str) -> str | list[str] | None:
        return pretrained.words(text) if pool == "words" else text

    def assemble(self, part: Unfinished) -> Iterator[int]:
        pyarrow = import_pyarrow()
        path = part.folder / WHOLE
        done, end = 0, 0
        vectors, lengths, texts = every_line(part)
        lines = max(1, GROUP_BYTES // max(1, vectors[:1].nbytes))
        try:
            with pyarrow.parquet.ParquetWriter(path, self.schema(part)) as writer:
                while shown := list(islice(texts, lines)):
                    counts = lengths[done : done + len(shown)]
                    rows = int(counts.sum())
                    columns = {
                        "line": np.repeat(np.arange(done, done + len(shown)), counts),
                        **self.texts(part, shown),
                        **self.vectors(part, vectors[end : end + rows]),
                    }
                    writer.write_table(pyarrow.table(columns, schema=self.schema(part)))
                    done, end = done + len(shown), end + rows
                    yield done
            to_disk(path)
        except (OSError, pyarrow.ArrowException) as error:
            raise unwritten(path, error) from error

    def schema(self, part: Unfinished) -> Any:
        pyarrow = import_pyarrow()
        text: dict[str, Any] = {"text": pyarrow.string()}
        if part.lengths is not None:
            text = {"place": pyarrow.int32(), "word": pyarrow.string()}
        vector = pyarrow.list_(pyarrow.float32(), part.vectors.row_shape[-1])
        return pyarrow.schema({"line": pyarrow.int64(), **text, **dict.fromkeys(self.names(part), vector)})

    def names(self, part: Unfinished) -> list[str]:
        """Of the columns with vectors: one for each layer."""
        several = len(part.vectors.row_shape) > 1
        return [f"layer_{layer}" for layer in part.settings["layers"]] if several else ["vector"]

    def texts(self, part: Unfinished, shown: list[Any]) -> dict[str, Any]:
        if part.lengths is None:
            return {"text": shown}
        return {
            "place": np.concatenate([np.arange(len(words), dtype=np.int32) for words in shown]),
            "word": [word for words in shown for word in words],
        }

    def vectors(self, part: Unfinished, rows: NDArray[np.float32]) -> dict[str, Any]:
        pyarrow = import_pyarrow()
        layers = rows[:, None] if rows.ndim == 2 else rows
        return {
            name: pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(np.ascontiguousarray(layers[:, place]).reshape(-1)), layers.shape[-1]
            )
            for place, name in enumerate(self.names(part))
        }


FILES: dict[str, VectorFile] = {".npy": Npy(), ".h5": ElmoHdf5(), ".hdf5": ElmoHdf5(), ".parquet": Parquet()}
"""By the ending of the file's name."""


def file_of(out: Path) -> VectorFile:
    if out.suffix not in FILES:
        *others, last = FILES
        raise ConfigError(f"--out must be the name of a {', '.join(others)} or {last} file; got {out}.")
    return FILES[out.suffix]


def pool_for(file: VectorFile, pool: str | None) -> str:
    """The pool that was asked for, if a file can hold it; None: the file's default."""
    if pool is None:
        return file.pools[0]
    wanted = pick({name: name for name in FILES[".npy"].pools}, pool, "pool")
    if wanted not in file.pools:
        raise ConfigError(
            f"{file.name} is ELMo's layout, which has a vector for each word. Leave out --pool {wanted}, or write .npy "
            "or .parquet."
        )
    return wanted


def lengths_of(out: Path) -> Path:
    return out.with_name(f"{out.stem}.lengths.npy")


def every_line(part: Unfinished) -> tuple[NDArray[np.float32], NDArray[np.int64], Iterator[Any]]:
    """All rows, how many belong to each line, and what is shown of each line's text."""
    if part.texts is None:
        raise RuntimeError("a file that shows its texts was begun without them")
    lengths = np.ones(part.reached.lines, np.int64) if part.lengths is None else np.array(part.lengths.read())
    return part.vectors.read(), lengths, part.texts.read()


def to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def unwritten(path: Path, error: Exception) -> CheckpointError:
    reason = getattr(error, "strerror", None) or error
    return CheckpointError(
        f"{path}: cannot be written ({reason}). Every line is encoded: make room there and give the same command again."
    )


def import_pyarrow() -> Any:
    """Imported only when a parquet file is written."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(
            "Writing parquet files needs pyarrow. Install it with: pip install 'headstart[parquet]'"
        ) from error
    return pyarrow
