"""Word vectors to start a language model from: minutes of word2vec save hours of language modelling on a CPU."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.errors import CheckpointError
from headstart.progress import Progress
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS
from headstart.weights.sources import open_source


@dataclass(frozen=True, slots=True)
class InitialVectors:
    """Vectors for some of a tokenizer's units. rows: (n,), the units' numbers; vectors: (n, D), mean 0, deviation 1."""

    rows: Tensor
    vectors: Tensor

    def write_to(self, table: Tensor, deviation: float) -> None:
        """Overwrite these rows of a table, (V, D), with the vectors at this deviation; the others stay as they are."""
        with torch.no_grad():
            table[self.rows] = self.vectors * deviation


def initial_vectors(
    units: Sequence[str], source: str | Path, width: int, seed: int, cache: Path | None = None
) -> Generator[Progress, None, InitialVectors]:
    """The vectors of those units that are words of `source`: a run, a file of vectors, or a name of the catalogue.

    A unit with capitals may take the vector of its lowercase form. Vectors of another width are projected: to more
    columns by a random rotation, which keeps angles and distances, to fewer along their principal components.
    """
    pretrained = yield from open_source(source, cache=cache)
    if pretrained.encoder.contextual or not isinstance(pretrained.tokenizer, WordTokenizer):
        raise CheckpointError(f"{source}: holds {pretrained.kind}; --vectors takes word vectors.")
    table, index = pretrained.encoder.word_vectors(), pretrained.tokenizer.vocabulary.index
    found = ((row, index.get(unit, index.get(unit.lower(), -1))) for row, unit in enumerate(units))
    pairs = [(row, id) for row, id in found if id >= len(SPECIALS)]
    if not pairs:
        raise CheckpointError(f"{source}: has no word in common with this tokenizer.")
    rows, ids = (torch.tensor(column) for column in zip(*pairs, strict=True))
    vectors = table[ids].float()
    vectors = vectors - vectors.mean(0)
    if width < vectors.shape[1]:
        vectors = vectors @ torch.linalg.svd(vectors, full_matrices=False).Vh[:width].T
    vectors = vectors @ rotation(vectors.shape[1], width, seed)
    return InitialVectors(rows, vectors / vectors.std().clamp(min=1e-12))


def rotation(inputs: int, outputs: int, seed: int) -> Tensor:
    """A random (inputs, outputs) matrix with orthonormal rows; outputs is at least inputs."""
    generator = torch.Generator().manual_seed(seed_of(seed, "rotation"))
    orthogonal: Tensor = torch.linalg.qr(torch.randn(outputs, outputs, generator=generator))[0]
    return orthogonal[:inputs]


def log_frequencies(counts: NDArray[np.int64]) -> Tensor:
    """The bias of a softmax that knows only how often each unit occurs, (V,). A unit that never does counts as one."""
    shares = torch.from_numpy(np.maximum(counts, 1).astype(np.float64))
    return (shares.log() - math.log(float(shares.sum()))).float()
