"""Floating-point operations that the mathematics needs, matrix products only: two for each weight that a row meets.

What need not be multiplied is not counted: a character filter over 262 characters is a sum of looked-up rows, and a
word's vector is the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from headstart.encoders.bert import BertConfig
from headstart.encoders.elmo import ElmoConfig

TRAINING = 3
"""Forward; backward the same once for the inputs' gradient and once for the weights'."""


def bilstm(config: ElmoConfig) -> float:
    """Of one token through all layers, both directions: gates from input and state, then the projection."""
    gates = 2 * (config.projection + config.projection) * 4 * config.cell
    projection = 2 * config.cell * config.projection
    return 2 * config.layers * (gates + projection)


def word_vector(config: ElmoConfig) -> float:
    """Of one distinct word, from its filters' greatest values on: highways, then the projection."""
    filters = sum(count for _, count in config.filters)
    return config.highway * 2 * filters * 2 * filters + 2 * filters * config.projection


def softmax(width: int, classes: int) -> float:
    return 2 * width * classes


def bert(config: BertConfig, lengths: Sequence[int], wanted: Sequence[int] | None = None) -> float:
    """Of one piece through all blocks, on average over sequences of these lengths.

    wanted: in each sequence, how many pieces' top layer is asked for, by default all; the top block needs the keys and
    values of the others, and nothing else.
    """
    D = config.width
    keys_and_values = 2 * 2 * D * D
    own = 2 * (2 * D * D + 2 * D * config.inner)  # the query, attention's output and the feed-forward network
    total = 0
    for length, finished in zip(lengths, lengths if wanted is None else wanted, strict=True):
        through_top = (config.layers - 1) * length + finished
        total += config.layers * length * keys_and_values + through_top * (own + 2 * 2 * length * D)
    return total / sum(lengths)


def lstm(inputs: int, cells: int, directions: int) -> float:
    """Of one word through a plain LSTM layer."""
    return directions * 2 * (inputs + cells) * 4 * cells
