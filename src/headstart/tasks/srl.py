"""Semantic role labelling: who did what to whom, for every predicate of a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.rows import Marked, padded
from headstart.config import Section, Table, nearest
from headstart.errors import DataError
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.heads.role import RoleHead, RoleHeadConfig
from headstart.heads.tag import LegalTags
from headstart.metrics import Metric
from headstart.tasks.base import (
    Page,
    Passage,
    Scores,
    Target,
    Task,
    Tokenized,
    Writer,
    cut_sentence,
    of_class,
    score_lines,
)
from headstart.tasks.best_tags import best_tags
from headstart.tasks.prediction_writers import JsonLines
from headstart.tasks.role_baseline import usual_argument
from headstart.tasks.role_inputs import RoleInputConfig, read_role_inputs, sentences_of_text
from headstart.tasks.role_json import roles_as_json
from headstart.tasks.role_passages import is_marked, marked, window_around, within
from headstart.tasks.role_reading import read_roles
from headstart.tasks.role_scores import ROLE_F1, headline_scores, role_counts, score_titles, scores_by_role
from headstart.tasks.role_shown import show_roles
from headstart.tasks.role_writers import RoleColumns, RolesPage, RoleView
from headstart.tasks.roles import (
    Predicate,
    Roles,
    RoleSentence,
    arguments_of,
    is_verb,
    known_predicates,
    tags_of_arguments,
)
from headstart.tasks.shown import Shown
from headstart.tasks.spans import OUTSIDE, Span, legal_transitions, tag_names
from headstart.tasks.windows import gathered, word_windows
from headstart.text.formats import without_surrogates


@dataclass(frozen=True)
class Srl(Task[RoleSentence, Roles]):
    """labels: BIO tags of the roles. A sentence is read once for each predicate, which is marked, and once unmarked to
    find the predicates."""

    labels: tuple[str, ...]

    name: ClassVar[str] = "srl"
    title: ClassVar[str] = "semantic role labelling"
    one: ClassVar[str] = "sentence"
    many: ClassVar[str] = "sentences"
    Network: ClassVar[type[RecurrentConfig]] = RoleHeadConfig
    Input: ClassVar[type[Section]] = RoleInputConfig
    scores_words: ClassVar[bool] = True
    rate_factor: ClassVar[float] = 3.0
    ignores_case: ClassVar[bool] = False

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, config: Section) -> list[RoleSentence]:
        """CoNLL-2012's columns, those of PropBank's releases, or JSON lines."""
        return read_roles(path, of_class(RoleInputConfig, config).text_field).sentences

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        return read_roles(path, of_class(RoleInputConfig, config).text_field).notices()

    @classmethod
    def learn(cls, train: Sequence[RoleSentence]) -> Self:
        predicates = [(p, len(sentence.words)) for sentence in train for p in known_predicates(sentence)]
        tags = [tags_of_arguments(predicate.arguments or (), length) for predicate, length in predicates]
        if all(is_verb(argument) for predicate, _ in predicates for argument in predicate.arguments or ()):
            raise DataError("The training sentences have no predicate with arguments, so there is nothing to learn.")
        return cls(tuple(tag_names(tags, "bio")))

    @classmethod
    def from_table(cls, table: Table) -> Self:
        return cls(tuple(table["labels"]))

    def to_table(self) -> Table:
        return {"labels": list(self.labels)}

    @property
    def class_names(self) -> list[str]:
        """The roles: their tags are twice as many, and say no more."""
        return sorted(self.roles())

    @property
    def metric(self) -> Metric:
        return ROLE_F1

    def check(self, examples: Sequence[RoleSentence], known_to: str) -> None:
        """A rare role that training never showed is only missed; where most are, the files use different names."""
        unknown = self._unknown_roles(examples)
        # Every file has V, whatever it calls the others.
        if 2 * unknown.total() > sum(not is_verb(argument) for argument in gold_arguments(examples)):
            role = max(unknown, key=unknown.__getitem__)
            raise DataError(
                f"{examples[0].where.rpartition(':')[0]}: most of its arguments have roles that {known_to} never "
                f"showed, such as '{role}'.{nearest(role, self.roles())} Use files with the same names of roles."
            )

    def between(self, train: Sequence[RoleSentence], dev: Sequence[RoleSentence]) -> list[str]:
        unknown = self._unknown_roles(dev)
        if not unknown:
            return []
        said = "1 dev argument has a role" if unknown.total() == 1 else f"{unknown.total():,} dev arguments have roles"
        return [f"{said} that training never showed ({', '.join(sorted(unknown)[:3])}), and can only be missed."]

    def _unknown_roles(self, examples: Sequence[RoleSentence]) -> Counter[str]:
        known = self.roles()
        return Counter(argument.type for argument in gold_arguments(examples) if argument.type not in known)

    def roles(self) -> set[str]:
        return {label.partition("-")[2] for label in self.labels if label != OUTSIDE}

    @classmethod
    def key(cls, example: RoleSentence) -> str:
        return " ".join(example.words)

    @classmethod
    def gold(cls, example: RoleSentence) -> list[list[Any]] | None:
        if example.predicates is None:
            return None
        return [[p.word, [list(a) for a in p.arguments or ()]] for p in example.predicates]

    @classmethod
    def line(cls, example: RoleSentence) -> Table:
        return roles_as_json(example, Roles(known_predicates(example)))

    @classmethod
    def words(cls, example: RoleSentence) -> Sequence[str]:
        return example.words

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        # Small batches: a sentence has a row for every predicate, and the number of steps is what counts (1,000
        # sentences and GloVe: 12 F1 after 8 epochs in batches of 32, 37 in batches of 8).
        if how in ("finetune", "gradual") and joins:
            # The encoder reads a sentence once for all its predicates. With network.mark = "segment" it reads it once
            # for each: 47 F1 in 200 s with 1,000 sentences, where this has 60 in 146 s.
            network = {"cell": "none", "dropout": 0.1}
            return {"network": network, "fitting": {"batch": 8, "epochs": 4.0, "min_steps": 600}}
        return {"network": {"width": 128}, "fitting": {"batch": 8, "epochs": 10.0, "min_steps": 600}}

    def passages(self, example: RoleSentence, tokenized: Tokenized) -> list[Passage]:
        """The sentence, or its overlapping windows, without a mark; then once for each predicate.

        Where predicates are given without arguments, only those are asked for, and none are looked for. Of a sentence
        that is longer than the encoder reads, a predicate has the words around it.
        """
        words, seen = example.words, tokenized.together
        tokens = tokenized.tokens_per_word(words)
        given = example.predicates or ()
        found = []
        if all(predicate.arguments is not None for predicate in given):
            windows = word_windows(tokens, tokenized.longest, tokenized.stride)
            found = [Passage(Marked(words[start:end], 0, 0, seen), start) for start, end in windows]
        for predicate in given:
            start, end = window_around(predicate.word, tokens, tokenized.longest)
            place = predicate.word - start
            cut = end - start < len(words)
            found.append(Passage(Marked(words[start:end], place, place + 1, seen), start, cut=cut))
        return found

    def targets(self, example: RoleSentence, passages: Sequence[Passage]) -> list[Target]:
        """Columns of the head's scores: tags where a predicate is marked, else C or C + 1, no predicate or one."""
        index = {tag: number for number, tag in enumerate(self.labels)}
        predicates = known_predicates(example)
        is_predicate = np.zeros(len(example.words), dtype=np.int64)
        is_predicate[[predicate.word for predicate in predicates]] = 1
        asked = iter(predicates)
        found = []
        for passage in passages:
            start, end = passage.start, passage.start + len(marked(passage).words)
            if not is_marked(passage):
                found.append(len(self.labels) + is_predicate[start:end])
                continue
            arguments = within(next(asked).arguments or (), start, end)
            tags = tags_of_arguments(arguments, end - start)
            # A role that training never showed cannot be learned: it is no argument.
            found.append(np.array([index.get(tag, index[OUTSIDE]) for tag in tags], dtype=np.int64))
        return found

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        legal = LegalTags(*legal_transitions(self.labels, "bio"))
        return RoleHead(inputs, joined, legal, of_class(RoleHeadConfig, config))

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        gold, _ = padded(targets)
        gold = F.pad(gold, (0, scores.shape[1] - gold.shape[1])).to(scores.device)
        return of_class(RoleHead, head).loss(scores, mask, gold)

    def decode(
        self,
        head: Head,
        examples: Sequence[RoleSentence],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Roles]:
        """The best legal arguments of the predicates given; where none are, the predicates that are found."""
        C = len(self.labels)
        asked = [
            (number, place, rows[:, :C])
            for number, (own, found) in enumerate(zip(passages, scores, strict=True))
            for place, (passage, rows) in enumerate(zip(own, found, strict=True))
            if is_marked(passage)
        ]
        decoded = best_tags(of_class(RoleHead, head).crf, [rows for *_, rows in asked])
        arguments: dict[tuple[int, int], tuple[Span, ...]] = {}
        for (number, place, _), tags in zip(asked, decoded, strict=True):
            start = passages[number][place].start
            spans = arguments_of([self.labels[tag] for tag in tags])
            arguments[number, place] = tuple([Span(s + start, e + start, role) for s, e, role in spans])
        answers = []
        for number, example in enumerate(examples):
            own = [arguments[number, place] for place, one in enumerate(passages[number]) if is_marked(one)]
            given = example.predicates
            if given is None:
                given = self._found(passages[number], scores[number])
                own = [()] * len(given)
            answers.append(Roles(tuple([replace(p, arguments=a) for p, a in zip(given, own, strict=True)])))
        return answers

    def _found(self, passages: Sequence[Passage], scores: Sequence[Scores]) -> tuple[Predicate, ...]:
        C = len(self.labels)
        rows = gathered(passages, [found[:, C:] for found in scores], 2)
        return tuple([Predicate(int(word)) for word in np.flatnonzero(rows[:, 1] > rows[:, 0])])

    def follow_up(self, example: RoleSentence, answer: Roles) -> RoleSentence | None:
        """The sentence with the predicates that were found in it, whose arguments are then asked for."""
        if example.predicates is not None or not answer.predicates:
            return None
        return replace(example, predicates=tuple([replace(found, arguments=None) for found in answer.predicates]))

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: RoleSentence, answer: Roles) -> Sequence[float]:
        return role_counts(known_predicates(example), answer.predicates)

    def scores(self, examples: Sequence[RoleSentence], answers: Sequence[Roles]) -> dict[str, float]:
        found = headline_scores(*gold_and_predicted(examples, answers))
        del found["predicate_f1"]  # the predicates were given
        return found

    def score_titles(self) -> dict[str, str]:
        titles = score_titles()
        del titles["predicate_f1"]
        return titles

    def unaided(self, example: RoleSentence) -> RoleSentence | None:
        """Without its predicates, which the model then finds."""
        return replace(example, predicates=None)

    def unaided_scores(self, examples: Sequence[RoleSentence], answers: Sequence[Roles]) -> dict[str, float]:
        found = headline_scores(*gold_and_predicted(examples, answers))
        return {f"found_{name}": score for name, score in found.items()}

    def details(self, examples: Sequence[RoleSentence], answers: Sequence[Roles]) -> Table:
        gold, predicted = gold_and_predicted(examples, answers)
        return {"predicates": sum(map(len, gold)), "roles": scores_by_role(gold, predicted)}

    def describe(self, details: Table) -> list[str]:
        lines = []
        if "found_f1" in details:
            shares = ((title, 100 * details[f"found_{name}"]) for name, title in score_titles().items())
            scores = ", ".join(f"{title} {share:.1f} %" for title, share in shares)
            lines.append(f"Without the gold predicates, which the model then finds itself: {scores}")
        return [*lines, *score_lines("role", details["roles"], ("gold", "predicted"))]

    def baseline(self, train: Sequence[RoleSentence], examples: Sequence[RoleSentence]) -> tuple[str, list[Roles]]:
        """Of every predicate the span that is most often an argument, counted from the predicate, with its role."""
        usual = usual_argument(train)

        def guess(predicate: Predicate, example: RoleSentence) -> Predicate:
            return replace(predicate, arguments=() if usual is None else usual.of(predicate.word, len(example.words)))

        answers = [Roles(tuple([guess(one, example) for one in known_predicates(example)])) for example in examples]
        return "no arguments" if usual is None else usual.title(), answers

    def collapsed(self, answers: Sequence[Roles]) -> bool:
        """Whether no predicate got an argument besides itself."""
        predicates = [predicate for answer in answers for predicate in answer.predicates]
        return len(predicates) > 1 and all(is_verb(a) for p in predicates for a in p.arguments or ())

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[RoleSentence]:
        return read_role_inputs(source, of_class(RoleInputConfig, config))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[RoleSentence]:
        return sentences_of_text(without_surrogates(texts["text"]))

    def empty_answer(self, example: RoleSentence) -> Roles:
        return Roles(())

    def as_json(self, example: RoleSentence, answer: Roles) -> dict[str, Any]:
        return roles_as_json(example, answer)

    def show(self, example: RoleSentence, answers: Sequence[Table]) -> Shown:
        return show_roles(example, answers)

    def writers(self) -> Mapping[str, type[Writer[RoleSentence, Roles]]]:
        return {"conll": RoleColumns, "json": JsonLines, "view": RoleView}

    def default_format(self, terminal: bool) -> str:
        return "view" if terminal else "conll"

    @classmethod
    def cut_note(cls, count: int, together: bool = False) -> str:
        return cut_sentence(count, cls.one, cls.many, "arguments far from their predicate were not looked for")

    def page(self, path: Path) -> Page[RoleSentence, Roles]:
        return RolesPage(path)


def gold_arguments(examples: Sequence[RoleSentence]) -> Iterator[Span]:
    return (argument for e in examples for p in known_predicates(e) for argument in p.arguments or ())


def gold_and_predicted(
    examples: Sequence[RoleSentence], answers: Sequence[Roles]
) -> tuple[list[tuple[Predicate, ...]], list[tuple[Predicate, ...]]]:
    return [known_predicates(example) for example in examples], [answer.predicates for answer in answers]
