"""Language models that start from word vectors: what those learned in minutes need not be learned again."""

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
"""Five times the random start's: large beside the other embeddings and beside what the first steps change."""


def start_from_vectors(embeddings: Tensor, units: Sequence[str], run: Path, seed: int) -> int:
    """Overwrite the rows of units that are words of `run` with their vectors; how many there were.

    embeddings: (V, D), a row for each unit. A unit with capitals may take the vector of the word without. Vectors of
    another width are turned into D columns by a random rotation, which keeps angles and distances (a narrower D keeps
    them nearly). Their mean is taken away and their scale set; other rows stay random.
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
    vectors = (vectors - vectors.mean(0)) @ rotation(vectors.shape[1], embeddings.shape[1], seed)
    with torch.no_grad():
        embeddings[rows] = vectors * (DEVIATION / vectors.std())
    return len(pairs)


def rotation(inputs: int, outputs: int, seed: int) -> Tensor:
    """A random (inputs, outputs) matrix whose rows, or columns if those are fewer, are orthonormal."""
    generator = torch.Generator().manual_seed(seed_of(seed, "rotation"))
    square = torch.randn(max(inputs, outputs), max(inputs, outputs), generator=generator)
    orthogonal: Tensor = torch.linalg.qr(square)[0]
    return orthogonal[:inputs, :outputs]
