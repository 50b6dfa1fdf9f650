"""From an encoder's layers to one vector per text, as ONNX: words, mixes, recurrent network, pools.

Letters: K layers, B batch, T tokens, W words, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headstart.heads.pool import Pool, SeveralPools, pool_names
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.mix import CONCATENATED, Attention, Mix, Scalar
from headstart.model import Reader
from headstart.weights.onnx.base import OnnxEncoder
from headstart.weights.onnx.graph import BATCH, LEAST, Graph, tensor_type

NORM_EPS = 1e-5  # torch's, which the mix uses
# ONNX's order of the gates, as indices into torch's. LSTM: torch has input, forget, candidate, output and ONNX input,
# output, forget, candidate. GRU: torch has reset, update, candidate and ONNX update, reset, candidate.
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}


@dataclass(frozen=True, slots=True)
class Words:
    """What `Reader.read` gives a head: vectors and beside: (B, W, D); real: (B, W), True at words."""

    vectors: str
    beside: str | None
    real: str


def add_words(graph: Graph, reader: Reader, encoder: OnnxEncoder[Any]) -> Words:
    """The encoder, an input with the positions of the words, and the mixes at them."""
    states = encoder.add_layers()
    starts = graph.input("word_starts", (BATCH, "words"))
    real = graph.op("GreaterOrEqual", starts, graph.scalar(0))
    places = graph.op("Unsqueeze", graph.op("Max", starts, graph.scalar(0)), graph.integers(-1))
    layers = [graph.op("GatherND", state, places, batch_dims=1) for state in states]
    return Words(*add_mixes(graph, reader, layers), real)


def add_mixes(graph: Graph, reader: Reader, layers: Sequence[str]) -> tuple[str, str | None]:
    """What a recurrent network reads, and what is put beside its states. layers: K of (B, W, D)."""
    if reader.standardises:
        layers = [standardised(graph, reader, k, layer) for k, layer in enumerate(layers)]
    mixed = {place: add_mix(graph, f"mixes.{place}", mix, layers) for place, mix in reader.placed_mixes()}
    return mixed.get("input", layers[0]), mixed.get("output")


def add_states(graph: Graph, name: str, head: Head, config: RecurrentConfig, words: Words) -> str:
    """`Head.words`: what the recurrent network reads in the words, zero at padding."""
    states = add_recurrent(graph, name, head.recurrent, config, words.vectors, words.real)
    if words.beside is not None:
        states = graph.op("Concat", words.beside, states, axis=2)
    return graph.keep(states, words.real)


def standardised(graph: Graph, reader: Reader, k: int, layer: str) -> str:
    moved = graph.op("Sub", layer, graph.weight(f"shift.{k}", reader.shift[k, 0, 0]))
    return graph.op("Mul", moved, graph.weight(f"scale.{k}", reader.scale[k, 0, 0]))


def add_mix(graph: Graph, name: str, mix: Mix, layers: Sequence[str]) -> str:
    """K layers, each (B, W, D) -> (B, W, out_width)."""
    kind = mix.config.kind
    layers = {"last": layers[-1:], "concat": layers[-CONCATENATED:]}.get(kind, layers)
    if mix.config.norm:
        D = mix.out_width // len(layers) if kind == "concat" else mix.out_width
        ones = graph.weight("ones", torch.ones(D))
        layers = [graph.op("LayerNormalization", layer, ones, axis=-1, epsilon=NORM_EPS) for layer in layers]
    if kind in ("last", "concat"):
        return graph.op("Concat", *layers, axis=2)
    if isinstance(mix, Attention):
        weights = word_weights(graph, name, mix, layers)
    else:
        weights = [graph.number(weight) for weight in layer_weights(mix, len(layers))]
    return graph.op("Sum", *(graph.op("Mul", x, weight) for x, weight in zip(layers, weights, strict=True)))


def layer_weights(mix: Mix, layers: int) -> list[float]:
    """The weight of each layer, the same for every word."""
    if isinstance(mix, Scalar):
        weights: list[float] = (mix.gamma * mix.s).tolist()
        return weights
    return [1 / layers] * layers


def word_weights(graph: Graph, name: str, mix: Attention, layers: Sequence[str]) -> list[str]:
    """For each layer, its weight at every word, (B, W, 1)."""
    W, v = graph.weight(f"{name}.W", mix.W), graph.weight(f"{name}.v", mix.v[:, None])
    scores = [graph.op("MatMul", graph.op("Tanh", graph.op("MatMul", layer, W)), v) for layer in layers]
    shares = graph.op("Softmax", graph.op("Concat", *scores, axis=2), axis=2)
    return graph.ops("Split", shares, results=len(layers), axis=2) if len(layers) > 1 else [shares]


def add_recurrent(
    graph: Graph, name: str, recurrent: nn.RNNBase | None, config: RecurrentConfig, x: str, real: str
) -> str:
    """(B, W, D) -> (B, W, states): both directions, concatenated."""
    if recurrent is None:
        return x
    lengths = graph.op("ReduceSum", graph.op("Cast", real, to=tensor_type(np.int32)), graph.integers(1), keepdims=0)
    # At least 1, as in the head: what a text without words gives here is masked afterwards.
    lengths = graph.op("Max", lengths, graph.op("Cast", graph.scalar(1), to=tensor_type(np.int32)))
    x = graph.op("Transpose", x, perm=[1, 0, 2])
    ways = {"both": "bidirectional", "forward": "forward"}[config.directions]
    # torch's GRU applies the reset gate after the linear map.
    special = {"linear_before_reset": 1} if config.cell == "gru" else {}
    for depth in range(config.layers):
        weights = recurrent_weights(graph, f"{name}.{depth}", recurrent, config.cell, depth)
        y, _ = graph.ops(
            config.cell.upper(),
            x,
            *weights,
            lengths,
            results=2,
            hidden_size=config.width,
            direction=ways,
            **special,
        )
        x = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1, 3]), graph.integers(0, 0, -1))
    return graph.op("Transpose", x, perm=[1, 0, 2])


def recurrent_weights(graph: Graph, name: str, recurrent: nn.RNNBase, cell: str, depth: int) -> list[str]:
    """W, R and B of one layer, with directions stacked and gates in ONNX's order."""

    def stacked(kind: str) -> Tensor:
        ways = [f"{kind}_l{depth}", f"{kind}_l{depth}_reverse"][: 2 if recurrent.bidirectional else 1]
        return torch.stack([reordered(getattr(recurrent, way), GATES[cell]) for way in ways])

    biases = torch.cat([stacked("bias_ih"), stacked("bias_hh")], dim=1)
    parts = {"W": stacked("weight_ih"), "R": stacked("weight_hh"), "B": biases}
    return [graph.weight(f"{name}.{part}", values) for part, values in parts.items()]


def reordered(values: Tensor, order: Sequence[int]) -> Tensor:
    parts = values.chunk(len(order))
    return torch.cat([parts[gate] for gate in order])


def add_pools(graph: Graph, pool: Pool, kind: str, x: str, real: str) -> str:
    """(B, W, D) -> (B, D), or D times the number of pools that are joined."""
    names = pool_names(kind)
    modules: Iterable[Any] = pool.pools if isinstance(pool, SeveralPools) else [pool]
    found = [POOLS[name](graph, module, x, real) for name, module in zip(names, modules, strict=True)]
    return found[0] if len(found) == 1 else graph.op("Concat", *found, axis=1)


def last_state(graph: Graph, pool: Pool, x: str, real: str) -> str:
    lengths = graph.op("ReduceSum", graph.op("Cast", real, to=tensor_type(np.int64)), graph.integers(1))
    last = graph.op("Max", graph.op("Sub", lengths, graph.scalar(1)), graph.scalar(0))
    end = graph.op("GatherND", x, last, batch_dims=1)
    split, width = pool.split, pool.out_width
    forward = graph.slice(end, 1, 0, split)
    backward = graph.slice(first_word(graph, pool, x, real), 1, split, width)
    return graph.op("Concat", forward, backward, axis=1)


def mean_of_words(graph: Graph, pool: Pool, x: str, real: str) -> str:
    counts = graph.op("ReduceSum", graph.op("Cast", real, to=tensor_type(np.float32)), graph.integers(1))
    total = graph.op("ReduceSum", x, graph.integers(1), keepdims=0)
    return graph.op("Div", total, graph.op("Max", counts, graph.number(1.0)))


def max_over_words(graph: Graph, pool: Pool, x: str, real: str) -> str:
    largest = graph.op("ReduceMax", graph.keep(x, real, LEAST), axes=[1], keepdims=0)
    return graph.keep(largest, graph.any_of(real))  # zero for a text without words


def attention_over_words(graph: Graph, pool: Pool, x: str, real: str) -> str:
    query: Any = pool.query
    scores = graph.op("MatMul", x, graph.weight("pool.query", query[:, None]))
    shares = graph.op("Softmax", graph.keep(scores, real, LEAST), axis=1)
    return graph.op("ReduceSum", graph.op("Mul", shares, x), graph.integers(1), keepdims=0)


def first_word(graph: Graph, pool: Pool, x: str, real: str) -> str:
    return graph.op("Gather", x, graph.scalar(0), axis=1)


POOLS: dict[str, Callable[[Graph, Pool, str, str], str]] = {
    "last": last_state,
    "mean": mean_of_words,
    "max": max_over_words,
    "attention": attention_over_words,
    "first": first_word,
}
