"""AllenNLP's ELMo, from the published form of files that both sides read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.training.seeding import freshly_initialised
from headstart.weights.elmo_hdf5 import write_elmo

SMALL = ElmoConfig(**{**ELMO_SIZES["small"], "dropout": 0.0})
"""Without dropout, which AllenNLP's has nowhere that ours has it."""


def random_elmo(folder: Path) -> Elmo:
    """ELMo small with random weights, also written to `folder` as options.json and weights.hdf5."""
    encoder = freshly_initialised(0, lambda: Elmo(SMALL))
    marks_only = WordTokenizer(Vocabulary(SPECIALS, np.zeros(len(SPECIALS), dtype=np.int64)))
    write_elmo(Pretrained(encoder, marks_only), folder)
    return encoder


def allennlp_elmo(folder: Path) -> Any:
    """The biLM with all its layers; each sentence starts from a state of zero, as it does on our side."""
    from allennlp.modules.elmo import _ElmoBiLm

    model = _ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5")).eval()
    model._elmo_lstm.stateful = False
    return model


def allennlp_lstm(folder: Path) -> Any:
    """The biLSTM alone, to be trained."""
    from allennlp.modules.elmo_lstm import ElmoLstm

    lstm = ElmoLstm(
        SMALL.projection,
        SMALL.projection,
        SMALL.cell,
        SMALL.layers,
        requires_grad=True,
        memory_cell_clip_value=SMALL.cell_clip,
        state_projection_clip_value=SMALL.projection_clip,
    )
    lstm.load_weights(str(folder / "weights.hdf5"))
    lstm.stateful = False
    return lstm


class AllenNlpLanguageModel(nn.Module):
    """AllenNLP's character encoder and biLSTM under one softmax, as ELMo is pretrained; all logits at once."""

    def __init__(self, folder: Path, softmax_weight: Tensor, softmax_bias: Tensor) -> None:
        from allennlp.modules.elmo import _ElmoCharacterEncoder

        super().__init__()
        files = str(folder / "options.json"), str(folder / "weights.hdf5")
        self.characters = _ElmoCharacterEncoder(*files, requires_grad=True)
        self.lstm = allennlp_lstm(folder)
        self.softmax = nn.Linear(softmax_weight.shape[1], softmax_weight.shape[0])
        with torch.no_grad():
            self.softmax.weight.copy_(softmax_weight)
            self.softmax.bias.copy_(softmax_bias)

    def forward(self, characters: Tensor, targets: Tensor) -> Tensor:
        """characters: (B, T - 2, C), to which it adds the marks; targets: (B, T), with the marks. No row is padded."""
        embedded = self.characters(characters)
        top = self.lstm(embedded["token_embedding"], embedded["mask"])[-1]
        forward, backward = top.chunk(2, dim=-1)
        losses = [
            nn.functional.cross_entropy(self.softmax(h).flatten(0, 1), words.flatten())
            for h, words in ((forward[:, :-1], targets[:, 1:]), (backward[:, 1:], targets[:, :-1]))
        ]
        return losses[0] + losses[1]
