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
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.folder import Example
from headstart.weights.onnx.graph import Graph, tensor_type

ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}


class OnnxElmo(OnnxEncoder[Elmo]):
    example = Example(
        inputs="""import numpy as np, onnxruntime, pathlib
from headstart.text.characters import character_table
from headstart.text.tokenizer import load_tokenizer

words = load_tokenizer(pathlib.Path(".")).encode("A warm , funny film .").units
inputs = {"characters": character_table(["<S>", *words, "</S>"])[None], "mask": np.ones((1, len(words) + 2))}""",
        word_starts="range(1, len(words) + 1)",
    )

    def add_layers(self) -> list[str]:
        graph, encoder = self.graph, self.encoder
        characters = graph.input("characters", (*TOKENS, CHARACTERS_PER_WORD))
        mask = graph.input("mask", TOKENS)
        real = graph.is_real(mask)
        lengths = graph.op("ReduceSum", mask, graph.integers(1), keepdims=0)
        vectors, which = distinct_words(graph, encoder.characters, characters, mask)
        words = graph.keep(graph.op("Gather", vectors, which), real)
        states = [graph.op("Concat", *[words] * encoder.directions, axis=2)]

        def reversed_in_time(x: str) -> str:
            return graph.op("ReverseSequence", x, lengths, batch_axis=1, time_axis=0)

        # The LSTM reads (T, B, D). The backward direction keeps every text reversed from the first layer to the last.
        x = graph.op("Gather", vectors, graph.op("Transpose", which, perm=[1, 0]))
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


def distinct_words(graph: Graph, network: CharacterNetwork, characters: str, mask: str) -> tuple[str, str]:
    """The vector of each distinct word, (U, P), and which word each token is, (B, T). Padding counts as a word."""
    rows = graph.op("Reshape", characters, graph.integers(-1, CHARACTERS_PER_WORD))
    distinct, _, places = graph.ops("Unique", rows, results=3, axis=0, sorted=0)
    which = graph.op("Reshape", places, graph.op("Shape", mask))
    largest = max_over_characters(graph, network, trim(graph, distinct, network.widest))
    x = graph.op(ACTIVATIONS[network.activation], largest)
    highways: Iterable[Any] = network.highways
    for number, highway in enumerate(highways):
        x = add_highway(graph, f"highways.{number}", highway, x)
    return graph.linear(x, "projection", network.projection), which


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
