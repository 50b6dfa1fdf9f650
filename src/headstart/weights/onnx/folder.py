"""The folder of an ONNX model: the model, the tokenizer's files, and a README.md with a working example."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
}


@dataclass(frozen=True, slots=True)
class Example:
    """Code for README.md, which runs as it is in the folder. One text is the whole batch, so nothing needs padding.

    inputs: statements that make the inputs; word_starts: an expression for the positions of the words; options:
    statements that make the options of a run, if it needs any.
    """

    inputs: str
    word_starts: str
    options: str = ""


OPEN_SESSION = """session = onnxruntime.InferenceSession("model.onnx")
inputs = {name: np.array(rows, np.int64) for name, rows in inputs.items()}
"""


def encoder_example(example: Example) -> str:
    """Code that runs an encoder on one text."""
    given = "inputs, options" if example.options else "inputs"
    return f'{example.inputs}\n{OPEN_SESSION}{example.options}[layers] = session.run(["layers"], {given})'


def model_example(example: Example, *, with_first: bool) -> str:
    """Code that classifies one text. with_first: the sequence's first position counts as a word before the others."""
    starts = f'inputs["word_starts"] = [[{"0, " if with_first else ""}*{example.word_starts}]]'
    return f'{example.inputs}\n{starts}\n{OPEN_SESSION}[probabilities] = session.run(["probabilities"], inputs)'


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """All that is written. labels: what a classifier predicts, in order; example: code for README.md."""

    graph: Graph
    encoder: Encoder
    tokenizer: Tokenizer
    labels: Sequence[str]
    example: str

    def write(self, folder: Path) -> None:
        """All files or none. The model is checked by onnx itself."""
        import onnx

        metadata = {"kind": self.encoder.kind, "labels": json.dumps(list(self.labels), ensure_ascii=False)}
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
        parts += ["The model's metadata has its kind and its labels (as JSON).", f"```python\n{self.example}\n```"]
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
        lines.append(f"| `{value.name}` | {kind} | ({shape}) | {MEANINGS.get(value.name, '')} |")
    return "\n".join(lines)
