"""Words and WordPiece from text files: counted on several cores and machines, cached by text and settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from headstart.progress import Progress
from headstart.text import words
from headstart.text.building import cache_entry, cache_key, is_whole
from headstart.text.dividing import Division, Machines, Results, divided
from headstart.text.documents import Block, TextConfig, content_key, reading_settings, size_of
from headstart.text.frames import Frame
from headstart.text.jobs import COUNT, COUNT_PIECES, counted, read_jobs, work_from
from headstart.text.pool import is_small, run_here, run_in_workers
from headstart.text.vocabulary import WordCounter
from headstart.text.wordpiece import WordPieceTokenizer
from headstart.text.wordpiece_learning import learn_from_words
from headstart.text.wordpiece_loading import load_wordpiece

# Counting takes larger jobs than tokenising: its result, the distinct words, grows more slowly than the text.
COUNTED_CHARACTERS = 1 << 20
GZIP_RATIO = 3  # an estimate, to choose a sample: text packs to about a third


def count_words(
    paths: Sequence[Path],
    config: TextConfig,
    *,
    lowercase: bool,
    cache: Path,
    workers: int,
    machines: Machines | None = None,
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
    task = {"work": COUNT, "lowercase": lowercase, "sample_bytes": None}
    division = yield from begin(task, paths, config, machines)
    total = size_of(paths)
    with closing(count_files(task, paths, config, workers, division)) as results:
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
    workers: int = 1,
    machines: Machines | None = None,
) -> Generator[Progress, None, WordPieceTokenizer]:
    """Learn WordPiece from the text, or from an even sample of a large one; cached by text and settings."""
    options = {"lowercase": lowercase, "exact": exact}
    counts = {"size": size, "min_count": min_count, "sample_bytes": sample_bytes}
    key = cache_key(text=content_key(paths), reading=reading_settings(paths, config), **options, **counts)
    target = cache / "wordpiece" / key
    if not is_whole(target):
        task = {"work": COUNT_PIECES, "lowercase": lowercase, "sample_bytes": sample_bytes}
        total = size_of(paths)
        found: Counter[str] = Counter()
        with cache_entry(target) as folder:
            division = yield from begin(task, paths, config, machines)
            with closing(count_files(task, paths, config, workers, division)) as results:
                for job, frame in results:
                    found.update(counted(frame))
                    yield Progress("learning WordPiece", job.read, total)
            stopped = Event()
            with ThreadPoolExecutor(1) as thread:
                learning = thread.submit(
                    learn_from_words, found, size=size, min_count=min_count, stopped=stopped.is_set, **options
                )
                try:
                    while not learning.done():
                        wait([learning], timeout=0.2)
                        yield Progress("learning WordPiece", total, total)
                finally:
                    stopped.set()
            learning.result().save(folder)
    return load_wordpiece(target)


def begin(
    task: dict[str, Any], paths: Sequence[Path], config: TextConfig, machines: Machines | None
) -> Generator[Progress, None, Division | None]:
    if machines is None or is_small(paths):
        return None
    return (yield from machines.begin({**task, "text": config.model_dump()}))


def count_files(
    task: dict[str, Any], paths: Sequence[Path], config: TextConfig, workers: int, division: Division | None
) -> Results:
    """Counts of each job, for one of the tasks above."""
    most = task["sample_bytes"]
    sample = TextSample(paths, most) if most is not None else iter
    jobs = read_jobs(paths, config, COUNTED_CHARACTERS, sample)
    order = Frame({"work": task["work"], "lowercase": task["lowercase"]})
    if workers == 1 or is_small(paths):
        run = partial(run_here, work_from(order))
    else:
        run = partial(run_in_workers, order, workers=workers)
    return run(jobs) if division is None else divided(run, jobs, division, COUNTED_CHARACTERS)


class TextSample:
    """Chooses an even sample of the blocks of a text, the same each time."""

    def __init__(self, paths: Sequence[Path], most_bytes: int) -> None:
        self._most = most_bytes
        unpacked = sum(path.stat().st_size * (GZIP_RATIO if path.suffix == ".gz" else 1) for path in paths)
        self._share = min(1.0, most_bytes / unpacked) if unpacked else 1.0

    def __call__(self, blocks: Iterable[Block]) -> Iterator[Block]:
        credit, taken = 0.0, 0
        for block in blocks:
            credit += self._share
            if credit >= 1.0 and taken < self._most:
                credit -= 1.0
                taken += len(block.text.encode("utf-8"))
                yield block
