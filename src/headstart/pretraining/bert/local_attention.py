"""A start for BERT in which some attention heads read a word's neighbours from the first step on.

From a random start attention is almost uniform, and for thousands of steps a masked LM knows little more than how often
each piece occurs: it has to find out that positions matter before it can learn from the neighbours. Here the position
embeddings start as sinusoids in a subspace that the word embeddings leave free, and the queries of a head as the keys
rotated by an offset, so that position i reads position i + offset. The network is the published one, and every
parameter is trained as usual; only the values it starts from differ.

Letters: T positions, D width, H width of a head, F frequencies.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.encoders.bert import Bert, Block

OFFSETS = (-1, 1)
"""What the first heads of every block read; the others start random."""
FREQUENCIES = 16
LOWEST, HIGHEST, SPACING = 0.05, 2.6, 1.2
"""In radians per position. The mean of their cosines is 1 at distance 0 and 0.26 at distance 1. Evenly spaced they
would all meet again after 37 positions; with this exponent the mean stays below 0.33 up to a distance of 128."""
PEAK = 8.0
"""The score of the position read, where most others score about 0: it gets most of the attention among 512."""
POSITION_SHARE = 0.72
"""Length of a position's vector beside that of a mean word's."""
REST = 0.5
"""Scale of a local head's other dimensions, which start random."""


def start_local(encoder: Bert, seed: int) -> None:
    """Overwrite the positions, and the queries and keys of local heads; take the positions' subspace out of the words.

    To be called when the word embeddings have their first values.
    """
    config = encoder.config
    D, H = config.width, config.width // config.heads
    F = min(FREQUENCIES, H // 2, D // 4)
    if not F:
        return
    generator = torch.Generator().manual_seed(seed_of(seed, "positions"))
    subspace = torch.linalg.qr(torch.randn(D, D, generator=generator))[0][: 2 * F]  # (2F, D), orthonormal rows
    frequencies = spaced(F)
    with torch.no_grad():
        words = encoder.words.weight
        words -= (words @ subspace.T) @ subspace
        word_length = float(words.square().sum(1).mean().sqrt())
        length = POSITION_SHARE * word_length
        encoder.positions.weight.copy_(length * sinusoids(config.positions, frequencies) @ subspace)
        # LayerNorm stretches a word with its position to the length sqrt(D), and the position's share with it.
        seen = length * math.sqrt(D) / math.hypot(word_length, length)
        scale = math.sqrt(PEAK * math.sqrt(H)) / seen
        for block in encoder.blocks:
            for head, offset in zip(range(config.heads), OFFSETS, strict=False):
                if isinstance(block, Block):
                    read_at(block, head, offset, scale * subspace, frequencies)


def spaced(F: int) -> Tensor:
    return LOWEST + (HIGHEST - LOWEST) * torch.linspace(0, 1, F) ** SPACING


def sinusoids(T: int, frequencies: Tensor) -> Tensor:
    """(T, 2F): sines, then cosines of every position, as vectors of length 1."""
    angles = torch.arange(T)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1) / math.sqrt(len(frequencies))


def read_at(block: Block, head: int, offset: int, keys: Tensor, frequencies: Tensor) -> None:
    """Let a head's query at i be the key at i + offset. keys: (2F, D), the first rows of its key matrix."""
    D = keys.shape[1]
    H = D // block.heads
    query_rows = block.query_key_value.weight[head * H : (head + 1) * H]
    key_rows = block.query_key_value.weight[D + head * H : D + (head + 1) * H]
    # sin(a + b) = sin a cos b + cos a sin b; cos(a + b) = cos a cos b - sin a sin b, with b = offset * frequency.
    sine, cosine = (torch.diag(f(offset * frequencies)) for f in (torch.sin, torch.cos))
    rotation = torch.cat([torch.cat([cosine, sine], dim=1), torch.cat([-sine, cosine], dim=1)])
    for rows, start in ((query_rows, rotation @ keys), (key_rows, keys)):
        rows.mul_(REST)
        rows[: len(keys)] = start
