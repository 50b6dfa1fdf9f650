"""Questions as transformers' Trainer learns them, as in the example of its documentation: windows of the context beside
the question, then a search for the best span.

Sequences have 384 pieces at most, and neighbouring windows of a long context share 128. A window without the answer is
labelled with its first piece, [CLS].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from transformers import AutoModelForQuestionAnswering, DataCollatorWithPadding, EvalPrediction

from bench.peers.trainer import Row, TrainerSide
from headstart.tasks.base import Task
from headstart.tasks.qa_scores import exact_match, f1
from headstart.tasks.questions import GoldAnswer, Question

LONGEST, STRIDE = 384, 128
MOST_CANDIDATES, LONGEST_ANSWER = 20, 30
NO_ANSWER = 0
"""The position of [CLS]."""
CONTEXT = 1
"""The number of the context among a row's two texts."""
Padding = Literal["max", "longest"]
"""To 384 pieces, as the example of transformers does by default, or to the longest row of each batch."""


@dataclass(frozen=True, slots=True)
class Window:
    """One row of a question. inside: (T,), True at the context's pieces; spans: (T, 2), their characters."""

    question: int
    inside: NDArray[np.bool_]
    spans: NDArray[np.int64]


class QuestionTrainer(TrainerSide[Question]):
    """Where the answer starts and where it ends."""

    auto_model = AutoModelForQuestionAnswering
    collator = DataCollatorWithPadding

    def __init__(self, files: Path, task: Task[Question, Any], padding: Padding = "max") -> None:
        super().__init__(files, task)
        self.padding = padding
        self.read: tuple[Sequence[Question], list[Window]] = ((), [])
        """The dev examples read last, so that scoring them does not tokenise them a second time."""

    def model(self) -> Any:
        return self.auto_model.from_pretrained(self.files)

    def windows(self, examples: Sequence[Question]) -> tuple[list[Row], list[Window]]:
        encoded = self.tokenizer(
            [example.question for example in examples],
            [example.context for example in examples],
            truncation="only_second",
            max_length=LONGEST,
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding="max_length" if self.padding == "max" else False,
        )
        questions, spans = encoded.pop("overflow_to_sample_mapping"), encoded.pop("offset_mapping")
        rows = [{key: encoded[key][i] for key in encoded} for i in range(len(questions))]
        windows = [
            Window(
                question,
                np.array([text == CONTEXT for text in encoded.sequence_ids(i)], dtype=bool),
                np.array(spans[i], dtype=np.int64),
            )
            for i, question in enumerate(questions)
        ]
        return rows, windows

    def rows(self, examples: Sequence[Question]) -> list[Row]:
        rows, windows = self.windows(examples)
        for row, window in zip(rows, windows, strict=True):
            row["start_positions"], row["end_positions"] = positions(window, examples[window.question].answers or ())
        return rows

    def dev_rows(self, examples: Sequence[Question]) -> list[Row]:
        rows, windows = self.windows(examples)
        self.read = examples, windows
        return rows

    def scores(self, found: EvalPrediction, dev: Sequence[Question]) -> dict[str, float]:
        return answer_scores(dev, self.texts(found.predictions, dev))

    def score(self, found: EvalPrediction, dev: Sequence[Question]) -> float:
        return self.scores(found, dev)["f1"]

    def texts(self, logits: Any, examples: Sequence[Question]) -> list[str]:
        """The best answer to each question over all its windows. logits: of starts and of ends, (rows, T) each."""
        known, windows = self.read
        if known is not examples:
            windows = self.windows(examples)[1]
        best: dict[int, tuple[float, int, int]] = {}
        for window, start, end in zip(windows, *logits[:2], strict=True):
            found = best_span(window, start, end)
            if found is not None and found > best.get(window.question, (-np.inf, 0, 0)):
                best[window.question] = found
        spans = [best.get(number, (0.0, 0, 0))[1:] for number in range(len(examples))]
        return [example.context[start:end] for example, (start, end) in zip(examples, spans, strict=True)]


def positions(window: Window, answers: Sequence[GoldAnswer]) -> tuple[int, int]:
    """The first and the last piece of the first answer; [CLS] twice if the window does not hold all of it."""
    places = np.flatnonzero(window.inside)
    if not answers or not len(places):
        return NO_ANSWER, NO_ANSWER
    start, end = answers[0].start, answers[0].start + len(answers[0].text)
    spans = window.spans[places]
    held = places[(spans[:, 1] > start) & (spans[:, 0] < end)]
    if start < spans[0, 0] or end > spans[-1, 1] or not len(held):
        return NO_ANSWER, NO_ANSWER
    return int(held[0]), int(held[-1])


def best_span(window: Window, start: NDArray[np.float32], end: NDArray[np.float32]) -> tuple[float, int, int] | None:
    """(sum of both logits, first character, one beyond the last) of the best legal span; None if there is none.

    Starts and ends are the 20 best of the row, marks and the question included; a span with one of those is not legal.
    start, end: (T,) or longer, where rows of several batches were padded to one length.
    """
    T = len(window.inside)
    starts, ends = (np.argsort(-scores[:T], kind="stable")[:MOST_CANDIDATES] for scores in (start, end))
    length = ends[None, :] - starts[:, None] + 1
    legal = window.inside[starts][:, None] & window.inside[ends][None, :] & (length >= 1) & (length <= LONGEST_ANSWER)
    if not legal.any():
        return None
    sums = np.where(legal, start[starts][:, None] + end[ends][None, :], -np.inf)
    i, j = np.unravel_index(int(sums.argmax()), sums.shape)
    return float(sums[i, j]), int(window.spans[starts[i], 0]), int(window.spans[ends[j], 1])


def answer_scores(questions: Sequence[Question], texts: Sequence[str]) -> dict[str, float]:
    """F1 and exact match of answers of either side, counted the same for both."""
    pairs = [
        (text, [gold.text for gold in question.answers or ()]) for question, text in zip(questions, texts, strict=True)
    ]
    return {
        "f1": sum(f1(text, golds) for text, golds in pairs) / len(pairs),
        "exact_match": sum(exact_match(text, golds) for text, golds in pairs) / len(pairs),
    }
