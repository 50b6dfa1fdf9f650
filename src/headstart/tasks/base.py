"""The joint between labelled examples and a model: everything that other rooms ask of a task.

An example becomes passages, the sequences that an encoder reads: one for a short text, several overlapping ones for a
long document. The encoder, the mix and the head score the words of every passage; `decode` gathers the passages of an
example into its answer. A metric counts per example, so that scores of any task can be resampled by example.

Letters: N examples, W words, C classes or tags, M counts of the metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.rows import AnyText, Apart
from headstart.config import Section, Table
from headstart.errors import ConfigError
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.metrics import Counts, Metric
from headstart.tasks.shown import Shown
from headstart.text.words import split_words

ExampleT = TypeVar("ExampleT")
AnswerT = TypeVar("AnswerT")
ValueT = TypeVar("ValueT")
ExampleT_contra = TypeVar("ExampleT_contra", contravariant=True)
AnswerT_contra = TypeVar("AnswerT_contra", contravariant=True)
Scores = NDArray[np.float32]
"""What the head says of one passage: (C,) of a whole text, or (W, C) of its words."""
Target = NDArray[np.int64]
"""What the head should say of one passage: () for a whole text, or (W,) for its words."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One sequence that the encoder reads, or two texts apart. start: which word of the example its first word is."""

    text: AnyText | Apart
    start: int = 0
    spans: NDArray[np.int64] | None = field(default=None, compare=False)
    """(U, 2), of the second text's units, the characters of the example that each of them covers."""
    cut: bool = False
    """The task left out part of the example, because it is longer than the user's limit."""


@dataclass(frozen=True, slots=True)
class Units:
    """What a model scores of a text: its words, or its pieces. All (U,), and spans (U, 2), in characters of the text.

    tokens: how many of a sequence's tokens each unit takes; words: the word that each unit belongs to.
    """

    spans: NDArray[np.int64]
    tokens: NDArray[np.int64]
    words: NDArray[np.int64]


class Tokenized(Protocol):
    """How a model reads texts: what it takes for units, and how many fit into one sequence of the encoder."""

    @property
    def longest(self) -> int:
        """Tokens in one sequence, without the special tokens around it."""
        ...

    @property
    def stride(self) -> int:
        """Tokens that neighbouring windows share."""
        ...

    @property
    def together(self) -> bool:
        """Whether the two texts of a pair stand in one sequence."""
        ...

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]: ...

    def units(self, text: str) -> Units: ...


class Task(ABC, Generic[ExampleT, AnswerT]):
    """A labelled task whose labels are known: from its training examples (`learn`), or from a saved model."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What people call it, such as "text classification"."""
    one: ClassVar[str] = "example"
    many: ClassVar[str] = "examples"
    """What its examples are called: "text", "sentence"."""
    Network: ClassVar[type[RecurrentConfig]]
    """The settings of its head."""
    Input: ClassVar[type[Section]]
    """The settings of its readers."""
    scores_words: ClassVar[bool] = False
    """Whether the head scores every word, and not the text as a whole."""
    scores_documents: ClassVar[bool] = False
    """Whether the loss reads consecutive passages of one example together, and not each passage by itself."""
    rate_factor: ClassVar[float] = 1.0
    """How much larger the steps of a fine-tuned encoder are than those of classification."""
    ignores_case: ClassVar[bool] = True
    """Whether a model that starts from scratch folds the case of words."""
    asks: ClassVar[tuple[str, ...]] = ("text",)
    """The names of the plain texts that a model is asked about together, such as a question and its context."""
    saved_keys: ClassVar[Mapping[str, type]] = {"labels": list}
    """What `from_table` needs."""

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def read(cls, path: Path, config: Section) -> list[ExampleT]:
        """The labelled examples of a file; a DataError tells the file and the line."""

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        """What the user should know about how a file is read."""
        return []

    @classmethod
    @abstractmethod
    def learn(cls, train: Sequence[ExampleT]) -> Self:
        """The task with the labels that these examples show."""

    @classmethod
    @abstractmethod
    def from_table(cls, table: Table) -> Self:
        """The task as a saved model's config.toml tells it."""

    @abstractmethod
    def to_table(self) -> Table:
        """What `from_table` reads."""

    @property
    def class_names(self) -> list[str]:
        """The labels in order; none for a task without classes."""
        return list(self.to_table().get("labels", ()))

    @property
    @abstractmethod
    def metric(self) -> Metric:
        """The primary metric: it chooses the best step, the best seed and the best row."""

    @abstractmethod
    def check(self, examples: Sequence[ExampleT], known_to: str) -> None:
        """Refuse examples whose labels the training examples never showed."""

    def between(self, train: Sequence[ExampleT], dev: Sequence[ExampleT]) -> list[str]:
        """What the user should know about how two files fit together."""
        return []

    @classmethod
    @abstractmethod
    def key(cls, example: ExampleT) -> str:
        """The input as one string, to find the same text in two files. It need not tell where words begin and end."""

    @classmethod
    @abstractmethod
    def gold(cls, example: ExampleT) -> Any:
        """The gold answer as plain values, for checksums and files."""

    @classmethod
    @abstractmethod
    def line(cls, example: ExampleT) -> Table:
        """A labelled example as the JSON line that `read` takes without settings."""

    @classmethod
    def words(cls, example: ExampleT) -> Sequence[str]:
        """The words of an example, as a model that starts from scratch learns them."""
        return split_words(cls.key(example))

    @classmethod
    def stratum(cls, example: ExampleT) -> str:
        """Draws of few examples keep the proportions of the strata, such as the classes; by default there is one."""
        return ""

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        """Settings that suit this task: `how` is frozen, finetune, gradual or scratch.

        joins: whether the encoder reads two texts in one sequence.
        """

    @abstractmethod
    def passages(self, example: ExampleT, tokenized: Tokenized) -> list[Passage]:
        """The sequences that the encoder reads of an example."""

    @abstractmethod
    def targets(self, example: ExampleT, passages: Sequence[Passage]) -> list[Target]:
        """What the head should say of each passage."""

    @abstractmethod
    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        """inputs: width of the words' vectors; joined: width of what is put beside the recurrent states, or 0."""

    @abstractmethod
    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        """Summed over what `weight` counts, (). scores: (B, C) or (B, W, C); mask: (B, W); targets: one per row."""

    def weight(self, target: Target) -> int:
        """How many answers a target holds: the loss of a step is the sum of the losses over the sum of these."""
        return max(1, target.size)

    def words_at_once(self, head: Head) -> int | None:
        """Words that a training step may read together within the memory that the user allows; None: any number."""
        return None

    def memory_note(self, head: Head, examples: Sequence[ExampleT]) -> str | None:
        """What the user should know of the memory that the answers to these examples take, before they are asked for; a
        ConfigError where they cannot be had within what the user allows."""
        return None

    @abstractmethod
    def decode(
        self, head: Head, examples: Sequence[ExampleT], passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[AnswerT]:  # fmt: skip
        """Answers from the scores of the passages of each example."""

    def follow_up(self, example: ExampleT, answer: AnswerT) -> ExampleT | None:
        """What the model is asked next, given its answer, such as the roles of the predicates that it found; the answer
        to that replaces the first one. None: the answer is final."""
        return None

    def tuned(self, examples: Sequence[ExampleT], answers: Sequence[AnswerT]) -> Self:
        """The task with whatever it chooses on dev once the model is fitted, such as a threshold."""
        return self

    # --- metric -------------------------------------------------------------------------------------------------------

    def scoring(self, examples: Sequence[ExampleT]) -> Self:
        """The task with the rules by which a file of these examples is scored, where the file decides that."""
        return self

    @abstractmethod
    def counts(self, example: ExampleT, answer: AnswerT) -> Sequence[float]:
        """What the metric counts of one example, (M,)."""

    def all_counts(self, examples: Sequence[ExampleT], answers: Sequence[AnswerT]) -> Counts:
        """(N, M)."""
        found = [self.counts(example, answer) for example, answer in zip(examples, answers, strict=True)]
        return np.array(found, dtype=np.float64).reshape(len(found), len(self.metric.counts))

    @abstractmethod
    def scores(self, examples: Sequence[ExampleT], answers: Sequence[AnswerT]) -> dict[str, float]:
        """All headline scores by name, the primary metric's first."""

    @abstractmethod
    def score_titles(self) -> dict[str, str]:
        """How each of `scores` is called, in the same order."""

    @abstractmethod
    def details(self, examples: Sequence[ExampleT], answers: Sequence[AnswerT]) -> Table:
        """Scores per label, and whatever else `evaluate` should tell, as plain values."""

    @abstractmethod
    def describe(self, details: Table) -> list[str]:
        """The lines that `evaluate` shows of `scores` and `details`."""

    def unaided(self, example: ExampleT) -> ExampleT | None:
        """The example without what its file gives besides the text and the gold answer, such as where the predicates
        are; None: there is no such thing."""
        return None

    def unaided_scores(self, examples: Sequence[ExampleT], answers: Sequence[AnswerT]) -> dict[str, float]:
        """Scores of the answers to `unaided` examples, by other names than those of `scores`. examples: with gold."""
        return {}

    @abstractmethod
    def baseline(self, train: Sequence[ExampleT], examples: Sequence[ExampleT]) -> tuple[str, list[AnswerT]]:
        """What no model should fall below: what it is called, and its answers."""

    @abstractmethod
    def collapsed(self, answers: Sequence[AnswerT]) -> bool:
        """Whether every example got the same answer, as a fit that learned nothing gives."""

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[ExampleT]:
        """Unlabelled examples of a file, or of standard input ("-"), as they come."""

    @classmethod
    @abstractmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[ExampleT]:
        """What is asked with plain texts, one for each name in `asks`: one example, or one for each sentence."""

    @abstractmethod
    def empty_answer(self, example: ExampleT) -> AnswerT:
        """The answer to an example without words, such as a blank line, which no model reads."""

    @classmethod
    def is_empty(cls, example: ExampleT) -> bool:
        return not cls.key(example).strip()

    @abstractmethod
    def as_json(self, example: ExampleT, answer: AnswerT) -> dict[str, Any]:
        """An answer as plain values, for JSON lines and for the cells of a comparison."""

    def show(self, example: ExampleT, answers: Sequence[Table]) -> Shown | None:
        """An example with some answers to it, as a report shows them; None: the task has no such view.

        answers: what `as_json` gave of each, without what repeats the example.
        """
        return None

    @abstractmethod
    def writers(self) -> Mapping[str, type[Writer[ExampleT, AnswerT]]]:
        """The formats that `predict` writes, the default one first."""

    def default_format(self, terminal: bool) -> str:
        """The format of `predict` where none is asked for. terminal: a person reads it."""
        return next(iter(self.writers()))

    @classmethod
    def cut_note(cls, count: int, together: bool = False) -> str:
        """What is said of examples that were longer than what a model reads.

        together: the two texts of a pair stood in one sequence.
        """
        return cut_sentence(count, "text", "texts", "the middle of each was left out")

    def page(self, path: Path) -> Page[ExampleT, AnswerT]:
        """A page to look at the answers."""
        others = ", ".join(self.writers())
        raise ConfigError(f"--html is for tagging, semantic roles and coreference; {self.title} gives --to {others}.")


class Writer(ABC, Generic[ExampleT, AnswerT]):
    """One format of predictions: text to write before, for and after the answers, which come in chunks."""

    def __init__(self, task: Task[ExampleT, AnswerT]) -> None:
        self.task = task

    def begin(self) -> str:
        return ""

    @abstractmethod
    def lines(self, pairs: Iterable[tuple[ExampleT, AnswerT]]) -> str:
        """Complete lines."""

    def end(self) -> str:
        return ""


class Page(Protocol[ExampleT_contra, AnswerT_contra]):
    """A page of answers that is written when all of them are there."""

    def add(self, pairs: Iterable[tuple[ExampleT_contra, AnswerT_contra]]) -> None: ...
    def save(self) -> None: ...


def of_class(kind: type[ValueT], given: object) -> ValueT:
    """`given`, checked to be of the class that a task works with; `Task` itself names only the base class."""
    if not isinstance(given, kind):
        raise ConfigError(f"This task needs a {kind.__name__}; got {type(given).__name__}.")
    return given


def cut_sentence(count: int, one: str, many: str, lost: str) -> str:
    """lost: what was left out."""
    return f"{f'1 {one} was' if count == 1 else f'{count:,} {many} were'} longer than what the model reads; {lost}"


def score_lines(title: str, rows: Mapping[str, Mapping[str, float]], counts: Sequence[str]) -> list[str]:
    """A table for the terminal: precision, recall and F1 of every label, and some counts of it."""
    width = max([len(title), *map(len, rows)])
    columns = {name: max(8, len(name)) for name in counts}
    heads = "  ".join(f"{name:>{w}}" for name, w in columns.items())
    lines = [f"{title:<{width}}  precision    recall        F1  {heads}"]
    for label, row in rows.items():
        shares = "  ".join(f"{100 * row[key]:6.1f} %" for key in ("precision", "recall", "f1"))
        numbers = "  ".join(f"{row[name]:>{w},}" for name, w in columns.items())
        lines.append(f"{label:<{width}}   {shares}  {numbers}")
    return lines
