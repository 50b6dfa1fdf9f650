"""The real text that the works read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from bench.works import SST_DEV, SST_TRAIN
from headstart.tasks.examples import Examples, ExamplesConfig, read_examples


def sst_train(data: Path) -> Examples:
    """SST-2: sentences that are not neutral."""
    return read_examples(data / SST_TRAIN, ExamplesConfig(labels_as=2))


def sst_dev(data: Path) -> Examples:
    return read_examples(data / SST_DEV, ExamplesConfig(labels_as=2))


def lines(path: Path) -> Iterator[str]:
    """A gzipped text, document by document."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file
