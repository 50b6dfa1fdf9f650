"""Writes shards with plain file writes: writing to a memory map would crash with SIGBUS on a full disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.text.encoding import SentenceIds
from headstart.text.shard_files import ENDS, INDEX, NARROW, PARTS, WIDE, ShardCounts, shard_file, write_index

BUFFER = 1 << 20
# Out-of-vocabulary words are numbered through a table of at most this many. A word seen again after the table was
# cleared gets a second number, which costs a few bytes; an unbounded table would cost memory.
REMEMBERED_EXTRAS = 200_000


class ShardWriter:
    """Appends documents to shards. Only a document larger than a shard spans several; it is cut between sentences.

    As a context manager it closes at the end, or removes what it wrote if there was an error.
    """

    def __init__(self, directory: Path, vocabulary_size: int, shard_units: int = 16_000_000) -> None:
        self.directory = directory
        self.vocabulary_size = vocabulary_size
        self.shard_units = shard_units
        self._finished: list[ShardCounts] = []
        self._shard: _OpenShard | None = None
        self._extra_numbers: dict[str, int] = {}
        self._n_extras = 0
        self._document_open = False
        with self._reporting():
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise DataError(f"{directory}: shards are written into an empty folder, and this one is not. Empty it.")

    def add(self, sentence_ids: SentenceIds, starts_document: bool) -> None:
        """Append the sentences of one block of text."""
        self.add_blocks(sentence_ids, np.array([len(sentence_ids.lengths)]), np.array([starts_document]))

    def add_blocks(self, sentence_ids: SentenceIds, sentences: NDArray[Any], starts: NDArray[np.bool_]) -> None:
        """Append many blocks: block i has sentences[i] sentences, and starts a document if starts[i].

        Empty sentences and empty documents are left out.
        """
        document = np.repeat(np.cumsum(starts), sentences)  # 0: the document left open by the previous call
        kept = sentence_ids.lengths > 0
        lengths, document = sentence_ids.lengths[kept].astype(np.int64), document[kept]
        opens = np.diff(document, prepend=0) > 0
        if len(opens) and not self._document_open:
            opens[0] = True
        with self._reporting():
            ids = self._number_extras(sentence_ids)
            while len(lengths):
                n = self._write_while_room(ids, lengths, opens)
                ids, lengths, opens = ids[int(lengths[:n].sum()) :], lengths[n:], opens[n:]
                if len(lengths):
                    self._finish_shard()
                    opens[0] = True
        # A document that starts in the last blocks, but has no sentence yet, starts with its first sentence.
        began = int(np.count_nonzero(starts))
        last_with_sentences = int(document[-1]) if len(document) else 0
        self._document_open = last_with_sentences == began and (self._document_open or len(document) > 0)

    def close(self) -> None:
        """Finish the last shard and write the index, which makes the folder valid."""
        with self._reporting():
            self._finish_shard()
            write_index(self.directory, self.vocabulary_size, self._finished)

    def discard(self) -> None:
        """Remove what was written."""
        if self._shard is not None:
            self._shard.abandon()
            self._shard = None
        if not self.directory.is_dir():
            return
        for number in range(len(self._finished) + 1):
            for part in PARTS:
                shard_file(self.directory, number, part).unlink(missing_ok=True)
        for name in (INDEX, f"{INDEX}.part"):
            (self.directory / name).unlink(missing_ok=True)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _write_while_room(self, ids: NDArray[np.int32], lengths: NDArray[np.int64], opens: NDArray[np.bool_]) -> int:
        """Append sentences until the shard is full. Returns how many were written."""
        shard = self._shard or self._open_shard()
        before = shard.units + np.cumsum(lengths) - lengths
        document_start = np.maximum.accumulate(np.where(opens, before, shard.document_start))
        full = (before >= self.shard_units) & (opens | (before - document_start >= self.shard_units))
        n = int(np.argmax(full)) if full.any() else len(lengths)
        if n:
            shard.append(ids[: int(lengths[:n].sum())], lengths[:n], opens[:n], self.vocabulary_size)
            shard.document_start = int(document_start[n - 1])
        return n

    def _number_extras(self, sentence_ids: SentenceIds) -> NDArray[np.int32]:
        """Renumber out-of-vocabulary words: from the numbers of one call to those of the whole corpus."""
        ids = sentence_ids.ids
        outside = ids >= self.vocabulary_size
        if not outside.any():
            return ids
        local = ids[outside] - self.vocabulary_size
        numbers = np.zeros(len(sentence_ids.extras), dtype=np.int32)
        if len(self._extra_numbers) > REMEMBERED_EXTRAS:
            self._extra_numbers.clear()
        new: list[bytes] = []
        for index in np.unique(local).tolist():
            word = sentence_ids.extras[index]
            number = self._extra_numbers.get(word)
            if number is None:
                number = self._extra_numbers[word] = self._n_extras
                self._n_extras += 1
                new.append(word.encode("utf-8"))
            numbers[index] = number
        shard = self._shard or self._open_shard()
        shard.append_extras(new)
        numbered = ids.copy()
        numbered[outside] = numbers[local] + self.vocabulary_size
        return numbered

    def _open_shard(self) -> _OpenShard:
        dtype = NARROW if self.vocabulary_size <= 1 << 16 else WIDE
        self._shard = _OpenShard(self.directory, len(self._finished), dtype)
        return self._shard

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._finished.append(self._shard.finish())
            self._shard = None

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            raise DataError(
                f"{self.directory}: the tokenised text cannot be written ({error.strerror}). Make room there, or "
                "choose another place with the environment variable HEADSTART_HOME; nothing half-written was left."
            ) from error


class _OpenShard:
    """The files of the shard being written."""

    def __init__(self, directory: Path, number: int, dtype: str) -> None:
        self.units = self.sentences = self.documents = self.extras = self.extra_bytes = 0
        self.document_start = 0  # start of the current document, in units
        self.dtype = dtype
        self._ids_path = shard_file(directory, number, "ids")
        self._files: dict[str, BinaryIO] = {}
        for part in PARTS:
            self._files[part] = shard_file(directory, number, part).open("wb", buffering=BUFFER)

    def append(
        self, ids: NDArray[np.int32], lengths: NDArray[np.int64], opens: NDArray[np.bool_], vocabulary_size: int
    ) -> None:
        if self.dtype == NARROW and ids.max() >= vocabulary_size:
            self._widen()
        self._write("ids", ids.astype(self.dtype))
        self._write("sentences", (self.units + np.cumsum(lengths)).astype(ENDS))
        # A document ends where the next one starts.
        ended = self.sentences + np.flatnonzero(opens)
        ended = ended[ended > 0]
        self._write("documents", ended.astype(ENDS))
        self.units += len(ids)
        self.sentences += len(lengths)
        self.documents += len(ended)

    def append_extras(self, words: list[bytes]) -> None:
        if words:
            ends = self.extra_bytes + np.cumsum([len(word) for word in words])
            self._files["extras"].write(b"".join(words))
            self._write("extra_ends", ends.astype(ENDS))
            self.extras += len(words)
            self.extra_bytes = int(ends[-1])

    def finish(self) -> ShardCounts:
        if self.sentences:
            self._write("documents", np.array([self.sentences], dtype=ENDS))
            self.documents += 1
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return ShardCounts(self.units, self.sentences, self.documents, self.extras, self.extra_bytes, self.dtype)

    def abandon(self) -> None:
        for file in self._files.values():
            try:
                file.close()
            except OSError:  # flushing the buffer failed, but the file is about to be removed
                continue

    def _widen(self) -> None:
        """Rewrite the ids so far as int32, at the first out-of-vocabulary word."""
        self._files["ids"].close()
        wide_path = self._ids_path.with_suffix(".ids.wide")
        try:
            with self._ids_path.open("rb") as narrow, wide_path.open("wb", buffering=BUFFER) as wide:
                while some := narrow.read(BUFFER):
                    wide.write(np.frombuffer(some, dtype=NARROW).astype(WIDE).data)
            wide_path.replace(self._ids_path)
        finally:
            wide_path.unlink(missing_ok=True)
        self._files["ids"] = self._ids_path.open("ab", buffering=BUFFER)
        self.dtype = WIDE

    def _write(self, part: str, array: NDArray[Any]) -> None:
        self._files[part].write(array.data)
