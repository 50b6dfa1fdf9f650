"""Teach ELMo's character network to spell word vectors before the language model is trained (Pinter et al. 2017)."""

from __future__ import annotations

from collections.abc import Generator

import torch
import torch.nn.functional as F

from headstart.batches.order import seed_of
from headstart.encoders.character_network import CharacterNetwork
from headstart.pretraining.initial_vectors import InitialVectors
from headstart.progress import Progress
from headstart.text.characters import character_table
from headstart.text.vocabulary import Vocabulary

STEPS, BATCH_WORDS, RATE = 1_200, 256, 1e-2


def teach_spelling(
    network: CharacterNetwork, vocabulary: Vocabulary, initial: InitialVectors, seed: int, steps: int = STEPS
) -> Generator[Progress, None, float]:
    """Train a character network to give words their vectors from their characters; the last loss.

    The loss is the mean squared error; giving every word the mean vector would make it 1. Words are drawn by the root
    of their count: drawn by the count itself, little but the few most frequent would be learned.
    """
    rows, vectors = initial.rows, initial.vectors
    characters = torch.from_numpy(character_table([vocabulary.words[row] for row in rows.tolist()]))
    weights = torch.from_numpy(vocabulary.counts)[rows].double().clamp(min=1).sqrt()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(seed_of(seed, "spelling"))
    loss = torch.ones(())
    for step in range(steps):
        chosen = torch.multinomial(weights, BATCH_WORDS, replacement=True, generator=generator)
        loss = F.mse_loss(network.words(characters[chosen]), vectors[chosen])
        torch.autograd.backward(loss)
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield Progress("learning spelling", step + 1, steps, "steps")
    return float(loss.detach())
