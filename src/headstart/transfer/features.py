"""Frozen features: an encoder's vectors of every text, computed once, kept on disk and read memory-mapped.

They belong to texts, whatever task reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import AnyText, Joined, Marked, TextRow, padded, text_row
from headstart.config import settings_of
from headstart.encoders.base import Encoder
from headstart.encoders.representations import Representations
from headstart.errors import DataError
from headstart.pretrained import Pretrained
from headstart.progress import Progress
from headstart.text.building import cache_entry, cache_key, is_whole

LAYOUT = 1
"""Goes up when the layout of the files changes, so that older entries are not read."""
ADDED_LATER = [("tokens", "characters")]
"""Settings that encoders did not have when the first features were kept, with the value that was the only one then."""
LARGEST_EXACT = 2_000_000_000
"""Bytes up to which features keep every bit; larger tables are halved to float16."""
Precision = Literal["auto", "float32", "float16"]


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """layers: (all words, K, D), mapped from disk; text i has the words offsets[i] to offsets[i + 1]."""

    rows: dict[AnyText, int]
    offsets: NDArray[np.int64]
    layers: NDArray[Any]
    cut: NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        """K and D."""
        return int(self.layers.shape[1]), int(self.layers.shape[2])

    def length(self, row: int) -> int:
        return int(self.offsets[row + 1] - self.offsets[row])

    def moments(self, rows: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and deviation of every column over the words of some texts: (K, D) each."""
        total, square, count = np.zeros(self.shape), np.zeros(self.shape), 0
        for row in rows:
            words = self.layers[self.offsets[row] : self.offsets[row + 1]].astype(np.float64)
            total, square, count = total + words.sum(0), square + (words**2).sum(0), count + len(words)
        mean = total / max(1, count)
        deviation = np.sqrt(np.maximum(square / max(1, count) - mean**2, 0.0))
        return torch.from_numpy(mean.astype(np.float32)), torch.from_numpy(deviation.astype(np.float32))

    def means(self, rows: Sequence[int]) -> Representations:
        """The mean of each text's words, as texts of one word: layers (K, B, 1, D). A text without words has none."""
        K, D = self.shape
        found = np.zeros((len(rows), 1, K, D), dtype=np.float32)
        mask = np.array([self.length(row) > 0 for row in rows], dtype=bool)[:, None]
        for number, row in enumerate(rows):
            if mask[number]:
                found[number, 0] = self.layers[self.offsets[row] : self.offsets[row + 1]].mean(0, dtype=np.float32)
        return Representations(torch.from_numpy(found).permute(2, 0, 1, 3), torch.from_numpy(mask))

    def batch(self, texts: Sequence[Sequence[int]]) -> Representations:
        """The features of some texts, padded at the end: layers (K, B, W, D). texts: the rows of each, one or, of texts
        apart, two, whose words follow each other."""
        lengths = [sum(map(self.length, rows)) for rows in texts]
        K, D = self.shape
        found = np.zeros((len(texts), max(1, max(lengths, default=0)), K, D), dtype=np.float32)
        mask = np.zeros(found.shape[:2], dtype=bool)
        for number, rows in enumerate(texts):
            seen = 0
            for row in rows:
                first, last = self.offsets[row : row + 2]
                found[number, seen : seen + last - first] = self.layers[first:last]
                seen += last - first
            mask[number, :seen] = True
        return Representations(torch.from_numpy(found).permute(2, 0, 1, 3), torch.from_numpy(mask))

    def parts(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """(B, W), which of a text's rows each of its words stands in."""
        rows = [np.repeat(np.arange(len(own)), [self.length(row) for row in own]) for own in texts]
        return padded(rows)[0]


def gather(
    pretrained: Pretrained,
    texts: Sequence[AnyText],
    *,
    longest: int,
    cache: Path,
    with_first: bool = False,
    every_piece: bool = False,
    precision: Precision = "auto",
) -> Generator[Progress, None, FeatureTable]:
    """The features of all distinct texts, from the cache or else computed in length-sorted batches and put there."""
    distinct = list(dict.fromkeys(texts))
    with_first = with_first and pretrained.encoder.marks > 0
    pieces = {"every_piece": True} if every_piece else {}  # keys from before there was a choice stay as they were
    key = cache_key(
        layout=LAYOUT,
        kind=pretrained.kind,
        encoder=encoder_fingerprint(pretrained.encoder),
        tokenizer=pretrained.tokenizer.fingerprint,
        texts=texts_digest(distinct),
        longest=longest,
        with_first=with_first,
        precision=precision,
        **pieces,
    )
    target = cache / "features" / key
    if not is_whole(target):
        build = partial(text_row, pretrained.encoder, pretrained.tokenizer, longest=longest)
        rows = [build(text, with_first=with_first, every_piece=every_piece) for text in distinct]
        with cache_entry(target) as folder:
            yield from compute(pretrained, rows, folder, precision)
    return open_table(target, distinct)


def computed(pretrained: Pretrained, rows: Mapping[AnyText, TextRow]) -> FeatureTable:
    """The features of some texts, which stay in memory."""
    listed = list(rows.values())
    offsets, K, D = offsets_of(listed), *pretrained.encoder.shape
    table = np.zeros((int(offsets[-1]), K, D), dtype=np.float32)
    with_words = [number for number, row in enumerate(listed) if len(row.word_starts)]
    for numbers, words in pretrained.encode_rows([listed[number] for number in with_words]):
        place(table, offsets, [with_words[number] for number in numbers], words)
    cut = np.array([row.cut for row in listed], dtype=bool)
    return FeatureTable({text: number for number, text in enumerate(rows)}, offsets, table, cut)


def joined_tables(tables: Sequence[FeatureTable]) -> FeatureTable:
    """One or more tables of different texts as one."""
    if len(tables) == 1:
        return tables[0]
    rows: dict[AnyText, int] = {}
    for table in tables:
        rows |= {text: row + len(rows) for text, row in table.rows.items()}
    lengths = np.concatenate([np.diff(table.offsets) for table in tables])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    layers, cut = (np.concatenate(parts) for parts in zip(*((t.layers, t.cut) for t in tables), strict=True))
    return FeatureTable(rows, offsets, layers, cut)


def offsets_of(rows: Sequence[TextRow]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(row.word_starts) for row in rows])]).astype(np.int64)


def place(table: NDArray[Any], offsets: NDArray[np.int64], numbers: Sequence[int], words: torch.Tensor) -> None:
    """Put the vectors of some rows where they belong. words: (K, words, D), row after row."""
    values, seen = words.transpose(0, 1).cpu().numpy(), 0
    for number in numbers:
        n = offsets[number + 1] - offsets[number]
        table[offsets[number] : offsets[number + 1]] = values[seen : seen + n]
        seen += n


def compute(
    pretrained: Pretrained, rows: list[TextRow], folder: Path, precision: Precision
) -> Generator[Progress, None, None]:
    offsets = offsets_of(rows)
    table: NDArray[Any] | None = None
    done = 0
    for numbers, words in pretrained.encode_rows(rows):
        if table is None:
            table = new_table(folder, (int(offsets[-1]), *pretrained.encoder.shape), precision)
        place(table, offsets, numbers, words)
        done += len(numbers)
        os.utime(folder)  # still at work: not a folder that somebody left
        yield Progress("encoding", done, len(rows), "texts")
    if table is None:
        raise DataError("There is no text to compute features of.")
    table.flush()  # type: ignore[attr-defined]
    np.save(folder / "offsets.npy", offsets)
    np.save(folder / "cut.npy", np.array([row.cut for row in rows], dtype=bool))
    (folder / "shape.json").write_text(json.dumps({"shape": list(table.shape), "dtype": str(table.dtype)}))


def new_table(folder: Path, shape: tuple[int, ...], precision: Precision) -> NDArray[Any]:
    size = int(np.prod(shape, dtype=np.int64))
    exact = precision == "float32" or (precision == "auto" and 4 * size <= LARGEST_EXACT)
    dtype = np.dtype(np.float32 if exact else np.float16)
    path = folder / "layers.bin"
    try:
        with path.open("wb") as file:
            # A mapped file that outgrows its disk kills the process: the room is taken beforehand.
            os.posix_fallocate(file.fileno(), 0, max(1, size * dtype.itemsize))
    except OSError as error:
        raise DataError(
            f"{folder.parent}: {size * dtype.itemsize:,} bytes of features do not fit ({error.strerror}). Set "
            f"HEADSTART_HOME to a folder with more room, or use fewer or shorter texts."
        ) from error
    return np.memmap(path, dtype=dtype, mode="r+", shape=shape)


def open_table(folder: Path, texts: list[AnyText]) -> FeatureTable:
    try:
        described = json.loads((folder / "shape.json").read_text())
        shape, dtype = tuple(described["shape"]), np.dtype(described["dtype"])
        layers = np.memmap(folder / "layers.bin", dtype=dtype, mode="r", shape=shape)
        offsets, cut = np.load(folder / "offsets.npy"), np.load(folder / "cut.npy")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder}: the cached features are broken ({error}). Remove this folder.") from error
    return FeatureTable({text: row for row, text in enumerate(texts)}, offsets, layers, cut)


def encoder_fingerprint(encoder: Encoder) -> str:
    """SHA-256 of the encoder's settings, and of its tensors with their names: weights, and vectors given ready."""
    # Buffers that are not saved are in no state_dict.
    return tensors_digest(encoder, {**encoder.state_dict(), **dict(encoder.named_buffers())})


def tensors_digest(encoder: Encoder, tensors: Mapping[str, torch.Tensor]) -> str:
    settings = {key: value for key, value in settings_of(encoder.config).items() if (key, value) not in ADDED_LATER}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, tensor in tensors.items():
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def texts_digest(texts: Sequence[AnyText]) -> str:
    """SHA-256 of the texts in order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(with_length(spelled(text)))
    return digest.hexdigest()


def spelled(text: AnyText) -> bytes:
    """Different for any two texts. A text that is given as words differs from the same words in a string, which might
    be split otherwise. All but strings begin with a byte that UTF-8 never has."""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, Marked):
        return b"\xfd" + with_length(f"{text.first} {text.end}".encode()) + spelled(text.words)
    kind, parts = (b"\xfe", (text.first, text.second)) if isinstance(text, Joined) else (b"\xff", text)
    return kind + b"".join(with_length(spelled(part)) for part in parts)


def with_length(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data
