"""The encoders and BERT's heads as ONNX graphs: one function for each encoder that has such a graph.

Letters: B batch, T tokens, D width, U distinct words, C characters per word, H cells, P projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from torch import nn

from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert, Block
from headstart.encoders.character_network import CharacterNetwork, Highway
from headstart.encoders.elmo import CHARACTERS_PER_WORD, Elmo
from headstart.encoders.kernels.spelling import BATCH_PADDING, WORD_PADDING
from headstart.encoders.lstm import LstmLayer
from headstart.encoders.static import Static
from headstart.encoders.token_layer import TokenLayer
from headstart.encoders.word_table import UNKNOWN_ID, SpelledWords, WordTable
from headstart.errors import ConfigError
from headstart.heads.language_model import MaskedLMHead
from headstart.heads.plain import ON_SEQUENCE
from headstart.weights.onnx_graph import LEAST, Graph, tensor_type

ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}
TOKENS = ("batch", "length")


@singledispatch
def add_encoder(encoder: Encoder, graph: Graph) -> list[str]:
    """Add the encoder's inputs and its computation; returns R_0 .. R_L, each (B, T, D)."""
    raise ConfigError(f"{encoder.title} cannot be exported as ONNX yet.")


@singledispatch
def add_outputs(encoder: Encoder, graph: Graph, heads: Mapping[str, nn.Module], top: str) -> None:
    """Add what the encoder can compute from its top layer, (B, T, D): by default nothing."""


@singledispatch
def add_pooled(encoder: Encoder, graph: Graph, top: str) -> str:
    """Add the encoder's pooled vector of each sequence. top: (B, T, D) -> (B, D)."""
    raise ConfigError(f"{encoder.title} has no pooled vector of a sequence.")


@add_encoder.register(Static)
def add_static(encoder: Static, graph: Graph) -> list[str]:
    ids, mask = (graph.input(name, TOKENS) for name in ("input_ids", "attention_mask"))
    found = graph.op("Gather", graph.weight("vectors", encoder.vectors), ids)
    return [graph.keep(found, graph.is_real(mask))]


@add_encoder.register(Bert)
def add_bert(encoder: Bert, graph: Graph) -> list[str]:
    ids, mask, segments = (graph.input(name, TOKENS) for name in ("input_ids", "attention_mask", "token_type_ids"))
    words = graph.op("Gather", graph.weight("words", encoder.words.weight), ids)
    table = graph.weight("positions", encoder.positions.weight)
    ones = graph.op("Expand", graph.integers(1), graph.op("Shape", ids))
    places = graph.op("CumSum", ones, graph.scalar(1), exclusive=1)
    x = graph.op("Add", words, graph.op("Gather", table, places))
    x = graph.op("Add", x, graph.op("Gather", graph.weight("segments", encoder.segments.weight), segments))
    x = graph.layer_norm(x, "norm", encoder.norm)
    hidden = hidden_places(graph, mask)
    states = [x]
    blocks: Iterable[Any] = encoder.blocks
    for number, block in enumerate(blocks):
        x = add_block(graph, f"blocks.{number}", block, x, hidden)
        states.append(x)
    return states


def hidden_places(graph: Graph, mask: str) -> str:
    """The term added to attention scores: 0 at real pieces, the lowest number at padding; (B, 1, 1, T)."""
    real = graph.op("Cast", graph.op("Unsqueeze", mask, graph.integers(1, 2)), to=tensor_type(np.float32))
    return graph.op("Mul", graph.op("Sub", graph.number(1.0), real), graph.number(LEAST))


def add_block(graph: Graph, name: str, block: Block, x: str, hidden: str) -> str:
    """The block, with separate products for queries, keys and values: slicing a joint product would copy it."""
    D = block.attention_out.in_features
    width = D // block.heads
    parts = zip(block.query_key_value.weight.chunk(3), block.query_key_value.bias.chunk(3), strict=True)
    split = []
    for part, order, (weight, bias) in zip("qkv", ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), parts, strict=True):
        of_heads = graph.op(
            "Reshape", graph.affine(x, f"{name}.{part}", weight.T, bias), graph.integers(0, 0, block.heads, width)
        )
        split.append(graph.op("Transpose", of_heads, perm=order))
    q, k, v = split
    scores = graph.op("Div", graph.op("MatMul", q, k), graph.number(math.sqrt(width)))
    weights = graph.op("Softmax", graph.op("Add", scores, hidden), axis=-1)
    attended = graph.op("Transpose", graph.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", attended, graph.integers(0, 0, D))
    y = graph.linear(joined, f"{name}.attention_out", block.attention_out)
    x = graph.layer_norm(graph.op("Add", x, y), f"{name}.attention_norm", block.attention_norm)
    y = graph.linear(gelu(graph, graph.linear(x, f"{name}.inner", block.inner)), f"{name}.outer", block.outer)
    return graph.layer_norm(graph.op("Add", x, y), f"{name}.norm", block.norm)


def gelu(graph: Graph, x: str) -> str:
    """x (1 + erf(x / sqrt 2)) / 2."""
    erf = graph.op("Erf", graph.op("Div", x, graph.number(math.sqrt(2))))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Add", erf, graph.number(1.0))), graph.number(0.5))


@add_pooled.register(Bert)
def add_bert_pooled(encoder: Bert, graph: Graph, top: str) -> str:
    first = graph.op("Gather", top, graph.scalar(0), axis=1)
    return graph.op("Tanh", graph.linear(first, "pooler", encoder.pooler))


@add_outputs.register(Bert)
def add_bert_outputs(encoder: Bert, graph: Graph, heads: Mapping[str, nn.Module], top: str) -> None:
    """The pooled vector, and the logits of each head."""
    sequence = add_bert_pooled(encoder, graph, top)
    graph.output("pooled", sequence, ("batch", encoder.config.width))
    for name, head in heads.items():
        if isinstance(head, MaskedLMHead):
            graph.output(f"{name}_logits", masked_logits(graph, encoder, name, head, top), (*TOKENS, len(head.bias)))
        elif isinstance(head, nn.Linear):
            logits = graph.linear(sequence if name in ON_SEQUENCE else top, f"heads.{name}", head)
            graph.output(f"{name}_logits", logits, (*TOKENS[: 1 if name in ON_SEQUENCE else 2], head.out_features))


def masked_logits(graph: Graph, encoder: Bert, name: str, head: MaskedLMHead, top: str) -> str:
    x = gelu(graph, graph.linear(top, f"heads.{name}.dense", head.dense))
    x = graph.layer_norm(x, f"heads.{name}.norm", head.norm)
    if head.decoder is None:
        # Transposed when the model is loaded, so that the file holds the embeddings only once.
        matrix = graph.op("Transpose", graph.weight("words", encoder.words.weight), perm=[1, 0])
    else:
        matrix = graph.weight(f"heads.{name}.decoder", head.decoder.T)
    return graph.op("Add", graph.op("MatMul", x, matrix), graph.weight(f"heads.{name}.bias", head.bias))


@add_encoder.register(Elmo)
def add_elmo(encoder: Elmo, graph: Graph) -> list[str]:
    vectors, mask = add_tokens(graph, encoder.tokens)
    real = graph.is_real(mask)
    lengths = graph.op("ReduceSum", mask, graph.integers(1), keepdims=0)
    words = graph.keep(vectors, real)
    states = [graph.op("Concat", *[words] * encoder.directions, axis=2)]

    def reversed_in_time(x: str) -> str:
        return graph.op("ReverseSequence", x, lengths, batch_axis=1, time_axis=0)

    # The LSTM reads (T, B, D). The backward direction keeps every text reversed from the first layer to the last.
    x = graph.op("Transpose", vectors, perm=[1, 0, 2])
    read = [x, reversed_in_time(x)][: encoder.directions]
    layers: Iterable[Any] = encoder.layers
    for depth, layer in enumerate(layers):
        given = [add_lstm(graph, f"layers.{depth}", layer, way, x, mask) for way, x in enumerate(read)]
        if depth and encoder.config.residual:
            given = [graph.op("Add", x, y) for x, y in zip(read, given, strict=True)]
        read = given
        in_order = graph.op("Concat", read[0], *(reversed_in_time(x) for x in read[1:]), axis=2)
        states.append(graph.keep(graph.op("Transpose", in_order, perm=[1, 0, 2]), real))
    return states


def add_tokens(graph: Graph, tokens: TokenLayer) -> tuple[str, str]:
    """The token layer with its inputs: the vector of every token, (B, T, P), and the mask."""
    if isinstance(tokens, CharacterNetwork):
        characters = graph.input("characters", (*TOKENS, CHARACTERS_PER_WORD))
        mask = graph.input("mask", TOKENS)
        return spelled_words(graph, tokens, characters, mask), mask
    if isinstance(tokens, SpelledWords):
        ids = graph.input("tokens", (*TOKENS, 1 + CHARACTERS_PER_WORD))
        mask = graph.input("mask", TOKENS)
        numbers, characters = graph.ops("Split", ids, graph.integers(1, CHARACTERS_PER_WORD), results=2, axis=2)
        spelled = spelled_words(graph, tokens.characters, characters, mask)
        table = graph.weight("words", tokens.weight)
        known = graph.op("Gather", table, graph.op("Squeeze", numbers, graph.integers(2)))
        return graph.op("Where", graph.op("Equal", numbers, graph.scalar(UNKNOWN_ID)), spelled, known), mask
    if isinstance(tokens, WordTable):
        words = graph.input("words", TOKENS)
        mask = graph.input("mask", TOKENS)
        return graph.op("Gather", graph.weight("words", tokens.weight), words), mask
    raise ConfigError(f"A token layer of type {type(tokens).__name__} cannot be written as ONNX.")


def spelled_words(graph: Graph, network: CharacterNetwork, characters: str, mask: str) -> str:
    """(B, T, 50) -> (B, T, P), computing each distinct word once; padding is a word too."""
    rows = graph.op("Reshape", characters, graph.integers(-1, CHARACTERS_PER_WORD))
    distinct, _, places = graph.ops("Unique", rows, results=3, axis=0, sorted=0)
    which = graph.op("Reshape", places, graph.op("Shape", mask))
    largest = max_over_words(graph, network, trim(graph, distinct, network.widest))
    x = graph.op(ACTIVATIONS[network.activation], largest)
    highways: Iterable[Any] = network.highways
    for number, highway in enumerate(highways):
        x = add_highway(graph, f"highways.{number}", highway, x)
    return graph.op("Gather", graph.linear(x, "projection", network.projection), which)


def trim(graph: Graph, characters: str, widest: int) -> str:
    """Cut columns that cannot change the max, as the encoder does; (U, C) -> (U, C')."""
    paddings = (graph.op("Equal", characters, graph.scalar(padding)) for padding in (WORD_PADDING, BATCH_PADDING))
    real = graph.op("Cast", graph.op("Not", graph.op("Or", *paddings)), to=tensor_type(np.int64))
    places = graph.op("Mul", real, graph.integers(*range(1, CHARACTERS_PER_WORD + 1)))
    longest = graph.op("ReduceMax", places, axes=[0, 1], keepdims=0)
    end = graph.op("Unsqueeze", graph.op("Add", longest, graph.scalar(widest)), graph.integers(0))
    return graph.slice(characters, 1, 0, end)


def max_over_words(graph: Graph, network: CharacterNetwork, characters: str) -> str:
    """Every filter's max over a word, plus its bias; (U, C) -> (U, filters)."""
    embedded = graph.op("Gather", graph.weight("character_vectors", network.characters), characters)
    turned = graph.op("Transpose", embedded, perm=[0, 2, 1])
    found = []
    for number, filters in enumerate(network.filters):
        kernel = graph.weight(f"filters.{number}", filters.permute(2, 1, 0))
        found.append(graph.op("ReduceMax", graph.op("Conv", turned, kernel), axes=[2], keepdims=0))
    return graph.op("Add", graph.op("Concat", *found, axis=1), graph.weight("filter_bias", network.filter_bias))


def add_highway(graph: Graph, name: str, highway: Highway, x: str) -> str:
    both = graph.linear(x, name, highway.transform_and_gate)
    transform, gate = graph.ops("Split", both, results=2, axis=1)
    moved = graph.op("Sub", graph.op("Relu", transform), x)
    return graph.op("Add", x, graph.op("Mul", graph.op("Sigmoid", gate), moved))


def add_lstm(graph: Graph, name: str, layer: LstmLayer, way: int, x: str, mask: str) -> str:
    """One direction of one layer; (T, B, D) -> (T, B, P). One product with x serves all steps."""
    name = f"{name}.{way}"
    H, P = layer.projection_weight.shape[1:]
    gates = graph.affine(x, f"{name}.input", layer.input_weight[way], layer.bias[way])
    zeros = [
        graph.op("Expand", graph.number(0.0), graph.op("Concat", graph.size(mask, 0), graph.integers(n), axis=0))
        for n in (P, H)
    ]
    step = lstm_step(graph, name, layer, way)
    _, _, states = graph.ops("Scan", *zeros, gates, results=3, body=step.proto(name), num_scan_inputs=1)
    return states


def lstm_step(graph: Graph, name: str, layer: LstmLayer, way: int) -> Graph:
    """(h, c, the gates' products with x) -> (h, c, h), as in `headstart.encoders.lstm`."""
    H, P = layer.projection_weight.shape[1:]
    body = Graph(graph)
    h, c, from_x = (
        body.input(f"{name}.{key}", ("batch", n), np.float32) for key, n in (("h", P), ("c", H), ("x", 4 * H))
    )
    recurrent = body.weight(f"{name}.recurrent", layer.recurrent_weight[way])
    gates = body.op("Add", from_x, body.op("MatMul", h, recurrent))
    sigmoids, candidate = body.ops("Split", gates, body.integers(3 * H, H), results=2, axis=1)
    i, f, o = body.ops("Split", body.op("Sigmoid", sigmoids), body.integers(H, H, H), results=3, axis=1)
    c = body.op("Add", body.op("Mul", f, c), body.op("Mul", i, body.op("Tanh", candidate)))
    c = clip(body, c, layer.cell_clip)
    projection = body.weight(f"{name}.projection", layer.projection_weight[way])
    h = clip(body, body.op("MatMul", body.op("Mul", o, body.op("Tanh", c)), projection), layer.projection_clip)
    for key, value, n in (("next_h", h, P), ("next_c", c, H), ("state", h, P)):
        body.output(f"{name}.{key}", value, ("batch", n))
    return body


def clip(graph: Graph, x: str, bound: float | None) -> str:
    return x if bound is None else graph.op("Clip", x, graph.number(-bound), graph.number(bound))
