"""The ways that others run a BERT: transformers, sentence-transformers, onnxruntime. All read our export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import text_row
from headstart.exporting import export
from headstart.pretrained import Pretrained, Vectors
from headstart.progress import result_of

MODEL = "minilm"
BATCH = 32
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"


def exported(folder: Path) -> Path:
    """The model as a folder that transformers reads."""
    return result_of(export(MODEL, "hf", folder / "hf"))


def transformers_model(files: Path) -> tuple[Any, Any]:
    """(its fast tokenizer, the model in evaluation)."""
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(files), AutoModel.from_pretrained(files).eval()


def sentence_transformer(files: Path) -> Any:
    """Mean-pooled, on the CPU."""
    from sentence_transformers import SentenceTransformer, models

    encoder = models.Transformer(str(files))
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(modules=[encoder, pooling], device="cpu")


def write_onnx(tokenizer: Any, model: Any, path: Path) -> None:
    """As transformers' own exporter does it: any number of sequences, of any length."""
    example = tokenizer(["two words"], return_tensors="pt")
    torch.onnx.export(
        model,
        tuple(example[name] for name in INPUTS),
        str(path),
        input_names=list(INPUTS),
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "sequences", 1: "pieces"} for name in (*INPUTS, OUTPUT)},
        dynamo=False,
    )


def write_int8(path: Path, out: Path, *, per_channel: bool = False) -> None:
    """As it comes; or with a scale per channel, and in seven bits so that no sum overflows on older processors."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    finer = {"per_channel": True, "reduce_range": True} if per_channel else {}
    quantize_dynamic(str(path), str(out), weight_type=QuantType.QInt8, **finer)


@dataclass(frozen=True, slots=True)
class OnnxEncoder:
    """onnxruntime on as many threads as torch has."""

    tokenizer: Any
    session: Any

    @staticmethod
    def of(tokenizer: Any, path: Path) -> OnnxEncoder:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        return OnnxEncoder(tokenizer, onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"]))

    def batches(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        """The last hidden state of every batch, (B, T, D), in the order of the texts."""
        for start in range(0, len(texts), BATCH):
            batch = self.tokenizer(list(texts[start : start + BATCH]), padding=True, return_tensors="np")
            yield self.session.run([OUTPUT], {name: batch[name] for name in INPUTS})[0]

    def at_words(self, texts: Sequence[str], pretrained: Pretrained) -> list[Vectors]:
        """What `represent` gives of the top layer: (words, D) of each text."""
        found: list[Vectors] = [np.empty((0, 0), np.float32)] * len(texts)
        order = by_length(self.tokenizer, texts)
        states = (row for batch in self.batches([texts[i] for i in order]) for row in batch)
        for i, state in zip(order, states, strict=True):
            found[i] = state[word_places(pretrained, texts[i])]
        return found


def by_length(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    """Rows of the texts, shortest first."""
    lengths = piece_lengths(tokenizer, texts)
    return sorted(range(len(texts)), key=lengths.__getitem__)


def piece_lengths(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    """Pieces of each text with its marks."""
    return [len(ids) for ids in tokenizer(list(texts))["input_ids"]]


def word_places(pretrained: Pretrained, text: str | Sequence[str]) -> NDArray[np.int64]:
    """Where in its sequence of pieces each word begins."""
    return text_row(pretrained.encoder, pretrained.tokenizer, text).word_starts
