"""The folder of an ONNX model: the model, the tokenizer's files, and a README.md with a working example."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.atomic import write_atomically, write_text
from headstart.encoders.base import Encoder
from headstart.text.tokenizer import Tokenizer
from headstart.text.wordpiece import WordPieceTokenizer
from headstart.weights.new_folder import new_folder
from headstart.weights.onnx.graph import OPSET, Graph

if TYPE_CHECKING:
    from onnx import ValueInfoProto

MODEL, README = "model.onnx", "README.md"
# For the tables of README.md: what the inputs and outputs are, whichever encoder has them.
MEANINGS = {
    "input_ids": "ids of the tokens",
    "attention_mask": "1 at real tokens, 0 at padding, which comes last in every row",
    "token_type_ids": "0 for the first text, 1 for the second of a pair",
    "characters": "character ids of the words, `<S>` before them and `</S>` after them, 0 at padding",
    "mask": "1 at words, `<S>` and `</S>`, 0 at padding, which comes last in every row",
    "word_starts": "where each word begins in its row, -1 where a row has no such word",
    "layers": "the vectors of every layer, lowest first",
    "pooled": "the vector of the whole sequence, from its first token",
    "masked_logits": "scores of every piece of the vocabulary, for masked pieces",
    "next_logits": "scores of two answers: the second text follows the first, it does not",
    "classify_logits": "scores of the labels, for the whole text",
    "tag_logits": "scores of the labels, for each piece",
    "span_logits": "scores of each piece as the first and as the last of an answer",
    "probabilities": "probabilities of the labels; each row sums to 1",
    "logits": "the same before the softmax",
    "start_logits": "scores of where the answer begins; the first column is that of no answer",
    "end_logits": "scores of where the answer ends; likewise",
}
OF_TEXT = {"_1": "of the first text", "_2": "of the second text"}
"""How the names of inputs end that belong to one of two texts which are read apart."""


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """All that is written. labels: what a classifier predicts, in order; example: code for README.md.

    record: what else is known about the model's task, by name.
    """

    graph: Graph
    encoder: Encoder
    tokenizer: Tokenizer
    labels: Sequence[str]
    example: str
    record: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """All files or none. The model is checked by onnx itself."""
        import onnx

        metadata = {"kind": self.encoder.kind, "labels": json.dumps(list(self.labels), ensure_ascii=False)}
        metadata |= {name: str(value) for name, value in self.record.items()}
        self.graph.check_size()

        def write_model(path: Path) -> None:
            path.write_bytes(self.graph.model(f"headstart-{self.encoder.kind}", metadata).SerializeToString())

        with new_folder(folder) as unfinished:
            write_atomically(unfinished / MODEL, write_model)
            onnx.checker.check_model(str(unfinished / MODEL), full_check=True)
            self._save_tokenizer(unfinished)
            write_text(unfinished / README, self.readme())

    def readme(self) -> str:
        parts = [
            f"# {self.encoder.kind} as ONNX",
            f"`{MODEL}` runs in onnxruntime and any other runtime of opset {OPSET}. Sizes with a name are dynamic.",
            table("Input", self.graph.inputs),
            table("Output", self.graph.outputs),
        ]
        if self.encoder.longest is not None:
            parts.append(f"A row holds at most {self.encoder.longest} tokens.")
        if self.labels:
            quoted = ", ".join(json.dumps(label, ensure_ascii=False) for label in self.labels)
            parts.append(f"Labels, in order: {quoted}.")
        if self.record.get("version") == "2.0":
            parts.append(
                "A question has no answer if the first column's start and end, added, exceed those of the best answer "
                f"by more than {self.record['threshold']}."
            )
        told = ["kind", *self.record]
        parts += [
            f"The model's metadata has its {', '.join(told)} and its labels (as JSON).",
            f"```python\n{self.example}\n```",
        ]
        return "\n\n".join(parts) + "\n"

    def _save_tokenizer(self, folder: Path) -> None:
        if isinstance(self.tokenizer, WordPieceTokenizer) and self.encoder.longest is not None:
            self.tokenizer.save(folder, longest=self.encoder.longest)
        else:
            self.tokenizer.save(folder)


def table(title: str, values: Sequence[ValueInfoProto]) -> str:
    lines = [f"| {title} | Type | Shape | |", "|---|---|---|---|"]
    for value in values:
        tensor = value.type.tensor_type
        kind = "int64" if title == "Input" else "float32"
        shape = ", ".join(size.dim_param or str(size.dim_value) for size in tensor.shape.dim)
        lines.append(f"| `{value.name}` | {kind} | ({shape}) | {meaning(value.name)} |")
    return "\n".join(lines)


def meaning(name: str) -> str:
    ending = next((ending for ending in OF_TEXT if name.endswith(ending)), "")
    said = MEANINGS.get(name.removesuffix(ending), "")
    return f"{said}; {OF_TEXT[ending]}" if ending and said else said
