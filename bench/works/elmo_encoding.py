"""ELMo small, all layers, the first SST sentences as lists of words: `represent` against AllenNLP's biLM.

Cold, no word was seen before; warm, the words of the pass before are remembered. AllenNLP has no such memory unless it
is given the vocabulary beforehand. It gets batches of 32 in the order of the file. Ours makes several passes, so that
both are timed over seconds. Both begin with words and end with vectors, and compute the same to 1e-4.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import headstart
from bench.measure import Measurement, Setting, Side, check_close, in_turns
from bench.operations import bilstm, word_vector
from bench.peers.elmo import SMALL, allennlp_elmo, random_elmo
from bench.samples import sst_train, texts_of

SENTENCES, QUICK_SENTENCES = 128, 32
BATCH = 32
PASSES = 5
TOLERANCE = 1e-4
MARKS = 2


def run(setting: Setting) -> Iterator[Measurement]:
    from allennlp.modules.elmo import batch_to_ids

    texts = texts_of(sst_train(setting.data)[: QUICK_SENTENCES if setting.quick else SENTENCES])
    sentences = [text.split() for text in texts]
    n_words = sum(map(len, sentences))
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "elmo"
        random_elmo(files)
        pretrained = headstart.load(files)
        peer = allennlp_elmo(files)
    encoder: Any = pretrained.encoder

    def theirs(some: list[list[str]]) -> list[Any]:
        with torch.no_grad():
            batches = [peer(batch_to_ids(some[i : i + BATCH])) for i in range(0, len(some), BATCH)]
        return [batch["activations"] for batch in batches]

    def check() -> None:
        layers = torch.stack(theirs(sentences[:BATCH])[0])
        for row, vectors in enumerate(pretrained.represent(sentences[:BATCH])):
            check_close("vectors", vectors, layers[:, row, 1 : 1 + vectors.shape[1]].numpy(), TOLERANCE)

    def warm() -> int:
        for _ in range(PASSES):
            pretrained.represent(sentences)
        return PASSES * n_words

    def cold() -> int:
        for _ in range(PASSES):
            encoder.tokens.forget()
            pretrained.represent(sentences)
        return PASSES * n_words

    def allennlp() -> int:
        theirs(sentences)
        return n_words

    check()
    sides = {"cold": Side(cold), "warm": Side(warm), "allennlp": Side(allennlp)}
    rates = in_turns(sides, setting.repeats)
    backward = [words[::-1] for words in sentences]
    recurrent = bilstm(SMALL) * (beginnings(sentences) + beginnings(backward)) / 2 / n_words
    distinct = len({word for words in sentences for word in words}) + MARKS
    operations = {"cold": recurrent + word_vector(SMALL) * distinct / n_words, "warm": recurrent}
    for side, goal, remark in (("cold", 10.0, "no word seen before"), ("warm", 20.0, "words seen before")):
        yield Measurement(
            work=f"ELMo small encoding, {remark}",
            unit="words/s",
            ours=rates[side],
            peer=rates["allennlp"],
            peer_name="AllenNLP",
            goal=goal,
            flops_per_unit=operations[side],
        )


def beginnings(sentences: list[list[str]]) -> int:
    """Steps that one direction must take: one for each way to begin, the mark alone among them."""
    return len({tuple(words[:n]) for words in sentences for n in range(len(words) + 1)})
