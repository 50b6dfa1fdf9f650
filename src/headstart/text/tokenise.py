"""Text files -> shards of ids: in constant memory, on several cores, cached by text and tokenizer."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.progress import Progress
from headstart.text import sentences, words
from headstart.text.building import cache_entry, cache_key, is_whole
from headstart.text.documents import TextConfig, content_key, read_blocks, settle_layout
from headstart.text.encoding import SentenceIds
from headstart.text.frames import Frame
from headstart.text.jobs import Job, counted, counting, read_jobs, tokenised, tokenising
from headstart.text.pool import run_here, run_in_workers
from headstart.text.shard_files import FORMAT
from headstart.text.shards import Shards, ShardWriter
from headstart.text.tokenizer import Tokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.wordpiece import WordPieceTokenizer
from headstart.text.wordpiece_learning import learn_wordpiece
from headstart.text.wordpiece_loading import load_wordpiece

# For fewer bytes, starting processes costs more than it saves.
SMALL = 2_000_000
# Counting takes larger jobs than tokenising: its result, the distinct words, grows more slowly than the text.
COUNTED_CHARACTERS = 1 << 20
GZIP_RATIO = 3  # an estimate, to choose a sample: text packs to about a third


@dataclass(frozen=True, slots=True)
class Corpora:
    """Shards for training and for validation. reused: whether they came from the cache."""

    train: Shards
    valid: Shards | None
    reused: bool

    @property
    def name(self) -> str:
        """Of their folder in the cache: equal names, equal text, cut into equal units."""
        return self.train.directory.parent.name


def prepare(
    paths: Sequence[Path],
    valid_paths: Sequence[Path] | None,
    tokenizer: Tokenizer,
    config: TextConfig,
    *,
    cache: Path,
    max_sentence: int | None,
    workers: int,
) -> Generator[Progress, None, Corpora]:
    """Tokenise the text into shards, or take them from the cache. They do not depend on `workers`.

    valid_paths: None holds out every document i with i % period == period - 1, where period = 1 / valid_share.
    max_sentence: longer sentences are cut into pieces of at most this many units.
    """
    config, _ = settle_layout(paths, config)  # one layout, that of the training text, for both
    key = cache_key(
        format=FORMAT,
        sentences=sentences.RULE,
        tokenizer=tokenizer.fingerprint,
        text=content_key(paths),
        valid=content_key(valid_paths) if valid_paths else config.valid_share,
        reading=reading_settings(paths, config),
        lines_are_sentences=config.lines_are_sentences,
        max_sentence=max_sentence,
    )
    target = cache / "shards" / key
    found = open_corpora(target, reused=True)
    if found is not None:
        return found
    stages = [(paths, "train", None if valid_paths else "valid")]
    stages += [(valid_paths, "valid", None)] if valid_paths else []
    total = sum(size_of(files) for files, _, _ in stages)
    before = 0
    with cache_entry(target) as folder:
        for files, main, held_out in stages:
            results = tokenise_files(files, tokenizer, config, max_sentence, workers)
            directories = folder / main, folder / held_out if held_out else None
            with closing(write_shards(results, *directories, len(tokenizer), config.valid_share)) as writing:
                for read in writing:
                    os.utime(folder)  # says that its builder lives: a folder untouched for a day is removed
                    yield Progress("tokenising", before + read, total)
            before += size_of(files)
        check_not_empty(folder, paths)
    made = open_corpora(target, reused=False)
    if made is None:
        raise DataError(f"{target}: the tokenised text was removed while it was being made. Start again.")
    return made


def tokenise_files(
    paths: Sequence[Path], tokenizer: Tokenizer, config: TextConfig, max_sentence: int | None, workers: int
) -> Generator[tuple[Job, Frame], None, None]:
    jobs = read_jobs(paths, config)
    if stays_here(paths, workers):
        yield from run_here(tokenising(tokenizer, config.lines_are_sentences, max_sentence), jobs)
        return
    with tempfile.TemporaryDirectory() as saved:
        tokenizer.save(Path(saved))
        order = {"lines_are_sentences": config.lines_are_sentences, "max_sentence": max_sentence}
        yield from run_in_workers(Frame({"work": "tokenise", "tokenizer": saved, **order}), jobs, workers)


def write_shards(
    results: Generator[tuple[Job, Frame], None, None],
    main: Path,
    held_out: Path | None,
    vocabulary_size: int,
    valid_share: float,
) -> Generator[int, None, None]:
    """Write tokenised documents in order, one in 1 / valid_share to `held_out`. Yields the bytes read."""
    period = round(1 / valid_share) if held_out and valid_share else None
    documents = 0
    with closing(results), ExitStack() as writers:
        train = writers.enter_context(ShardWriter(main, vocabulary_size))
        valid = writers.enter_context(ShardWriter(held_out, vocabulary_size)) if held_out and period else None
        for job, frame in results:
            found, per_block = tokenised(frame)
            # A block that continues a document has that document's number.
            numbers = documents + np.cumsum(job.starts) - 1
            documents += int(np.count_nonzero(job.starts))
            kept_back = numbers % period == period - 1 if period else np.zeros(len(numbers), dtype=np.bool_)
            if valid is None or not kept_back.any():
                train.add_blocks(found, per_block, job.starts)
            else:
                train.add_blocks(*of_blocks(found, per_block, ~kept_back), job.starts[~kept_back])
                valid.add_blocks(*of_blocks(found, per_block, kept_back), job.starts[kept_back])
            yield job.read


def of_blocks(
    found: SentenceIds, per_block: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[SentenceIds, NDArray[np.int64]]:
    """The sentences of the chosen blocks."""
    sentences_chosen = np.repeat(chosen, per_block)
    units_chosen = np.repeat(sentences_chosen, found.lengths)
    part = SentenceIds(found.ids[units_chosen], found.lengths[sentences_chosen], found.extras)
    return part, per_block[chosen]


def check_not_empty(folder: Path, paths: Sequence[Path]) -> None:
    """Text without a word is an error. A validation part that got no document, as of a short text, is removed."""
    if not Shards.open(folder / "train").n_sentences:
        raise DataError(f"{paths[0]}: the tokenizer finds no word in this text. Check that it is the right file.")
    valid = folder / "valid"
    if valid.is_dir() and not Shards.open(valid).n_sentences:
        shutil.rmtree(valid)


def open_corpora(target: Path, reused: bool) -> Corpora | None:
    """The cached shards, or None. A damaged entry is removed, so that it is made again."""
    if not is_whole(target):
        return None
    try:
        valid = Shards.open(target / "valid") if (target / "valid").is_dir() else None
        return Corpora(Shards.open(target / "train"), valid, reused)
    except DataError:
        shutil.rmtree(target)
        return None


def reading_settings(paths: Sequence[Path], config: TextConfig) -> list[object]:
    """The settings that decide which documents the files contain."""
    return [config.field, settle_layout(paths, config)[0].one_per_line]


def stays_here(paths: Sequence[Path], workers: int) -> bool:
    return workers == 1 or size_of(paths) < SMALL


def size_of(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def count_words(
    paths: Sequence[Path], config: TextConfig, *, lowercase: bool, cache: Path, workers: int
) -> Generator[Progress, None, WordCounter]:
    """Word counts of the text, from the cache if it was counted before."""
    key = cache_key(
        rule=words.RULE, text=content_key(paths), reading=reading_settings(paths, config), lowercase=lowercase
    )
    path = cache / "words" / f"{key}.tsv"
    cached = WordCounter.load(path, lowercase)
    if cached is not None:
        return cached
    counter = WordCounter(lowercase=lowercase)
    jobs = read_jobs(paths, config, COUNTED_CHARACTERS)
    if stays_here(paths, workers):
        results = run_here(counting(lowercase), jobs)
    else:
        results = run_in_workers(Frame({"work": "count", "lowercase": lowercase}), jobs, workers)
    total = size_of(paths)
    with closing(results):
        for job, frame in results:
            counter.add(counted(frame))
            yield Progress("counting words", job.read, total)
    counter.save(path)
    return counter


def learn_pieces(
    paths: Sequence[Path],
    config: TextConfig,
    *,
    size: int,
    lowercase: bool,
    exact: bool,
    cache: Path,
    min_count: int = 2,
    sample_bytes: int = 200_000_000,
) -> Generator[Progress, None, WordPieceTokenizer]:
    """Learn WordPiece from the text, or from an even sample of a large one; cached by text and settings."""
    options = {"lowercase": lowercase, "exact": exact}
    counts = {"size": size, "min_count": min_count, "sample_bytes": sample_bytes}
    key = cache_key(text=content_key(paths), reading=reading_settings(paths, config), **options, **counts)
    target = cache / "wordpiece" / key
    if not is_whole(target):
        with cache_entry(target) as folder, ThreadPoolExecutor(1) as thread:
            sample = TextSample(paths, config, sample_bytes)
            learning = thread.submit(lambda: learn_wordpiece(sample, size=size, min_count=min_count, **options))
            try:
                while not learning.done():
                    wait([learning], timeout=0.2)
                    yield Progress("learning WordPiece", sample.done(), sample.total)
            finally:
                sample.stopped = True
            learning.result().save(folder)
    return load_wordpiece(target)


class TextSample:
    """An even sample of the documents, the same in each pass, which reports its progress."""

    PASSES = 2  # learn_wordpiece reads the text twice

    def __init__(self, paths: Sequence[Path], config: TextConfig, most_bytes: int) -> None:
        self.stopped = False
        self.total = size_of(paths)
        self._paths, self._config = paths, config
        self._most = most_bytes
        unpacked = sum(path.stat().st_size * (GZIP_RATIO if path.suffix == ".gz" else 1) for path in paths)
        self._share = min(1.0, most_bytes / unpacked) if unpacked else 1.0
        self._passes = 0
        self._read = 0

    def done(self) -> int:
        return (max(self._passes - 1, 0) * self.total + self._read) // self.PASSES

    def __iter__(self) -> Iterator[str]:
        self._passes += 1
        credit, taken = 0.0, 0
        for block in read_blocks(self._paths, self._config, self._note):
            if self.stopped:
                raise DataError("Learning WordPiece was stopped.")
            credit += self._share
            if credit >= 1.0 and taken < self._most:
                credit -= 1.0
                taken += len(block.text.encode("utf-8"))
                yield block.text

    def _note(self, read: int) -> None:
        self._read = read
