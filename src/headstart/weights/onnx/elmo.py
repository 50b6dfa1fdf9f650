"""ELMo as an ONNX graph.

Letters: B batch, T tokens, D width, U distinct words, C characters per word, H cells, P projection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headstart.encoders.character_network import CharacterNetwork, Highway
from headstart.encoders.elmo import CHARACTERS_PER_WORD, Elmo
from headstart.encoders.kernels.spelling import BATCH_PADDING, WORD_PADDING
from headstart.encoders.lstm import LstmLayer
from headstart.encoders.token_layer import TokenLayer
from headstart.encoders.word_table import SpelledWords, WordTable
from headstart.errors import ConfigError
from headstart.text.vocabulary import UNKNOWN_ID
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.examples import Example
from headstart.weights.onnx.graph import Graph, tensor_type

ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}
SPELLED = 'character_table(["<S>", *read.units, "</S>"])'
CHARACTER_TABLE = "from headstart.text.characters import character_table\n"
EXAMPLE_IDS: dict[type[TokenLayer], str] = {
    CharacterNetwork: f"""inputs = {{"characters": {SPELLED}[None].astype(np.int64)}}""",
    WordTable: """inputs = {"words": np.array([[0, *read.ids, 1]])}""",
    SpelledWords: f"""numbers = np.array([0, *read.ids, 1])[:, None]  # <S> .. </S>; of a word outside the vocabulary, 2
inputs = {{"words_and_characters": np.concatenate([numbers, {SPELLED}], axis=1)[None]}}""",
}
"""Code that makes the input of one sentence, for each token layer."""


class OnnxElmo(OnnxEncoder[Elmo]):
    @property
    def example(self) -> Example:
        kind = type(self.encoder.tokens)
        return Example(
            opening=f"""import numpy as np, onnxruntime, pathlib
{"" if kind is WordTable else CHARACTER_TABLE}from headstart.text.tokenizer import load_tokenizer

tokenizer = load_tokenizer(pathlib.Path("."))""",
            inputs=f"""read = tokenizer.encode(TEXT)
{EXAMPLE_IDS[kind]}
inputs["mask"] = np.ones((1, len(read.units) + 2), dtype=np.int64)""",
            word_starts="range(1, len(read.units) + 1)",
        )

    def add_layers(self) -> list[str]:
        graph, encoder = self.graph, self.encoder
        ids = add_ids(graph, encoder.tokens)
        mask = graph.input("mask", TOKENS)
        real = graph.is_real(mask)
        lengths = graph.op("ReduceSum", mask, graph.integers(1), keepdims=0)
        vectors = add_tokens(graph, encoder.tokens, ids, mask)
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


def add_ids(graph: Graph, tokens: TokenLayer) -> str:
    """The input that holds the words, whose name says what it is."""
    if isinstance(tokens, SpelledWords):
        return graph.input("words_and_characters", (*TOKENS, 1 + CHARACTERS_PER_WORD))
    if isinstance(tokens, WordTable):
        return graph.input("words", TOKENS)
    return graph.input("characters", (*TOKENS, CHARACTERS_PER_WORD))


def add_tokens(graph: Graph, tokens: TokenLayer, ids: str, mask: str) -> str:
    """The token layer: the vector of every token, (B, T, P)."""
    if isinstance(tokens, CharacterNetwork):
        return spelled_words(graph, tokens, ids, mask)
    if not isinstance(tokens, WordTable):
        raise ConfigError(f"ELMo's token layer {type(tokens).__name__} cannot be exported as ONNX.")
    table = graph.weight("word_table", tokens.weight)
    if not isinstance(tokens, SpelledWords):
        return graph.op("Gather", table, ids)
    numbers, characters = graph.ops("Split", ids, graph.integers(1, CHARACTERS_PER_WORD), results=2, axis=2)
    known = graph.op("Gather", table, graph.op("Squeeze", numbers, graph.integers(2)))
    spelled = spelled_words(graph, tokens.characters, characters, mask)
    return graph.op("Where", graph.op("Equal", numbers, graph.scalar(UNKNOWN_ID)), spelled, known)


def spelled_words(graph: Graph, network: CharacterNetwork, characters: str, mask: str) -> str:
    """(B, T, 50) -> (B, T, P), computing each distinct word once. Padding counts as a word."""
    rows = graph.op("Reshape", characters, graph.integers(-1, CHARACTERS_PER_WORD))
    distinct, _, places = graph.ops("Unique", rows, results=3, axis=0, sorted=0)
    which = graph.op("Reshape", places, graph.op("Shape", mask))
    largest = max_over_characters(graph, network, trim(graph, distinct, network.widest))
    x = graph.op(ACTIVATIONS[network.activation], largest)
    highways: Iterable[Any] = network.highways
    for number, highway in enumerate(highways):
        x = add_highway(graph, f"highways.{number}", highway, x)
    return graph.op("Gather", graph.linear(x, "projection", network.projection), which)


def trim(graph: Graph, characters: str, widest: int) -> str:
    """Cut off the columns of padding that cannot change the max, as the encoder does; (U, C) -> (U, C')."""
    paddings = (graph.op("Equal", characters, graph.scalar(padding)) for padding in (WORD_PADDING, BATCH_PADDING))
    real = graph.op("Cast", graph.op("Not", graph.op("Or", *paddings)), to=tensor_type(np.int64))
    places = graph.op("Mul", real, graph.integers(*range(1, CHARACTERS_PER_WORD + 1)))
    longest = graph.op("ReduceMax", places, axes=[0, 1], keepdims=0)
    end = graph.op("Unsqueeze", graph.op("Add", longest, graph.scalar(widest)), graph.integers(0))
    return graph.slice(characters, 1, 0, end)


def max_over_characters(graph: Graph, network: CharacterNetwork, characters: str) -> str:
    """The max of every filter over each word, plus its bias; (U, C) -> (U, filters)."""
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
    """One direction of one layer; (T, B, D) -> (T, B, P). The product with x is computed once for all steps."""
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
    """The body of the loop: (h, c, product of x) -> (h, c, h), as in `headstart.encoders.lstm`."""
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
