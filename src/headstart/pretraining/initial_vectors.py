"""Word vectors to start a language model from: minutes of word2vec save hours of language modelling on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.errors import CheckpointError
from headstart.text.tokenizer import WordTokenizer, load_tokenizer
from headstart.text.vocabulary import SPECIALS
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

DEVIATION = 0.1
"""Five times that of random embeddings: large beside the rows that stay random and beside the first updates."""


def start_from_vectors(embeddings: Tensor, units: Sequence[str], run: Path, seed: int) -> int:
    """Overwrite the rows of units that are words of `run` with their vectors; return how many there were.

    embeddings: (V, D), a row for each unit; other rows stay as they are.
    """
    rows, vectors = vectors_of(units, run, embeddings.shape[1], seed)
    with torch.no_grad():
        embeddings[rows] = vectors * DEVIATION
    return len(rows)


def vectors_of(units: Sequence[str], run: Path, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """The units that are words of `run`, by number, and their vectors (n, width), with mean 0 and deviation 1.

    A unit with capitals may take the vector of its lowercase form. Vectors of another width are projected: to more
    columns by a random rotation, which keeps angles and distances, to fewer along their principal components.
    """
    directory = RunDirectory.open(run)
    words = load_tokenizer(directory.path)
    table = read_tensors(directory.weights).get("vectors")
    if table is None or not isinstance(words, WordTokenizer):
        raise CheckpointError(f"{run}: is not a run of word vectors, which --vectors takes.")
    index = words.vocabulary.index
    found = ((row, index.get(unit, index.get(unit.lower(), -1))) for row, unit in enumerate(units))
    pairs = [(row, id) for row, id in found if id >= len(SPECIALS)]
    if not pairs:
        raise CheckpointError(f"{run}: has no word in common with this tokenizer.")
    rows, ids = (torch.tensor(column) for column in zip(*pairs, strict=True))
    vectors = table[ids].float()
    vectors = vectors - vectors.mean(0)
    if width < vectors.shape[1]:
        vectors = vectors @ torch.linalg.svd(vectors, full_matrices=False).Vh[:width].T
    vectors = vectors @ rotation(vectors.shape[1], width, seed)
    return rows, vectors / vectors.std().clamp(min=1e-12)


def rotation(inputs: int, outputs: int, seed: int) -> Tensor:
    """A random (inputs, outputs) matrix with orthonormal rows; outputs is at least inputs."""
    generator = torch.Generator().manual_seed(seed_of(seed, "rotation"))
    orthogonal: Tensor = torch.linalg.qr(torch.randn(outputs, outputs, generator=generator))[0]
    return orthogonal[:inputs]
