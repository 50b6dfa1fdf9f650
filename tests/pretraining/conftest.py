from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from headstart.text.encoding import SentenceIds
from headstart.text.shards import Shards, ShardWriter

MakeShards = Callable[..., Shards]


@pytest.fixture
def make_shards(tmp_path: Path) -> MakeShards:
    """Shards of documents given as lists of sentences given as lists of ids."""

    def make(documents: Sequence[Sequence[Sequence[int]]], vocabulary: int, extras: Sequence[str] = ()) -> Shards:
        folder = tmp_path / f"shards-{len(list(tmp_path.iterdir()))}"
        writer = ShardWriter(folder, vocabulary)
        for document in documents:
            ids = np.array([id for sentence in document for id in sentence], dtype=np.int32)
            lengths = np.array([len(sentence) for sentence in document], dtype=np.int32)
            here = list(extras) if (ids >= vocabulary).any() else []
            writer.add(SentenceIds(ids, lengths, here), True)
        writer.close()
        return Shards.open(folder)

    return make
