"""minilm's top layer of the first SST sentences: `represent` against onnxruntime, sentence-transformers, transformers.

All begin with texts; tokens are pieces with the marks. onnxruntime gets batches of 32 that were sorted by length
beforehand; sentence-transformers sorts them itself and ends with a vector per sentence; transformers, which has no
goal, gets the first quarter in the order of the file. The vectors agree to 1e-4.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import headstart
from bench.measure import Measurement, Setting, Side, check_close, in_turns
from bench.operations import bert
from bench.peers.bert import (
    BATCH,
    MODEL,
    OnnxEncoder,
    by_length,
    exported,
    piece_lengths,
    sentence_transformer,
    transformers_model,
    word_places,
    write_onnx,
)
from bench.samples import sst_train, texts_of
from headstart.pretrained import Pretrained

SENTENCES, QUICK_SENTENCES = 1_024, 128
TOLERANCE = 1e-4
PEERS = {
    "onnxruntime": ("onnxruntime float32, sorted by length", 1.2),
    "sentence-transformers": ("sentence-transformers", 1.5),
    "transformers": ("transformers, in the order of the file", None),
}


def run(setting: Setting) -> Iterator[Measurement]:
    texts = texts_of(sst_train(setting.data)[: QUICK_SENTENCES if setting.quick else SENTENCES])
    pretrained = headstart.load(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        files = exported(Path(folder))
        tokenizer, model = transformers_model(files)
        pooled = sentence_transformer(files)
        write_onnx(tokenizer, model, Path(folder) / "model.onnx")
        onnx = OnnxEncoder.of(tokenizer, Path(folder) / "model.onnx")
    lengths = piece_lengths(tokenizer, texts)
    words = [len(word_places(pretrained, text)) for text in texts]
    check(pretrained, tokenizer, model, pooled, onnx, texts[:BATCH])
    ordered = [texts[i] for i in by_length(tokenizer, texts)]

    def ours() -> int:
        pretrained.represent(texts, layers="top")
        return sum(lengths)

    def onnxruntime() -> int:
        for _ in onnx.batches(ordered):
            pass
        return sum(lengths)

    def sentence_transformers() -> int:
        pooled.encode(texts, batch_size=BATCH)
        return sum(lengths)

    def transformers() -> int:
        some = len(texts) // 4
        with torch.inference_mode():
            for start in range(0, some, BATCH):
                model(**tokenizer(texts[start : start + BATCH], padding=True, return_tensors="pt"))
        return sum(lengths[:some])

    sides = {"ours": ours, "onnxruntime": onnxruntime, "sentence-transformers": sentence_transformers}
    rates = in_turns(
        {name: Side(side) for name, side in {**sides, "transformers": transformers}.items()}, setting.repeats
    )
    encoder: Any = pretrained.encoder
    for peer, (name, goal) in PEERS.items():
        yield Measurement(
            work=f"BERT encoding ({MODEL}, top layer), against {peer}",
            unit="tokens/s",
            ours=rates["ours"],
            peer=rates[peer],
            peer_name=name,
            goal=goal,
            flops_per_unit=bert(encoder.config, lengths, words),
        )


def check(pretrained: Pretrained, tokenizer: Any, model: Any, pooled: Any, onnx: OnnxEncoder, texts: list[str]) -> None:
    """All sides' vectors at the words of some texts."""
    mine = pretrained.represent(texts, layers="top")
    with torch.inference_mode():
        states = model(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state.numpy()
    theirs = {
        "transformers": [state[word_places(pretrained, text)] for text, state in zip(texts, states, strict=True)],
        "onnxruntime": onnx.at_words(texts, pretrained),
        "sentence-transformers": [
            state.numpy()[word_places(pretrained, text)]
            for text, state in zip(texts, pooled.encode(texts, output_value="token_embeddings"), strict=True)
        ],
    }
    for name, vectors in theirs.items():
        for ours, other in zip(mine, vectors, strict=True):
            check_close(f"vectors of {name}", ours[0], other, TOLERANCE)
