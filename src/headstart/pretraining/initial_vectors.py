"""Language models that start from word vectors: what those learned in minutes need not be learned again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.encoders.character_network import CharacterNetwork
from headstart.errors import CheckpointError
from headstart.progress import Progress
from headstart.text.characters import character_table
from headstart.text.tokenizer import WordTokenizer, load_tokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

DEVIATION = 0.1
"""Five times the random start's: large beside the other embeddings and beside what the first steps change."""
STEPS, WORDS_AT_ONCE, RATE = 1_200, 256, 1e-2


def start_from_vectors(embeddings: Tensor, units: Sequence[str], run: Path, seed: int) -> int:
    """Overwrite the rows of units that are words of `run` with their vectors; how many there were.

    embeddings: (V, D), a row for each unit; other rows stay as they are.
    """
    rows, vectors = vectors_of(units, run, embeddings.shape[1], seed)
    with torch.no_grad():
        embeddings[rows] = vectors * DEVIATION
    return len(rows)


def teach_spelling(
    network: CharacterNetwork, vocabulary: Vocabulary, run: Path, seed: int, steps: int = STEPS
) -> Generator[Progress, None, float]:
    """Train a character network to give the words of `run` their vectors, as far as spelling tells; the last loss.

    (Pinter et al. 2017.) The loss is the mean squared error; giving every word the same vector would make it 1. Words
    are drawn by the root of their count: by the count itself, little but the few most frequent would be learned.
    """
    rows, vectors = vectors_of(vocabulary.words, run, network.projection.out_features, seed)
    characters = torch.from_numpy(character_table([vocabulary.words[row] for row in rows.tolist()]))
    weights = torch.from_numpy(vocabulary.counts)[rows].double().clamp(min=1).sqrt()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(seed_of(seed, "spelling"))
    loss = torch.ones(())
    for step in range(steps):
        chosen = torch.multinomial(weights, WORDS_AT_ONCE, replacement=True, generator=generator)
        loss = F.mse_loss(network.words(characters[chosen]), vectors[chosen])
        torch.autograd.backward(loss)
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield Progress("learning spelling", step + 1, steps, "steps")
    return float(loss.detach())


def vectors_of(units: Sequence[str], run: Path, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """The units that are words of `run`, by number, and their vectors (n, width), with mean 0 and deviation 1.

    A unit with capitals may take the vector of the word without. Vectors of another width are turned: into more columns
    by a random rotation, which keeps angles and distances, into fewer along those in which they differ most.
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
