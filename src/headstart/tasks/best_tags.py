"""The best legal tags of many sentences of different lengths, decoded in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headstart.batches.rows import sorted_batches
from headstart.heads.crf import LinearChainCrf
from headstart.tasks.base import Scores

DECODED_TOGETHER = 8_192
"""Words that Viterbi decodes at a time."""


def best_tags(crf: LinearChainCrf, emissions: Sequence[Scores]) -> list[list[int]]:
    """emissions: (W, C) of each sentence. -> a tag for each of its words, [] for a sentence without words."""
    found: list[list[int]] = [[] for _ in emissions]
    lengths = [len(rows) for rows in emissions]
    for batch in sorted_batches(lengths, DECODED_TOGETHER):
        W, C = lengths[batch[-1]], emissions[batch[0]].shape[1]
        scores, mask = np.zeros((len(batch), W, C), dtype=np.float32), np.zeros((len(batch), W), dtype=bool)
        for place, number in enumerate(batch):
            scores[place, : lengths[number]], mask[place, : lengths[number]] = emissions[number], True
        device = crf.start.device
        with torch.no_grad():
            decoded = crf.viterbi(torch.from_numpy(scores).to(device), torch.from_numpy(mask).to(device))
        for number, tags in zip(batch, decoded, strict=True):
            found[number] = tags
    return found
