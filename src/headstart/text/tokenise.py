"""Text files -> shards of ids: in constant memory, on several cores, cached by text and tokenizer."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.progress import Progress
from headstart.text import sentences
from headstart.text.building import cache_entry, cache_key, is_whole
from headstart.text.dividing import Division, Machines, Results, divided
from headstart.text.documents import TextConfig, content_key, reading_settings, settle_layout, size_of
from headstart.text.encoding import SentenceIds
from headstart.text.frames import Frame
from headstart.text.jobs import JOB_CHARACTERS, TOKENISE, read_jobs, tokenised, tokenising
from headstart.text.pool import is_small, run_here, run_in_workers
from headstart.text.shard_files import FORMAT
from headstart.text.shards import Shards, ShardWriter
from headstart.text.tokenizer import Tokenizer


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


Stage = tuple[Sequence[Path], str, str | None]
"""Files, the folder for their shards, and the one for those of documents that are held out."""


def prepare(
    paths: Sequence[Path],
    valid_paths: Sequence[Path] | None,
    tokenizer: Tokenizer,
    config: TextConfig,
    *,
    cache: Path,
    max_sentence: int | None,
    workers: int,
    machines: Machines | None = None,
) -> Generator[Progress, None, Corpora]:
    """Tokenise the text into shards, or take them from the cache. They do not depend on `workers` and `machines`.

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
    with cache_entry(target) as folder:
        division = None
        if machines is not None and not is_small([*paths, *(valid_paths or ())]):
            task = tokenising_task(tokenizer, config, max_sentence)
            division = yield from machines.begin({**task, "shards": key, "folder": folder.name})
        yield from make_shards(
            folder, stages_of(paths, valid_paths), tokenizer, config, max_sentence, workers, division
        )
    made = open_corpora(target, reused=False)
    if made is None:
        raise DataError(f"{target}: the tokenised text was removed while it was being made. Start again.")
    return made


def stages_of(paths: Sequence[Path], valid_paths: Sequence[Path] | None) -> list[Stage]:
    if not valid_paths:
        return [(paths, "train", "valid")]
    return [(paths, "train", None), (valid_paths, "valid", None)]


def tokenising_task(tokenizer: Tokenizer, config: TextConfig, max_sentence: int | None) -> dict[str, Any]:
    """What another machine has to know to make the same shards."""
    text = config.model_dump()
    return {"work": TOKENISE, "tokenizer": files_of(tokenizer), "text": text, "max_sentence": max_sentence}


def files_of(tokenizer: Tokenizer) -> dict[str, str]:
    """By name, what a tokenizer is saved as."""
    with tempfile.TemporaryDirectory() as saved:
        tokenizer.save(Path(saved))
        return {path.name: path.read_text(encoding="utf-8") for path in Path(saved).iterdir()}


def make_shards(
    folder: Path,
    stages: Sequence[Stage],
    tokenizer: Tokenizer,
    config: TextConfig,
    max_sentence: int | None,
    workers: int,
    division: Division | None,
) -> Generator[Progress, None, None]:
    total = sum(size_of(files) for files, _, _ in stages)
    before = 0
    for files, main, held_out in stages:
        results = tokenise_files(files, tokenizer, config, max_sentence, workers, division)
        directories = folder / main, folder / held_out if held_out else None
        with closing(write_shards(results, *directories, len(tokenizer), config.valid_share)) as writing:
            for read in writing:
                os.utime(folder)  # says that its builder lives: a folder untouched for a day is removed
                yield Progress("tokenising", before + read, total)
        before += size_of(files)
    check_not_empty(folder, stages[0][0])


def tokenise_files(
    paths: Sequence[Path],
    tokenizer: Tokenizer,
    config: TextConfig,
    max_sentence: int | None,
    workers: int,
    division: Division | None = None,
) -> Results:
    jobs = read_jobs(paths, config, JOB_CHARACTERS)
    with ExitStack() as open_until_done:
        if workers == 1 or is_small(paths):
            run = partial(run_here, tokenising(tokenizer, config.lines_are_sentences, max_sentence))
        else:
            saved = open_until_done.enter_context(tempfile.TemporaryDirectory())
            tokenizer.save(Path(saved))
            order = {"lines_are_sentences": config.lines_are_sentences, "max_sentence": max_sentence}
            run = partial(run_in_workers, Frame({"work": TOKENISE, "tokenizer": saved, **order}), workers=workers)
        yield from run(jobs) if division is None else divided(run, jobs, division, JOB_CHARACTERS)


def write_shards(
    results: Results,
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
