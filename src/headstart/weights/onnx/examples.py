"""The code in the README.md of an ONNX folder, which runs as it is there. The batch has one row: nothing is padded."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

TEXT = '"A warm , funny film ."'
PAIR = '"A man plays a guitar .", "A man makes music ."'
QUESTION = '"Who likes the film ?", "The old actor likes the film , and nobody else does ."'
OPEN_SESSION = """session = onnxruntime.InferenceSession("model.onnx")
inputs = {name: np.array(rows, np.int64) for name, rows in inputs.items()}
"""


@dataclass(frozen=True, slots=True)
class Example:
    """What the code for one encoder is put together from.

    opening: imports, and the tokenizer; inputs: statements that make `inputs` of TEXT, one text, or two of them for an
    encoder that joins them; word_starts, piece_starts: expressions for the positions of the words, or of all pieces;
    options: statements that make the options of a run, if it needs any.
    """

    opening: str
    inputs: str
    word_starts: str
    piece_starts: str = ""
    options: str = ""

    def reading(self, text: str, starts: str | None = None) -> str:
        """The inputs of a text, given as code. starts: what is in word_starts, if that is an input."""
        made = self.inputs.replace("TEXT", text)
        return made if starts is None else f'{made}\ninputs["word_starts"] = [[{starts}]]'

    def words(self, *, with_first: bool, every_piece: bool = False) -> str:
        """What is in word_starts. with_first: the first position counts as a word before the others."""
        return f"{'0, ' if with_first else ''}*{self.piece_starts if every_piece else self.word_starts}"


def encoder_example(example: Example) -> str:
    """Code that runs an encoder on one text."""
    given = "inputs, options" if example.options else "inputs"
    made = f"{example.opening}\n{example.reading(TEXT)}\n{OPEN_SESSION}"
    return f'{made}{example.options}[layers] = session.run(["layers"], {given})'


def labels_example(example: Example, texts: str, starts: str | None) -> str:
    """Code that classifies a text, or two that are read together."""
    return f"{example.opening}\n{example.reading(texts, starts)}\n{OPEN_SESSION}{RUN_LABELS}"


def labels_apart_example(example: Example) -> str:
    """Code that classifies two texts that are read apart."""
    return f"{example.opening}\ntexts = {PAIR}\n{reading_apart(example)}\n{OPEN_SESSION}{RUN_LABELS}"


def answer_example(example: Example, starts: str | None, longest: int) -> str:
    """Code that finds the answer to a question in its context, which are read together. longest: pieces in it."""
    reading = example.reading("question, context", starts)
    # Where the input word_starts chooses the pieces that are scored, they are numbered by it.
    places = "range(len(read.ids))" if starts is None else 'inputs["word_starts"][0]'
    found = f"""{best_span(longest, f"[n for n, i in enumerate({places}) if read.sequence_ids[i] == 1]")}
begin, end = (read.offsets[{places}[n]] for n in (first, last))
answer = context[begin[0] : end[1]]"""
    return f"{example.opening}\nquestion, context = {QUESTION}\n{reading}\n{OPEN_SESSION}{RUN_SPANS}{found}"


def answer_apart_example(example: Example, longest: int) -> str:
    """The same for texts that are read apart: which words of the context are the answer."""
    found = f"""{best_span(longest, "range(1, starts.shape[1])")}
answer = first - 1, last - 1  # words of the context: column 0 is that of no answer"""
    return f"{example.opening}\ntexts = {QUESTION}\n{reading_apart(example)}\n{OPEN_SESSION}{RUN_SPANS}{found}"


RUN_LABELS = '[probabilities] = session.run(["probabilities"], inputs)'
RUN_SPANS = 'starts, ends = session.run(["start_logits", "end_logits"], inputs)\n'


def best_span(longest: int, inside: str) -> str:
    """Code that finds the first and the last of the answer's columns. inside: code for the columns of the context."""
    return f"""inside = {inside}
spans = [(i, j) for i in inside for j in inside if i <= j < i + {longest}]
first, last = max(spans, key=lambda span: starts[0, span[0]] + ends[0, span[1]])"""


def reading_apart(example: Example) -> str:
    """Code that makes the inputs of two texts, whose names end in 1 and 2."""
    reading = indent(example.reading("text", example.words(with_first=False)), " " * 4)
    return f"""given = {{}}
for number, text in enumerate(texts, 1):
{reading}
    given |= {{f"{{name}}_{{number}}": rows for name, rows in inputs.items()}}
inputs = given"""
