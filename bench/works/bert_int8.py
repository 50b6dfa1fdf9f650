"""minilm's top layer in int8: `headstart.load(.., precision="int8")` against onnxruntime's dynamic quantisation.

Sentences, batches and tokens are those of bert_encoding. Two roundings to int8 cannot agree number by number: each must
give sentence vectors (means over words) whose cosine with the float32 ones is 0.9 or more on average. The note tells
what the rounding costs: a logistic regression on float32 vectors of training sentences, evaluated on all dev sentences
encoded in float32, in our int8, in onnxruntime's as it comes, which is the one that is timed, and in onnxruntime's with
a scale per channel (not in the quick one). The training sentences are drawn from the whole file, which has one class
after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import headstart
from bench.measure import Measurement, Setting, Side, in_turns
from bench.peers.bert import (
    MODEL,
    OnnxEncoder,
    by_length,
    exported,
    piece_lengths,
    transformers_model,
    write_int8,
    write_onnx,
)
from bench.samples import sst_dev, sst_train, texts_of
from bench.works.bert_encoding import QUICK_SENTENCES, SENTENCES
from headstart.pretrained import Pretrained
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.examples import draw

LABELLED, QUICK_LABELLED = 2_000, 256
LEAST_COSINE = 0.9
MOST_POINTS_LOST = 0.5
OURS, THEIRS, THEIR_BEST = "our int8", "onnxruntime's", "onnxruntime's per channel"
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts -> the mean of each one's word vectors, (texts, D)."""


def run(setting: Setting) -> Iterator[Measurement]:
    train, dev = sst_train(setting.data), sst_dev(setting.data)
    texts = texts_of(train[: QUICK_SENTENCES if setting.quick else SENTENCES])
    exact, rounded = headstart.load(MODEL), headstart.load(MODEL, precision="int8")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, model = transformers_model(exported(Path(folder)))
        write_onnx(tokenizer, model, Path(folder) / "model.onnx")
        write_int8(Path(folder) / "model.onnx", Path(folder) / "int8.onnx")
        onnx = OnnxEncoder.of(tokenizer, Path(folder) / "int8.onnx")
        encoders = {"float32": means_of(exact), OURS: means_of(rounded), THEIRS: onnx_means(onnx, exact)}
        if not setting.quick:
            write_int8(Path(folder) / "model.onnx", Path(folder) / "channels.onnx", per_channel=True)
            best = OnnxEncoder.of(tokenizer, Path(folder) / "channels.onnx")
            encoders[THEIR_BEST] = onnx_means(best, exact)
    n_pieces = sum(piece_lengths(tokenizer, texts))
    ordered = [texts[i] for i in by_length(tokenizer, texts)]
    labelled = draw(Classify.learn(train), train, QUICK_LABELLED if setting.quick else LABELLED, seed=0)
    accuracies, cosines = quality_on(dev, labelled, encoders)
    lost = 100 * (accuracies["float32"] - accuracies[OURS])

    def ours() -> int:
        rounded.represent(texts, layers="top")
        return n_pieces

    def theirs() -> int:
        for _ in onnx.batches(ordered):
            pass
        return n_pieces

    rates = in_turns({"ours": Side(ours), "onnxruntime": Side(theirs)}, setting.repeats)
    figures = ", ".join(f"{name} {100 * accuracies[name]:.2f} % (cosine {cosines[name]:.3f})" for name in encoders)
    yield Measurement(
        work=f"BERT encoding in int8 ({MODEL}, top layer)",
        unit="tokens/s",
        ours=rates["ours"],
        peer=rates["onnxruntime"],
        peer_name="onnxruntime int8, sorted by length",
        goal=1.0,
        note=f"SST-2 dev: {figures}; our int8 loses {lost:.2f} points",
        shortfall="" if lost <= MOST_POINTS_LOST else f"more than the {MOST_POINTS_LOST} points that are allowed",
    )


def means_of(pretrained: Pretrained) -> Encode:
    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[0].mean(0) for vectors in pretrained.represent(texts, layers="top")])

    return encode


def onnx_means(onnx: OnnxEncoder, pretrained: Pretrained) -> Encode:
    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors.mean(0) for vectors in onnx.at_words(texts, pretrained)])

    return encode


def quality_on(
    dev: list[TextExample], labelled: list[TextExample], encoders: dict[str, Encode]
) -> tuple[dict[str, float], dict[str, float]]:
    """By who encodes the dev sentences: the accuracy of one classifier, which was fitted to float32 vectors, and the
    mean cosine with the float32 vectors.
    """
    from sklearn.linear_model import LogisticRegression

    known, classes = texts_of(labelled), [example.label for example in labelled]
    classifier = LogisticRegression(max_iter=2_000).fit(encoders["float32"](known), classes)
    gold = [example.label for example in dev]
    vectors = {name: encode(texts_of(dev)) for name, encode in encoders.items()}
    cosines = {name: mean_cosine(found, vectors["float32"]) for name, found in vectors.items()}
    for name, cosine in cosines.items():
        if cosine < LEAST_COSINE:
            raise RuntimeError(f"sentence vectors of {name} and float32 have a cosine of {cosine:.3f} on average")
    return {name: float(classifier.score(found, gold)) for name, found in vectors.items()}, cosines


def mean_cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float((np.einsum("nd,nd->n", a, b) / lengths).mean())
