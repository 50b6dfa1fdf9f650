"""Writes an encoder, or a task's model with its mix and head, as an ONNX model.

Letters: K layers, B batch, T tokens, W words, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.errors import ConfigError
from headstart.heads.classify import ClassifyHead
from headstart.heads.pair import AlignedPairHead
from headstart.heads.recurrent import Head
from headstart.heads.span import AttentiveSpanHead, PlainSpanHead
from headstart.model import Model
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import Tokenizer
from headstart.weights.new_folder import check_free
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.examples import (
    PAIR,
    TEXT,
    answer_apart_example,
    answer_example,
    encoder_example,
    labels_apart_example,
    labels_example,
)
from headstart.weights.onnx.folder import OnnxFolder
from headstart.weights.onnx.graph import BATCH, Graph, check_onnx
from headstart.weights.onnx.registry import onnx_encoder
from headstart.weights.onnx.two_texts import add_aligned_pair, add_attentive_span
from headstart.weights.onnx.words import add_mixes, add_pools, add_states, add_words


def write_encoder_onnx(pretrained: Pretrained, folder: Path) -> None:
    """The encoder with its heads as model.onnx, in a new or empty folder."""
    check_onnx()
    check_free(folder)
    encoder = pretrained.encoder
    graph = Graph()
    added = onnx_encoder(encoder, graph)
    states = added.add_layers()
    K, D = encoder.shape
    graph.output("layers", graph.stack(states), (K, *TOKENS, D))
    added.add_outputs(pretrained.heads, states[-1])
    example = encoder_example(added.example)
    OnnxFolder(graph, encoder, pretrained.tokenizer, pretrained.labels, example).write(folder)


def write_model_onnx(
    model: Model, tokenizer: Tokenizer, labels: Sequence[str], folder: Path, record: Mapping[str, Any] | None = None
) -> None:
    """A model of texts, pairs of texts or questions as model.onnx, in a new or empty folder.

    record: what else the files should tell about its task.
    """
    check_onnx()
    check_free(folder)
    add = next((add for kind, add in HEADS.items() if isinstance(model.head, kind)), None)
    if add is None:
        raise ConfigError(
            "Only models of text classification, sentence pairs and question answering can be exported as ONNX; export "
            "a tagger with --to hf."
        )
    encoder, graph = model.only_reader.encoder, Graph()
    example = add(graph, model, onnx_encoder(encoder, graph), labels)
    OnnxFolder(graph, encoder, tokenizer, labels, example, record or {}).write(folder)


def add_classifier(graph: Graph, model: Model, encoder: OnnxEncoder[Any], labels: Sequence[str]) -> str:
    """One vector of a text, or of two that are read together, and its logits. Returns an example."""
    head: Any = model.head
    together, reader = head.config.reads_together, model.only_reader
    starts = None
    if together and model.pooled() is not None:
        text = encoder.add_pooled(encoder.add_layers()[-1])
    else:
        starts = encoder.example.words(with_first=head.config.reads_first_position and encoder.encoder.marks > 0)
        words = add_words(graph, reader, encoder)
        states = add_states(graph, "recurrent", head, head.config, words)
        if model.pooled() is not None:
            text = encoder.add_pooled(states)
        else:
            text = add_pools(graph, head.pool, head.config.pool, states, words.real)
    add_labels(graph, graph.linear(text, "output", head.output), labels, head)
    return labels_example(encoder.example, PAIR if together else TEXT, starts)


def add_pair(graph: Graph, model: Model, encoder: OnnxEncoder[Any], labels: Sequence[str]) -> str:
    head: Any = model.head
    add_labels(graph, add_aligned_pair(graph, model.only_reader, head, encoder), labels, head)
    return labels_apart_example(encoder.example)


def add_span(graph: Graph, model: Model, encoder: OnnxEncoder[Any], labels: Sequence[str]) -> str:
    """Where an answer starts and ends: every position is scored by itself, or after a network over the pieces."""
    head: Any = model.head
    reader, starts = model.only_reader, None
    if head.recurrent is None:
        # The marks between the texts are scored too, as in other tools.
        states, size = add_mixes(graph, reader, encoder.add_layers())[0], TOKENS[1]
    else:
        starts, size = encoder.example.words(with_first=True, every_piece=True), "words"
        states = add_states(graph, "recurrent", head, head.config, add_words(graph, reader, encoder))
    add_span_logits(graph, graph.linear(states, "output", head.output), size)
    return answer_example(encoder.example, starts, head.config.longest_answer)


def add_span_apart(graph: Graph, model: Model, encoder: OnnxEncoder[Any], labels: Sequence[str]) -> str:
    head: Any = model.head
    add_span_logits(graph, add_attentive_span(graph, model.only_reader, head, encoder), "columns")
    return answer_apart_example(encoder.example, head.config.longest_answer)


HEADS: dict[type[Head], Callable[[Graph, Model, OnnxEncoder[Any], Sequence[str]], str]] = {
    ClassifyHead: add_classifier,
    AlignedPairHead: add_pair,
    PlainSpanHead: add_span,
    AttentiveSpanHead: add_span_apart,
}
"""Each adds the whole model with its outputs, and returns the example of README.md."""


def add_labels(graph: Graph, logits: str, labels: Sequence[str], head: Any) -> None:
    C = head.output.out_features
    if len(labels) != C:
        raise ConfigError(f"This model has {C} classes, but {len(labels)} labels were given.")
    graph.output("probabilities", graph.op("Softmax", logits, axis=1), (BATCH, C))
    graph.output("logits", logits, (BATCH, C))


def add_span_logits(graph: Graph, scores: str, size: str) -> None:
    """scores: (B, W, 2)."""
    for name, scored in zip(("start_logits", "end_logits"), graph.ops("Split", scores, results=2, axis=2), strict=True):
        graph.output(name, graph.op("Squeeze", scored, graph.integers(2)), (BATCH, size))
