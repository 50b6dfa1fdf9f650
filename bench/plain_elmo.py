"""ELMo's pretraining loss written plainly, from our model's own parameters: the same mathematics, none of the designs.

The characters of every token through conv1d, a Python loop over time under autograd, all logits at once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.batch import LanguageModelBatch
from headstart.encoders.elmo import Elmo
from headstart.encoders.lstm import LstmLayer
from headstart.heads.language_model import ElmoLanguageModel


def plain_loss(model: ElmoLanguageModel, batch: LanguageModelBatch) -> Tensor:
    """The mean over targets of the forward plus the backward negative log-likelihood."""
    words = plain_words(model.encoder, batch.characters)
    forward, backward = plain_layers(model.encoder, words, batch.mask)
    followed = batch.mask[:, 1:]
    losses = (
        F.cross_entropy(logits(model, forward[:, :-1][followed]), batch.targets[:, 1:][followed]),
        F.cross_entropy(logits(model, backward[:, 1:][followed]), batch.targets[:, :-1][followed]),
    )
    return losses[0] + losses[1]


def logits(model: ElmoLanguageModel, h: Tensor) -> Tensor:
    return F.linear(F.dropout(h, model.dropout.p, model.training), model.head.weight, model.head.bias)


def plain_words(encoder: Elmo, characters: Tensor) -> Tensor:
    network = encoder.characters
    embedded = F.embedding(characters.flatten(0, 1), network.characters).transpose(1, 2)  # (N, E, C)
    maxima = [F.conv1d(embedded, weight.permute(2, 1, 0)).amax(dim=2) for weight in network.filters]
    x = F.relu(torch.cat(maxima, dim=1) + network.filter_bias)
    for highway in network.highways:
        transform, gate = highway.transform_and_gate(x).chunk(2, dim=-1)
        x = torch.sigmoid(gate) * F.relu(transform) + (1 - torch.sigmoid(gate)) * x
    return network.projection(x).view(*characters.shape[:2], -1)


def plain_layers(encoder: Elmo, words: Tensor, mask: Tensor) -> list[Tensor]:
    """The top layer of each direction, (B, T, P)."""
    states = [words, words]
    for depth, layer in enumerate(encoder.layers):
        for direction in range(2):
            x = F.dropout(states[direction], encoder.config.dropout, encoder.training)
            y = plain_lstm(x, mask, layer, direction)
            states[direction] = x + y if depth and encoder.config.residual else y
    return states


def plain_lstm(x: Tensor, mask: Tensor, layer: LstmLayer, direction: int) -> Tensor:
    B, T, _ = x.shape
    h, c = x.new_zeros(B, layer.projection_weight.shape[-1]), x.new_zeros(B, layer.cells)
    outputs: list[Tensor] = [h] * T
    for t in range(T) if direction == 0 else reversed(range(T)):
        z = x[:, t] @ layer.input_weight[direction] + h @ layer.recurrent_weight[direction] + layer.bias[direction]
        i, f, o, g = z.chunk(4, dim=-1)
        new_c = (f.sigmoid() * c + i.sigmoid() * g.tanh()).clamp(-layer.cell_clip, layer.cell_clip)
        new_h = (o.sigmoid() * new_c.tanh()) @ layer.projection_weight[direction]
        new_h = new_h.clamp(-layer.projection_clip, layer.projection_clip)
        here = mask[:, t, None]  # the backward direction starts at each sentence's own end
        c, h = torch.where(here, new_c, c), torch.where(here, new_h, h)
        outputs[t] = h
    return torch.stack(outputs, dim=1)
