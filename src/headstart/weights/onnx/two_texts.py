"""The heads that read two texts apart, as ONNX: each text is read alone, then their words are aligned.

Letters: B batch, W words of a text, Q words of the question, C words of the context, S width of a word's states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headstart.heads.pair import AlignedPairHead
from headstart.heads.span import AttentiveSpanHead, TrilinearSimilarity
from headstart.model import Reader
from headstart.weights.onnx.base import OnnxEncoder
from headstart.weights.onnx.graph import LEAST, Graph
from headstart.weights.onnx.words import Words, add_pools, add_states, add_words, max_over_words


def add_texts(graph: Graph, reader: Reader, encoder: OnnxEncoder[Any]) -> tuple[Words, Words]:
    """The encoder for each text, with inputs of its own."""
    found = []
    for number in (1, 2):
        with graph.ending(f"_{number}"):
            found.append(add_words(graph, reader, encoder))
    return found[0], found[1]


def soft_alignment(graph: Graph, scores: str, real: str) -> str:
    """softmax(scores) over the real words of the last axis; zeros where there are none. real: (B, W)."""
    where = graph.op("Unsqueeze", real, graph.integers(1))
    weights = graph.op("Softmax", graph.op("Where", where, scores, graph.number(LEAST)), axis=-1)
    return graph.op("Where", where, weights, graph.number(0.0))


def weighted_product(graph: Graph, weights: str, a: str, b: str) -> str:
    """weights . (a * b) of all words, (B, W1, W2). weights: (S,), or one number."""
    return graph.op("MatMul", graph.op("Mul", a, weights), graph.transposed(b))


# --- sentence pairs ---------------------------------------------------------------------------------------------------


def add_aligned_pair(graph: Graph, reader: Reader, head: AlignedPairHead, encoder: OnnxEncoder[Any]) -> str:
    """`AlignedPairHead`: logits (B, C)."""
    texts = add_texts(graph, reader, encoder)
    a, b = (add_states(graph, "recurrent", head, head.config, words) for words in texts)
    first, second = (words.real for words in texts)
    if head.project is not None:
        a, b = (
            graph.keep(graph.linear(x, "project", head.project), words.real)
            for x, words in zip((a, b), texts, strict=True)
        )
    scores = weighted_product(graph, graph.weight("product", head.product), a, b)
    to_b = graph.op("MatMul", soft_alignment(graph, scores, second), b)
    to_a = graph.op("MatMul", soft_alignment(graph, graph.transposed(scores), first), a)
    pooled = [compared(graph, head, x, to_x, real) for x, to_x, real in ((a, to_b, first), (b, to_a, second))]
    hidden = graph.op("Tanh", graph.linear(graph.op("Concat", *pooled, axis=1), "hidden", head.hidden))
    return graph.linear(hidden, "output", head.output)


def compared(graph: Graph, head: AlignedPairHead, x: str, aligned: str, real: str) -> str:
    """The words of one text beside those that they are aligned to, read once more and pooled."""
    beside = [x, aligned, graph.op("Sub", x, aligned), graph.op("Mul", x, aligned)]
    found = graph.op("Relu", graph.linear(graph.op("Concat", *beside, axis=2), "compare", head.compare))
    states = add_states(graph, "composition", head.composition, head.config, Words(found, None, real))
    return add_pools(graph, head.pool, "mean+max", states, real)


# --- questions --------------------------------------------------------------------------------------------------------


def add_attentive_span(graph: Graph, reader: Reader, head: AttentiveSpanHead, encoder: OnnxEncoder[Any]) -> str:
    """`AttentiveSpanHead`: the scores of no answer, then those of the context's words, (B, 1 + C, 2)."""
    texts = add_texts(graph, reader, encoder)
    projected = [replace(words, vectors=project(graph, head, words), beside=None) for words in texts]
    states = projected
    if head.recurrent is not None:
        states = [replace(w, vectors=add_states(graph, "recurrent", head, head.config, w), beside=None) for w in texts]
    real = texts[1].real
    merged = merge(graph, head, states, projected)
    read = add_states(graph, "modelling", head.modelling, head.config, Words(merged, None, real))
    start = graph.linear(graph.op("Concat", merged, read, axis=2), "start", head.start)
    at_start = graph.op("MatMul", soft_alignment(graph, graph.transposed(start), real), read)
    found = graph.op("Concat", merged, read, graph.op("Mul", read, at_start), axis=2)
    scores = graph.keep(graph.op("Concat", start, graph.linear(found, "end", head.end), axis=2), real)
    none = graph.linear(max_over_words(graph, head.pool, read, real), "none", head.none)
    return graph.op("Concat", graph.op("Unsqueeze", none, graph.integers(1)), scores, axis=1)


def project(graph: Graph, head: AttentiveSpanHead, words: Words) -> str:
    return graph.keep(graph.op("Relu", graph.linear(words.vectors, "project", head.project)), words.real)


def merge(graph: Graph, head: AttentiveSpanHead, states: list[Words], projected: list[Words]) -> str:
    """`AttentiveSpanHead.merged`: each word of the context with what attention found for it, (B, C, P)."""
    (q, c), (q_in, c_in) = ([words.vectors for words in texts] for texts in (states, projected))
    asked, real = (words.real for words in states)
    similarity = add_similarity(graph, head.similarity, q, c)
    to_query = graph.op("MatMul", soft_alignment(graph, similarity, asked), q)
    shown = graph.op("Where", graph.op("Unsqueeze", asked, graph.integers(1)), similarity, graph.number(LEAST))
    best = graph.keep(graph.op("ReduceMax", shown, axes=[2], keepdims=0), graph.any_of(asked))
    weights = soft_alignment(graph, graph.op("Unsqueeze", best, graph.integers(1)), real)
    to_context = graph.op("MatMul", weights, c)
    scale = graph.number(head.project.out_features**-0.5)
    aligned = graph.op("MatMul", soft_alignment(graph, weighted_product(graph, scale, c_in, q_in), asked), q_in)
    products = [graph.op("Mul", c, to_query), graph.op("Mul", c, to_context), aligned, graph.op("Mul", c_in, aligned)]
    return graph.op("Relu", graph.linear(graph.op("Concat", c, to_query, *products, axis=2), "merge", head.merge))


def add_similarity(graph: Graph, similarity: TrilinearSimilarity, q: str, c: str) -> str:
    """(B, C, Q)."""
    of_context = graph.op("MatMul", c, graph.weight("similarity.context", similarity.context.weight.T))
    of_question = graph.op("MatMul", q, graph.weight("similarity.question", similarity.question.weight.T))
    product = weighted_product(graph, graph.weight("similarity.product", similarity.product), c, q)
    return graph.op("Add", graph.op("Add", product, of_context), graph.transposed(of_question))
