"""Sequence tagging: one tag per word, such as named entities (BIO and its relatives) or parts of speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from headstart.batches.rows import padded, sorted_batches
from headstart.config import Section, Table, nearest
from headstart.errors import ConfigError, DataError
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.heads.tag import LegalTags, TagHead, TagHeadConfig
from headstart.metrics import ACCURACY, Metric, f1_of
from headstart.tasks.base import Passage, Scores, Target, Task, Tokenized, Writer, most_central, word_windows
from headstart.tasks.conll import TaggedSentence, read_tagged
from headstart.tasks.prediction_writers import JsonLines
from headstart.tasks.spans import (
    EntityCounts,
    Scheme,
    accuracy_counts,
    convert,
    counts_by_tag,
    counts_by_type,
    entity_counts,
    legal_transitions,
    scheme_of,
    scheme_of_names,
    spans_of,
    summed_counts,
    tag_names,
)
from headstart.tasks.tag_inputs import TagInputConfig, read_sentences
from headstart.tasks.tag_writers import ColouredView, ColumnLines, EntityPage

ENTITY_F1 = Metric("f1", "entity F1", ("right", "predicted", "gold"), f1_of)
TAG_ACCURACY = Metric("accuracy", "tag accuracy", ("right", "words"), ACCURACY.value)
DECODED_TOGETHER = 8_192
"""Words that Viterbi decodes at a time."""


@dataclass(frozen=True, slots=True)
class Tags:
    """One tag per word, in the scheme that the training examples were written in."""

    tags: tuple[str, ...]


@dataclass(frozen=True)
class Tag(Task[TaggedSentence, Tags]):
    """labels: the tags that are learned, in `scheme`; written: the scheme of the training examples and of answers.

    IOB1 is learned as BIO, because an IOB1 tag depends on the entity before it; answers are converted back.
    """

    labels: tuple[str, ...]
    scheme: Scheme = "bio"
    written: Scheme = "bio"

    name: ClassVar[str] = "tag"
    title: ClassVar[str] = "sequence tagging"
    one: ClassVar[str] = "sentence"
    many: ClassVar[str] = "sentences"
    Network: ClassVar[type[RecurrentConfig]] = TagHeadConfig
    Input: ClassVar[type[Section]] = TagInputConfig
    scores_words: ClassVar[bool] = True
    # With classification's own rate, entity F1 was nine points lower after 100 sentences of CoNLL-2003.
    rate_factor: ClassVar[float] = 3.0
    ignores_case: ClassVar[bool] = False

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, config: Section) -> list[TaggedSentence]:
        """CoNLL columns, or JSON lines with words and tags."""
        given = input_config(config)
        return read_tagged(Path(path), given.column, fields=(given.text_field, given.label_field))

    @classmethod
    def learn(cls, train: Sequence[TaggedSentence]) -> Self:
        tags = [gold_tags(example) for example in train]
        written = scheme_of(tags)
        scheme: Scheme = "bio" if written == "iob1" else written
        labels = tag_names([convert(row, scheme) for row in tags], scheme)
        if len(labels) < 2:
            only = f"all words have '{labels[0]}'" if labels else "there is no word"
            raise DataError(f"The training sentences need at least two different tags; {only}.")
        return cls(tuple(labels), scheme, written)

    @classmethod
    def from_table(cls, table: Table) -> Self:
        labels = tuple(table["labels"])
        scheme: Scheme = table.get("scheme") or scheme_of_names(labels)
        return cls(labels, scheme, table.get("written") or scheme)

    def to_table(self) -> Table:
        return {"labels": list(self.labels), "scheme": self.scheme, "written": self.written}

    @property
    def metric(self) -> Metric:
        return TAG_ACCURACY if self.scheme == "plain" else ENTITY_F1

    def check(self, examples: Sequence[TaggedSentence], known_to: str) -> None:
        known = set(self.labels)
        for example in examples:
            tags = convert(gold_tags(example), self.scheme)
            unknown = next((number for number, tag in enumerate(tags) if tag not in known), None)
            if unknown is not None:
                tag = gold_tags(example)[unknown]
                raise DataError(
                    f"{example.where}: word {unknown + 1} of this sentence, '{example.words[unknown]}', has the tag "
                    f"'{tag}', which {known_to} never showed.{nearest(tag, self.labels)}"
                )

    @classmethod
    def key(cls, example: TaggedSentence) -> str:
        return " ".join(example.words)

    @classmethod
    def gold(cls, example: TaggedSentence) -> list[str] | None:
        return None if example.tags is None else list(example.tags)

    @classmethod
    def words(cls, example: TaggedSentence) -> Sequence[str]:
        return example.words

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str) -> Table:
        if how in ("finetune", "gradual"):
            # A plain linear layer, as other tools have it: a fine-tuned encoder has read the neighbours already.
            network = {"cell": "none", "dropout": 0.1, "decoder": "constrained"}
            return {"network": network, "fitting": {"epochs": 3.0, "min_steps": 150}}
        return {"network": {"width": 128}, "fitting": {"epochs": 8.0}}

    def passages(self, example: TaggedSentence, tokenized: Tokenized) -> list[Passage]:
        """Each sentence, or overlapping windows of one that is longer than the encoder reads; no word is left out."""
        found: list[Passage] = []
        for first, last in sentences_of(example):
            tokens = tokenized.tokens_per_word(example.words[first:last])
            for start, end in word_windows(tokens, tokenized.longest):
                found.append(Passage(example.words[first + start : first + end], first + start))
        return found

    def targets(self, example: TaggedSentence, passages: Sequence[Passage]) -> list[Target]:
        index = {tag: number for number, tag in enumerate(self.labels)}
        tags = convert(gold_tags(example), self.scheme)
        whole = np.array([index[tag] for tag in tags], dtype=np.int64)
        return [self._legal(whole[p.start : p.start + words_in(p)]) for p in passages]

    def _legal(self, tags: Target) -> Target:
        """A window may begin or end inside an entity: its part there is a whole entity of its own, in any scheme."""
        names = [self.labels[tag] for tag in tags]
        index = {tag: number for number, tag in enumerate(self.labels)}
        return np.array([index[name] for name in convert(names, self.scheme)], dtype=np.int64)

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        if not isinstance(config, TagHeadConfig):
            raise ConfigError(f"Tagging needs the settings of its own head; got {type(config).__name__}.")
        return TagHead(inputs, joined, LegalTags(*legal_transitions(self.labels, self.scheme)), config)

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        tags, _ = padded(targets)
        W = scores.shape[1]
        return tag_head(head).loss(
            scores, mask, torch.nn.functional.pad(tags, (0, W - tags.shape[1])).to(scores.device)
        )

    def decode(
        self,
        head: Head,
        examples: Sequence[TaggedSentence],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Tags]:
        """The best legal sequence of each sentence; a word in two windows is scored where it has the most context."""
        emissions = [gathered(own, found, len(self.labels)) for own, found in zip(passages, scores, strict=True)]
        pieces = [
            (number, first, rows[first:last])
            for number, (example, rows) in enumerate(zip(examples, emissions, strict=True))
            for first, last in sentences_of(example)
            if first < last
        ]
        found: list[list[str]] = [[""] * len(rows) for rows in emissions]
        for batch in sorted_batches([len(rows) for *_, rows in pieces], DECODED_TOGETHER):
            for place, tags in zip(batch, self._best_tags(head, [pieces[i][2] for i in batch]), strict=True):
                number, first, rows = pieces[place]
                found[number][first : first + len(rows)] = tags
        return [Tags(tuple(tags)) for tags in found]

    def _best_tags(self, head: Head, emissions: Sequence[Scores]) -> Iterator[list[str]]:
        W = max(len(rows) for rows in emissions)
        scores = np.zeros((len(emissions), W, len(self.labels)), dtype=np.float32)
        mask = np.zeros((len(emissions), W), dtype=bool)
        for number, rows in enumerate(emissions):
            scores[number, : len(rows)], mask[number, : len(rows)] = rows, True
        device = next(head.parameters()).device
        decoded = tag_head(head).decode(torch.from_numpy(scores).to(device), torch.from_numpy(mask).to(device))
        for tags in decoded:
            names = [self.labels[tag] for tag in tags]
            yield names if self.written == self.scheme else convert(names, self.written)

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: TaggedSentence, answer: Tags) -> Sequence[float]:
        if self.scheme == "plain":
            return accuracy_counts(gold_tags(example), answer.tags)
        return entity_counts(gold_tags(example), answer.tags)

    def scores(self, examples: Sequence[TaggedSentence], answers: Sequence[Tags]) -> dict[str, float]:
        gold, predicted = [gold_tags(example) for example in examples], [answer.tags for answer in answers]
        pairs = [accuracy_counts(a, b) for a, b in zip(gold, predicted, strict=True)]
        accuracy = sum(right for right, _ in pairs) / max(1, sum(words for _, words in pairs))
        if self.scheme == "plain":
            return {"accuracy": accuracy}
        total = summed_counts(counts_by_type(gold, predicted).values())
        return {"f1": total.f1, "precision": total.precision, "recall": total.recall, "accuracy": accuracy}

    def score_titles(self) -> dict[str, str]:
        if self.scheme == "plain":
            return {"accuracy": "tag accuracy"}
        return {"f1": "entity F1", "precision": "precision", "recall": "recall", "accuracy": "tag accuracy"}

    def details(self, examples: Sequence[TaggedSentence], answers: Sequence[Tags]) -> Table:
        gold, predicted = [gold_tags(example) for example in examples], [answer.tags for answer in answers]
        words = sum(map(len, gold))
        if self.scheme != "plain":
            found: Mapping[str, EntityCounts] = counts_by_type(gold, predicted)
        else:
            found = counts_by_tag(gold, predicted)
        return {"words": words, "types": {name: counts_table(counts) for name, counts in found.items()}}

    def describe(self, details: Table) -> list[str]:
        what = "tag" if self.scheme == "plain" else "type"
        width = max([len(what), *map(len, details["types"])])
        lines = [f"{what:<{width}}  precision    recall        F1      gold  predicted"]
        for name, row in details["types"].items():
            figures = "  ".join(f"{100 * row[key]:6.1f} %" for key in ("precision", "recall", "f1"))
            lines.append(f"{name:<{width}}   {figures}  {row['gold']:8,}  {row['predicted']:9,}")
        return lines

    def baseline(self, train: Sequence[TaggedSentence], examples: Sequence[TaggedSentence]) -> tuple[str, list[Tags]]:
        """Each word its most frequent tag in train; unknown words the most frequent tag of all."""
        by_word: dict[str, Counter[str]] = {}
        overall: Counter[str] = Counter()
        for example in train:
            tags = convert(gold_tags(example), self.scheme)
            overall.update(tags)
            for word, tag in zip(example.words, tags, strict=True):
                by_word.setdefault(word, Counter())[tag] += 1
        usual = {word: min(tags, key=lambda tag, tags=tags: (-tags[tag], tag)) for word, tags in by_word.items()}  # type: ignore[misc]
        rest = min(overall, key=lambda tag: (-overall[tag], tag))
        found = [[usual.get(word, rest) for word in example.words] for example in examples]
        return "each word's most frequent tag", [Tags(tuple(convert(tags, self.written))) for tags in found]

    def collapsed(self, answers: Sequence[Tags]) -> bool:
        return len(answers) > 1 and len({tag for answer in answers for tag in answer.tags}) == 1

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[TaggedSentence]:
        return read_sentences(source, input_config(config))

    def empty_answer(self, example: TaggedSentence) -> Tags:
        return Tags(())

    def as_json(self, example: TaggedSentence, answer: Tags) -> dict[str, Any]:
        """With a text: its entities at exact character offsets; without: at words."""
        found: dict[str, Any] = {} if example.text is None else {"text": example.text}
        found |= {"words": list(example.words), "tags": list(answer.tags)}
        if self.scheme == "plain":
            return found
        found["entities"] = [entity(example, *span) for span in spans_of(answer.tags)]
        return found

    def writers(self) -> Mapping[str, type[Writer[TaggedSentence, Tags]]]:
        return {"conll": ColumnLines, "json": JsonLines, "view": ColouredView}

    def default_format(self, terminal: bool) -> str:
        return "view" if terminal and self.scheme != "plain" else "conll"

    def page(self, path: Path) -> EntityPage:
        if self.scheme == "plain":
            raise ConfigError("--html shows entities, and this model gives plain tags. Use --to conll or --to json.")
        return EntityPage(path)


def input_config(config: Section) -> TagInputConfig:
    if not isinstance(config, TagInputConfig):
        raise ConfigError(f"Sentences are read with a TagInputConfig; got {type(config).__name__}.")
    return config


def tag_head(head: Head) -> TagHead:
    if not isinstance(head, TagHead):
        raise ConfigError(f"Tagging needs its own head; got {type(head).__name__}.")
    return head


def gold_tags(example: TaggedSentence) -> tuple[str, ...]:
    if example.tags is None:
        raise DataError(f"{example.where}: this sentence has no tags, so that nothing can be learned or scored.")
    return example.tags


def words_in(passage: Passage) -> int:
    if not isinstance(passage.text, tuple):
        raise TypeError("the passages of a tagging task are words")
    return len(passage.text)


def sentences_of(example: TaggedSentence) -> Sequence[tuple[int, int]]:
    """(first word, end) of each sentence of an example."""
    return [(0, len(example.words))] if example.sentences is None else example.sentences


def gathered(passages: Sequence[Passage], scores: Sequence[Scores], C: int) -> Scores:
    """The emissions of an example's words, (W, C), from its windows. An example without passages has no words."""
    windows = [(passage.start, passage.start + words_in(passage)) for passage in passages]
    if len(windows) == 1:
        return scores[0]
    W = windows[-1][1] if windows else 0
    chosen = most_central(windows, W)
    found = np.empty((W, C), dtype=np.float32)
    for number, (start, end) in enumerate(windows):
        mine = chosen[start:end] == number
        found[start:end][mine] = scores[number][mine]
    return found


def entity(example: TaggedSentence, start: int, end: int, type: str) -> dict[str, Any]:
    """One entity: at characters of the text where there is one, else at words."""
    if example.text is None or example.offsets is None:
        return {"type": type, "text": " ".join(example.words[start:end]), "first_word": start, "end_word": end}
    first, last = example.offsets[start][0], example.offsets[end - 1][1]
    return {"type": type, "text": example.text[first:last], "start": first, "end": last}


def counts_table(counts: EntityCounts) -> dict[str, float]:
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "gold": counts.gold,
        "predicted": counts.predicted,
    }
