"""Sequence tagging: one tag per word, such as named entities (BIO and its relatives) or parts of speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.rows import padded
from headstart.config import Section, Table, nearest
from headstart.errors import ConfigError, DataError
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.heads.tag import LegalTags, TagHead, TagHeadConfig
from headstart.metrics import Metric
from headstart.tasks.base import Passage, Scores, Target, Task, Tokenized, Writer, of_class, score_lines
from headstart.tasks.best_tags import best_tags
from headstart.tasks.conll import TaggedSentence, read_tagged
from headstart.tasks.prediction_writers import JsonLines
from headstart.tasks.spans import (
    Scheme,
    convert,
    is_tag,
    legal_transitions,
    scheme_of,
    scheme_of_names,
    spans_of,
    tag_names,
)
from headstart.tasks.tag_inputs import TagInputConfig, read_sentences, sentence_of_text
from headstart.tasks.tag_scores import (
    ENTITY_F1,
    TAG_ACCURACY,
    AllTags,
    accuracy_counts,
    entity_counts,
    headline_scores,
    score_titles,
    scores_by_type,
)
from headstart.tasks.tag_writers import ColouredView, ColumnLines, EntityPage
from headstart.tasks.windows import gathered, word_windows, words_in
from headstart.text.formats import without_surrogates


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
        given = of_class(TagInputConfig, config)
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
            raw = gold_tags(example)
            pairs = enumerate(zip(raw, convert(raw, self.scheme), strict=True))
            # Conversion would take a tag of no scheme for O, and the metric would count its entities as missed.
            strange = (
                n for n, (tag, same) in pairs if same not in known or (self.scheme != "plain" and not is_tag(tag))
            )
            unknown = next(strange, None)
            if unknown is not None:
                tag = raw[unknown]
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
    def line(cls, example: TaggedSentence) -> Table:
        return {"words": list(example.words), "tags": cls.gold(example)}

    @classmethod
    def words(cls, example: TaggedSentence) -> Sequence[str]:
        return example.words

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        if how in ("finetune", "gradual"):
            # A plain linear layer, as other tools have it: a fine-tuned encoder has read the neighbours already.
            network = {"cell": "none", "dropout": 0.1, "decoder": "constrained"}
            return {"network": network, "fitting": {"epochs": 3.0, "min_steps": 150}}
        return {"network": {"width": 128}, "fitting": {"epochs": 8.0}}

    def passages(self, example: TaggedSentence, tokenized: Tokenized) -> list[Passage]:
        """Each sentence, or overlapping windows of one that is longer than the encoder reads; no word is left out."""
        found: list[Passage] = []
        for first, last in example.sentence_bounds:
            tokens = tokenized.tokens_per_word(example.words[first:last])
            for start, end in word_windows(tokens, tokenized.longest, tokenized.stride):
                found.append(Passage(example.words[first + start : first + end], first + start))
        return found

    def targets(self, example: TaggedSentence, passages: Sequence[Passage]) -> list[Target]:
        """A window may begin or end inside an entity: the part of it there is an entity of its own, in any scheme."""
        index = {tag: number for number, tag in enumerate(self.labels)}
        tags = convert(gold_tags(example), self.scheme)
        windows = [convert(tags[p.start : p.start + words_in(p)], self.scheme) for p in passages]
        return [np.array([index[tag] for tag in window], dtype=np.int64) for window in windows]

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        legal = LegalTags(*legal_transitions(self.labels, self.scheme))
        return TagHead(inputs, joined, legal, of_class(TagHeadConfig, config))

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        tags, _ = padded(targets)
        tags = F.pad(tags, (0, scores.shape[1] - tags.shape[1])).to(scores.device)
        return of_class(TagHead, head).loss(scores, mask, tags)

    def decode(
        self,
        head: Head,
        examples: Sequence[TaggedSentence],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Tags]:
        """The best legal sequence of tags for each sentence."""
        emissions = [gathered(own, found, len(self.labels)) for own, found in zip(passages, scores, strict=True)]
        pieces = [
            (number, first, rows[first:last])
            for number, (example, rows) in enumerate(zip(examples, emissions, strict=True))
            for first, last in example.sentence_bounds
            if first < last
        ]
        found: list[list[str]] = [[""] * len(rows) for rows in emissions]
        decoded = best_tags(of_class(TagHead, head).crf, [rows for *_, rows in pieces])
        for (number, first, rows), tags in zip(pieces, decoded, strict=True):
            names = [self.labels[tag] for tag in tags]
            written = names if self.written == self.scheme else convert(names, self.written)
            found[number][first : first + len(rows)] = written
        return [Tags(tuple(tags)) for tags in found]

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: TaggedSentence, answer: Tags) -> Sequence[float]:
        counted = accuracy_counts if self.scheme == "plain" else entity_counts
        return counted(gold_tags(example), answer.tags)

    def scores(self, examples: Sequence[TaggedSentence], answers: Sequence[Tags]) -> dict[str, float]:
        return headline_scores(*self._gold_and_predicted(examples, answers), self.scheme)

    def _gold_and_predicted(
        self, examples: Sequence[TaggedSentence], answers: Sequence[Tags]
    ) -> tuple[AllTags, AllTags]:
        """Both in the scheme that answers are written in, so that tags can be compared one by one."""
        gold = [convert(gold_tags(example), self.written) for example in examples]
        return gold, [convert(answer.tags, self.written) for answer in answers]

    def score_titles(self) -> dict[str, str]:
        return score_titles(self.scheme)

    def details(self, examples: Sequence[TaggedSentence], answers: Sequence[Tags]) -> Table:
        gold, predicted = self._gold_and_predicted(examples, answers)
        return {"words": sum(map(len, gold)), "types": scores_by_type(gold, predicted, self.scheme)}

    def describe(self, details: Table) -> list[str]:
        return score_lines("tag" if self.scheme == "plain" else "type", details["types"], ("gold", "predicted"))

    def baseline(self, train: Sequence[TaggedSentence], examples: Sequence[TaggedSentence]) -> tuple[str, list[Tags]]:
        """Each word its most frequent tag in train; unknown words the most frequent tag of all."""
        by_word: dict[str, Counter[str]] = {}
        overall: Counter[str] = Counter()
        for example in train:
            tags = convert(gold_tags(example), self.scheme)
            overall.update(tags)
            for word, tag in zip(example.words, tags, strict=True):
                by_word.setdefault(word, Counter())[tag] += 1
        usual, rest = {word: most_frequent(tags) for word, tags in by_word.items()}, most_frequent(overall)
        found = [[usual.get(word, rest) for word in example.words] for example in examples]
        return "each word's most frequent tag", [Tags(tuple(convert(tags, self.written))) for tags in found]

    def collapsed(self, answers: Sequence[Tags]) -> bool:
        return len(answers) > 1 and len({tag for answer in answers for tag in answer.tags}) == 1

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[TaggedSentence]:
        return read_sentences(source, of_class(TagInputConfig, config))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[TaggedSentence]:
        return [sentence_of_text(without_surrogates(texts["text"]))]

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


def gold_tags(example: TaggedSentence) -> tuple[str, ...]:
    if example.tags is None:
        raise DataError(f"{example.where}: this sentence has no tags, so that nothing can be learned or scored.")
    return example.tags


def most_frequent(tags: Counter[str]) -> str:
    return min(tags, key=lambda tag: (-tags[tag], tag))


def entity(example: TaggedSentence, start: int, end: int, type: str) -> dict[str, Any]:
    """One entity: at characters of the text where there is one, else at words."""
    if example.text is None or example.offsets is None:
        return {"type": type, "text": " ".join(example.words[start:end]), "first_word": start, "end_word": end}
    first, last = example.offsets[start][0], example.offsets[end - 1][1]
    return {"type": type, "text": example.text[first:last], "start": first, "end": last}
