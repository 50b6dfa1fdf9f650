"""Extractive question answering: the part of a context that answers a question, or that there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from headstart.batches.rows import Apart, Joined
from headstart.config import Section, Table
from headstart.errors import DataError
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.heads.span import SpanHead, SpanHeadConfig, span_head, span_loss
from headstart.metrics import Metric
from headstart.tasks.answer_search import MOST_CANDIDATES, Answered, AnswerSpan, Candidate, merged, probabilities
from headstart.tasks.base import Passage, Scores, Target, Task, Tokenized, Writer, cut_sentence, of_class
from headstart.tasks.contexts import (
    NOWHERE,
    candidates,
    first_tokens,
    spans_of,
    units_of_answer,
    windows_of,
)
from headstart.tasks.prediction_writers import JsonLines
from headstart.tasks.qa_inputs import questions_about, read_unanswered
from headstart.tasks.qa_scores import QA_F1, best_threshold, by_answer_kind, exact_match, f1
from headstart.tasks.qa_shown import show_question
from headstart.tasks.qa_writers import AnswerLines, AnswerView, SquadPredictions
from headstart.tasks.questions import GoldAnswer, Question, Version, mixed_versions
from headstart.tasks.shown import Shown
from headstart.tasks.squad import QaInputConfig, question_line, read_questions
from headstart.text.words import split_words, word_spans


@dataclass(frozen=True)
class Qa(Task[Question, Answered]):
    """version: of SQuAD's rules; in 2.0 a question may have no answer. threshold: how much higher "no answer" must
    score than the best answer to be given; chosen on dev."""

    version: Version = "1.1"
    threshold: float = 0.0

    name: ClassVar[str] = "qa"
    title: ClassVar[str] = "question answering"
    one: ClassVar[str] = "question"
    many: ClassVar[str] = "questions"
    asks: ClassVar[tuple[str, ...]] = ("question", "context")
    Network: ClassVar[type[RecurrentConfig]] = SpanHeadConfig
    Input: ClassVar[type[Section]] = QaInputConfig
    scores_words: ClassVar[bool] = True
    rate_factor: ClassVar[float] = 2.0
    saved_keys: ClassVar[Mapping[str, type]] = {"version": str, "threshold": float}

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, config: Section) -> list[Question]:
        """SQuAD 1.1 or 2.0 (.json), or JSON lines with context, question and answers."""
        return read_questions(Path(path), of_class(QaInputConfig, config)).questions

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        given = of_class(QaInputConfig, config)
        skipped = read_questions(Path(path), given).skipped if given.skip_bad else []
        if not skipped:
            return []
        said = "1 question was" if len(skipped) == 1 else f"{len(skipped):,} questions were"
        return [f"{path}: {said} left out; the first: {skipped[0]}"]

    @classmethod
    def learn(cls, train: Sequence[Question]) -> Self:
        answers = [gold_answers(question) for question in train]
        if not any(answers):
            raise DataError("No training question has an answer, so there is nothing to learn.")
        return cls("1.1" if all(answers) else "2.0")

    @classmethod
    def from_table(cls, table: Table) -> Self:
        return cls(table["version"], table["threshold"])

    def to_table(self) -> Table:
        return {"version": self.version, "threshold": self.threshold}

    @property
    def metric(self) -> Metric:
        return QA_F1

    def check(self, examples: Sequence[Question], known_to: str) -> None:
        for example in examples:
            if self.version == "1.1" and not gold_answers(example):
                raise DataError(
                    f"{example.where}: the question '{example.id}' has no answer (SQuAD 2.0), and {known_to} all have "
                    "one (SQuAD 1.1). Train on questions with and without answers, or leave these out. For a BERT "
                    "from elsewhere that was trained on both, give --no-answer-threshold 0."
                )

    def between(self, train: Sequence[Question], dev: Sequence[Question]) -> list[str]:
        notice = mixed_versions(train, dev)
        return [] if notice is None else [notice]

    @classmethod
    def key(cls, example: Question) -> str:
        return f"{example.question}\t{example.context}"

    @classmethod
    def gold(cls, example: Question) -> list[list[Any]] | None:
        return None if example.answers is None else [[answer.text, answer.start] for answer in example.answers]

    @classmethod
    def line(cls, example: Question) -> Table:
        return question_line(example)

    @classmethod
    def stratum(cls, example: Question) -> str:
        return "answer" if example.answers else "no answer"

    @classmethod
    def words(cls, example: Question) -> Sequence[str]:
        return [*split_words(example.question), *split_words(example.context)]

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        if how in ("finetune", "gradual") and joins:
            network = {"reads": "together", "cell": "none", "dropout": 0.1}
            fitting = {"batch": 16, "epochs": 2.0, "min_steps": 150, "evaluations": 4, "evaluate_examples": 500}
            return {"longest": 384, "stride": 128, "network": network, "fitting": fitting}
        fitting = {"epochs": 6.0, "evaluate_examples": 500}
        return {"longest": 400, "stride": 128, "network": {"reads": "apart"}, "fitting": fitting}

    def passages(self, example: Question, tokenized: Tokenized) -> list[Passage]:
        """The question with the context, or with each of its overlapping windows; no word is left out.

        Of a question that is longer than half a sequence, or than a whole one where it is read apart, the rest is cut.
        """
        most = tokenized.longest // 2 if tokenized.together else tokenized.longest
        question, taken, cut = first_tokens(example.question, max(1, most), tokenized)
        room = max(1, tokenized.longest - taken - 1) if tokenized.together else tokenized.longest
        found: list[Passage] = []
        for start, window in windows_of(example.context, room, tokenized):
            part, _, too_long = first_tokens(window, room, tokenized)
            text = Joined(question, part) if tokenized.together else Apart(question, part)
            spans = tokenized.units(part).spans + start
            found.append(Passage(text, spans=spans, cut=cut or too_long))
        return found

    def targets(self, example: Question, passages: Sequence[Passage]) -> list[Target]:
        """Of each window: the first and the last unit of the first gold answer, and the number of units."""
        answers = gold_answers(example)
        found = []
        for passage in passages:
            spans = spans_of(passage)
            first, last = units_of_answer(spans, answers[0]) if answers else (NOWHERE, NOWHERE)
            found.append(np.array([first, last, len(spans)], dtype=np.int64))
        return found

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        return span_head(inputs, joined, of_class(SpanHeadConfig, config))

    def weight(self, target: Target) -> int:
        return 1

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        first, last, units = torch.from_numpy(np.stack(targets)).to(scores.device).T
        context = mask.sum(dim=1) - units
        starts, ends = ((context + place).where(place != NOWHERE, 0) for place in (first, last))
        return span_loss(scores, mask, starts, ends, context)

    def decode(
        self,
        head: Head,
        examples: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Answered]:
        longest = of_class(SpanHead, head).config.longest_answer
        found = []
        for example, own, of_example in zip(examples, passages, scores, strict=True):
            windows = [
                candidates(passage, rows, longest, example.context)
                for passage, rows in zip(own, of_example, strict=True)
            ]
            best = merged([spans for spans, _ in windows], MOST_CANDIDATES)
            null = min((null for _, null in windows), default=0.0) if self.version == "2.0" else None
            found.append(self.answer(example.context, best, null))
        return found

    def answer(self, context: str, best: Sequence[AnswerSpan], null: float | None) -> Answered:
        """The best candidate; or none, where that scores higher by more than the threshold."""
        shares = probabilities([span.score for span in best], null).tolist()
        listed = tuple(
            Candidate(context[span.start : span.end], span.start, span.end, share, span.score)
            for span, share in zip(best, shares, strict=False)  # the last share is that of no answer
        )
        if not listed or (null is not None and null - listed[0].score > self.threshold):
            share = shares[-1] if null is not None else 0.0
            return Answered("", NOWHERE, NOWHERE, share, null or 0.0, null, listed)
        first = listed[0]
        return Answered(first.text, first.start, first.end, first.probability, first.score, null, listed)

    def tuned(self, examples: Sequence[Question], answers: Sequence[Answered]) -> Self:
        """With the threshold that gives the highest F1 on these examples, where questions may have no answer."""
        if self.version == "1.1" or not examples:
            return self
        differences = []
        for example, answer in zip(examples, answers, strict=True):
            gold = gold_texts(example)
            best = answer.best[0] if answer.best else Candidate("", NOWHERE, NOWHERE, 0.0, -np.inf)
            differences.append(((answer.null_score or 0.0) - best.score, f1(best.text, gold), f1("", gold)))
        return replace(self, threshold=best_threshold(differences)[0])

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: Question, answer: Answered) -> Sequence[float]:
        return (f1(answer.text, gold_texts(example), version=self.version), 1.0)

    def scores(self, examples: Sequence[Question], answers: Sequence[Answered]) -> dict[str, float]:
        pairs = zip(examples, answers, strict=True)
        exact = [exact_match(answer.text, gold_texts(example), version=self.version) for example, answer in pairs]
        return {"f1": self.metric.of(self.all_counts(examples, answers)), "exact_match": sum(exact) / len(exact)}

    def score_titles(self) -> dict[str, str]:
        return {"f1": "F1", "exact_match": "exact match"}

    def details(self, examples: Sequence[Question], answers: Sequence[Answered]) -> Table:
        kinds = by_answer_kind([answer.text for answer in answers], [gold_texts(example) for example in examples])
        return {"kinds": kinds if self.version == "2.0" else {}}

    def describe(self, details: Table) -> list[str]:
        if not details["kinds"]:
            return []
        lines = ["         exact match        F1  questions"]
        for kind, row in details["kinds"].items():
            exact, share = (f"{100 * row[name]:.1f} %" for name in ("exact", "f1"))
            lines.append(f"{kind:<7}  {exact:>11}  {share:>8}  {row['questions']:>9,}")
        return lines

    def baseline(self, train: Sequence[Question], examples: Sequence[Question]) -> tuple[str, list[Answered]]:
        """The context's first words, as many as gold answers have in the middle; in 2.0, no answer."""
        if self.version == "2.0":
            return "never an answer", [self.answer("", [], 0.0) for _ in examples]
        lengths = [len(split_words(answers[0].text)) for question in train if (answers := gold_answers(question))]
        words = max(1, median_low(lengths))
        title = "the first word of the context" if words == 1 else f"the first {words} words of the context"
        return title, [first_words(question.context, words) for question in examples]

    def collapsed(self, answers: Sequence[Answered]) -> bool:
        return len(answers) > 1 and len({(answer.start, answer.end) for answer in answers}) == 1

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[Question]:
        return read_unanswered(source, of_class(QaInputConfig, config))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[Question]:
        return list(questions_about(texts["context"], [texts["question"]], "the context", blank=True))

    def empty_answer(self, example: Question) -> Answered:
        return Answered("", NOWHERE, NOWHERE, 0.0, 0.0, None, ())

    @classmethod
    def is_empty(cls, example: Question) -> bool:
        return not example.question.strip() or not example.context.strip()

    def as_json(self, example: Question, answer: Answered) -> dict[str, Any]:
        best = [
            {"answer": one.text, "start": one.start, "end": one.end, "probability": round(one.probability, 6)}
            for one in answer.best
        ]
        found = {
            "id": example.id,
            "question": example.question,
            "answer": answer.text,
            "start": answer.start if answer.text else None,
            "end": answer.end if answer.text else None,
            "probability": round(answer.probability, 6),
            "best": best,
        }
        if answer.null_score is not None:
            found["no_answer_probability"] = round(1 - math.fsum(one.probability for one in answer.best), 6)
        return found | {name: value for name, value in (example.record or {}).items() if name not in found}

    def show(self, example: Question, answers: Sequence[Table]) -> Shown:
        return show_question(example, answers)

    def writers(self) -> Mapping[str, type[Writer[Question, Answered]]]:
        return {"tsv": AnswerLines, "json": JsonLines, "squad": SquadPredictions, "view": AnswerView}

    def default_format(self, terminal: bool) -> str:
        return "view" if terminal else "tsv"

    @classmethod
    def cut_note(cls, count: int, together: bool = False) -> str:
        lost = "its end" if count == 1 else "the end of each"
        return cut_sentence(count, cls.one, cls.many, f"{lost} was left out")


def gold_answers(example: Question) -> tuple[GoldAnswer, ...]:
    if example.answers is None:
        raise DataError(
            f"{example.where}: the question '{example.id}' has no 'answers', so that nothing can be learned or scored."
        )
    return example.answers


def gold_texts(example: Question) -> list[str]:
    return [answer.text for answer in gold_answers(example)]


def first_words(context: str, words: int) -> Answered:
    spans = word_spans(context)[:words]
    start, end = (spans[0][0], spans[-1][1]) if spans else (NOWHERE, NOWHERE)
    return Answered(context[start:end] if spans else "", start, end, 1.0, 0.0, None, ())
