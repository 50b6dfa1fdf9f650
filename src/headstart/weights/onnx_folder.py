"""The folder of an ONNX model: the model, its tokenizer's files, and a README.md that shows its use."""

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
from headstart.weights.onnx_graph import OPSET, Graph

if TYPE_CHECKING:
    from onnx import ValueInfoProto

MODEL, README = "model.onnx", "README.md"


@dataclass(frozen=True, slots=True)
class Accompaniment:
    """What the folder says beside the graph. example: code that runs it; labels: those that it predicts, if any."""

    encoder: Encoder
    labels: Sequence[str]
    tokenizer: Tokenizer
    example: str


MEANINGS = {
    "input_ids": "ids of the tokens",
    "attention_mask": "1 at real tokens, 0 at padding, which comes last in every row",
    "token_type_ids": "0 for the first text, 1 for the second of a pair",
    "characters": "character ids of the words, `<S>` before them and `</S>` after them, 0 at padding",
    "mask": "1 at real words and marks, 0 at padding, which comes last in every row",
    "word_starts": "where each word begins in its row, -1 where a row has no such word",
    "layers": "the vectors of every layer, lowest first",
    "pooled": "the vector of the whole sequence, from its first token",
    "masked_logits": "scores of every piece, for hidden pieces",
    "next_logits": "scores of: the second text follows the first, it does not",
    "classify_logits": "scores of the labels of the whole text",
    "tag_logits": "scores of the labels of each piece",
    "span_logits": "scores of each piece as the first and as the last of an answer",
    "probabilities": "of the labels, in their order; a row sums to 1",
    "logits": "the same before the softmax",
}


@dataclass(frozen=True, slots=True)
class Example:
    """Code for README.md, which runs as it is in the folder. One text is the whole batch, so nothing needs padding.

    inputs: makes the inputs; word_starts: an expression for the positions of the words; options: code that makes the
    options of a run, if it needs any.
    """

    inputs: str
    word_starts: str
    options: str = ""


EXAMPLES = {
    "static": Example(
        inputs="""import numpy as np, onnxruntime, pathlib
from headstart.text.tokenizer import load_tokenizer

words = load_tokenizer(pathlib.Path(".")).encode("A warm , funny film .")
inputs = {"input_ids": words.ids[None], "attention_mask": np.ones((1, len(words.ids)))}""",
        word_starts="range(len(words.ids))",
    ),
    "elmo": Example(
        inputs="""import numpy as np, onnxruntime, pathlib
from headstart.text.characters import character_table
from headstart.text.tokenizer import load_tokenizer

words = load_tokenizer(pathlib.Path(".")).encode("A warm , funny film .").units
inputs = {"characters": character_table(["<S>", *words, "</S>"])[None], "mask": np.ones((1, len(words) + 2))}""",
        word_starts="range(1, len(words) + 1)",
    ),
    "bert": Example(
        inputs="""import numpy as np, onnxruntime, tokenizers

text = tokenizers.Tokenizer.from_file("tokenizer.json").encode("A warm , funny film .")
inputs = {"input_ids": [text.ids], "attention_mask": [text.attention_mask], "token_type_ids": [text.type_ids]}""",
        word_starts="(i for i, word in enumerate(text.word_ids) if word not in (None, text.word_ids[i - 1]))",
        options="""options = onnxruntime.RunOptions()
options.only_execute_path_to_fetches = True  # or all outputs are computed, whichever are asked for
""",
    ),
}
RUN = """session = onnxruntime.InferenceSession("model.onnx")
inputs = {name: np.array(rows, np.int64) for name, rows in inputs.items()}
"""


def encoder_example(kind: str) -> str:
    """Code that runs an encoder on one text."""
    example = EXAMPLES[kind]
    given = "inputs, options" if example.options else "inputs"
    return f'{example.inputs}\n{RUN}{example.options}[layers] = session.run(["layers"], {given})'


def model_example(kind: str, *, with_first: bool) -> str:
    """Code that classifies one text. with_first: the encoder's first mark counts as a word before the others."""
    example = EXAMPLES[kind]
    starts = f'inputs["word_starts"] = [[{"0, " if with_first else ""}*{example.word_starts}]]'
    return f'{example.inputs}\n{starts}\n{RUN}[probabilities] = session.run(["probabilities"], inputs)'


def readme(graph: Graph, beside: Accompaniment) -> str:
    parts = [
        f"# {beside.encoder.kind} as ONNX",
        f"`{MODEL}` runs in onnxruntime and any other runtime of opset {OPSET}. A size with a name may be any number.",
        table("Input", graph.inputs),
        table("Output", graph.outputs),
    ]
    if beside.encoder.longest is not None:
        parts.append(f"A row holds at most {beside.encoder.longest} tokens.")
    if beside.labels:
        quoted = ", ".join(json.dumps(label, ensure_ascii=False) for label in beside.labels)
        parts.append(f"Labels, in order: {quoted}.")
    parts += ["The model's metadata has its kind and its labels (as JSON).", f"```python\n{beside.example}\n```"]
    return "\n\n".join(parts) + "\n"


def table(title: str, values: Sequence[ValueInfoProto]) -> str:
    lines = [f"| {title} | Type | Shape | |", "|---|---|---|---|"]
    for value in values:
        tensor = value.type.tensor_type
        kind = "int64" if title == "Input" else "float32"
        shape = ", ".join(size.dim_param or str(size.dim_value) for size in tensor.shape.dim)
        lines.append(f"| `{value.name}` | {kind} | ({shape}) | {MEANINGS.get(value.name, '')} |")
    return "\n".join(lines)


def write_folder(graph: Graph, beside: Accompaniment, folder: Path) -> None:
    """All files or none; the model has passed ONNX's own checker."""
    import onnx

    record = {"kind": beside.encoder.kind, "labels": json.dumps(list(beside.labels), ensure_ascii=False)}
    graph.check_size()

    def write(path: Path) -> None:
        path.write_bytes(graph.model(f"headstart-{beside.encoder.kind}", record).SerializeToString())

    with new_folder(folder) as made:
        write_atomically(made / MODEL, write)
        onnx.checker.check_model(str(made / MODEL), full_check=True)
        save_tokenizer(beside, made)
        write_text(made / README, readme(graph, beside))


def save_tokenizer(beside: Accompaniment, folder: Path) -> None:
    if isinstance(beside.tokenizer, WordPieceTokenizer) and beside.encoder.longest is not None:
        beside.tokenizer.save(folder, longest=beside.encoder.longest)
    else:
        beside.tokenizer.save(folder)
