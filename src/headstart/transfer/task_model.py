"""A model of a task: encoders, mixes and head with the tokenizers and the labels, and its answers to examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import (
    AnyText,
    Apart,
    Joined,
    Marked,
    TextRow,
    collate_texts,
    padded,
    text_row,
    texts_in,
)
from headstart.encoders.base import Encoder
from headstart.encoders.representations import Representations
from headstart.errors import CheckpointError, ConfigError
from headstart.model import Model, build_reader, check_fit, widths_for_head
from headstart.pretrained import Pretrained, word_bounds
from headstart.tasks.base import Passage, Task, Units
from headstart.text.tokenizer import Tokenizer
from headstart.text.words import split_words, word_spans
from headstart.transfer.answering import ModelInput, RowScores, answers_of
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import FeatureTable, computed, joined_tables

CHARACTERS_AT_ONCE = 100_000
"""Of distinct texts whose vectors are held in memory together: some 200 MB of a small BERT's."""
ExampleT = TypeVar("ExampleT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Answers(Generic[AnswerT]):
    """The answers to some examples. cut: of each, whether only a part of it was read."""

    answers: list[AnswerT]
    cut: list[bool]

    @property
    def truncated(self) -> int:
        return sum(self.cut)


@dataclass(frozen=True, slots=True)
class TaskModel(Generic[ExampleT, AnswerT]):
    """A task with its model and the tokenizer of each encoder. An example's answer depends on that example alone."""

    task: Task[ExampleT, AnswerT]
    tokenizers: tuple[Tokenizer, ...]
    model: Model
    config: TransferConfig
    trained: bool = False

    @property
    def encoder(self) -> Encoder:
        """Of a model that has only one."""
        return self.model.only_reader.encoder

    @property
    def tokenizer(self) -> Tokenizer:
        """Of a model that has only one."""
        return self.tokenizers[self.model.each_reader.index(self.model.only_reader)]

    @property
    def longest(self) -> int:
        """Tokens in one sequence without its special tokens: as many as are asked for, or as fit into every encoder."""
        rooms = (encoder.room for encoder in self.model.encoders)
        return min([self.config.longest, *(room for room in rooms if room is not None)])

    @property
    def stride(self) -> int:
        return self.longest // 4 if self.config.stride is None else self.config.stride

    @property
    def together(self) -> bool:
        return self.config.network.reads_together

    def units(self, text: str) -> Units:
        """Of one encoder, its words, or its pieces where the head scores them; of several, the words common to all."""
        if len(self.tokenizers) > 1:
            spans = word_spans(text)
            tokens = self.tokens_per_word([text[first:last] for first, last in spans])
            return Units(np.array(spans, dtype=np.int64).reshape(-1, 2), tokens, np.arange(len(spans)))
        return units_of(self.tokenizers[0], text, self.config.network.reads_every_piece)

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Of several encoders, in the one that needs the most for each word."""
        counts = [np.bincount(each.encode_words(words).words, minlength=len(words)) for each in self.tokenizers]
        most: NDArray[np.int64] = np.stack(counts).max(axis=0).astype(np.int64)
        return most

    def given_to_encoders(self, passage: Passage) -> tuple[list[AnyText], bool]:
        """The texts that every encoder reads of a passage, one or two apart, and whether part of one was left out.

        Several encoders meet at the words: a text is split into words for all of them, and cut before they read it,
        because each would cut it elsewhere. A single encoder splits and cuts the text itself.
        """
        texts = texts_in(passage.text)
        if len(self.tokenizers) == 1:
            return texts, passage.cut
        given = [self._as_words(text) for text in texts]
        return [words for words, _ in given], passage.cut or any(cut for _, cut in given)

    def _as_words(self, text: AnyText) -> tuple[AnyText, bool]:
        if isinstance(text, Joined | Marked):
            raise ConfigError("Encoders side by side read plain texts, and this task joins two or marks words in one.")
        words = split_words(text) if isinstance(text, str) else text
        kept = kept_words(self.tokens_per_word(words), self.longest)
        return tuple([words[i] for i in kept]), len(kept) < len(words)

    def answers(self, examples: Sequence[ExampleT]) -> Answers[AnswerT]:
        if not self.trained:
            raise CheckpointError("This model was never trained, so it has no answers. Fit it first.")
        filled = [example for example in examples if not self.task.is_empty(example)]
        answered = self._answers(filled)
        found = iter(zip(answered.answers, answered.cut, strict=True))
        every = [(self.task.empty_answer(e), False) if self.task.is_empty(e) else next(found) for e in examples]
        return Answers([answer for answer, _ in every], [cut for _, cut in every])

    def _answers(self, examples: list[ExampleT]) -> Answers[AnswerT]:
        answered: Answers[AnswerT] = Answers([], [])
        for chunk in self._chunks(examples):
            answers, cut = self._final_answers(chunk)
            answered.answers.extend(answers)
            answered.cut.extend(cut)
        return answered

    def _final_answers(
        self, examples: Sequence[ExampleT], known: Sequence[FeatureTable] | None = None
    ) -> tuple[list[AnswerT], list[bool]]:
        """The answers to some examples, follow-up questions included, and which examples were truncated.

        known: features of some of their texts, which are then not encoded again.
        """
        features = self._shared_features(examples, known)
        data, cut = self.prepare(examples, features=features)
        answers: list[AnswerT] = answers_of(self.model, self.task, data)
        asked = [self.task.follow_up(example, answer) for example, answer in zip(examples, answers, strict=True)]
        open_ = [number for number, question in enumerate(asked) if question is not None]
        if open_:
            again = self._final_answers([question for question in asked if question is not None], features)
            for number, answer, also_cut in zip(open_, *again, strict=True):
                answers[number], cut[number] = answer, cut[number] or also_cut
        return answers, cut

    def _chunks(self, examples: list[ExampleT]) -> Iterator[list[ExampleT]]:
        """All of them at once; of texts that are encoded once, and of documents whose words' states the task keeps, as
        many as fit into memory with all their vectors."""
        keeps_vectors = self.task.scores_documents or (
            examples and any(is_shared(passage) for passage in self.task.passages(examples[0], self))
        )
        if not keeps_vectors:
            yield examples
            return
        chunk: list[ExampleT] = []
        seen: dict[AnyText, int] = {}
        for example in examples:
            own = [text for passage in self.task.passages(example, self) for text in texts_in(passage.text)]
            new = {text: len_of(text) for text in own if text not in seen}
            if chunk and sum(seen.values()) + sum(new.values()) > CHARACTERS_AT_ONCE:
                yield chunk
                chunk, seen, new = [], {}, {text: len_of(text) for text in own}
            chunk.append(example)
            seen |= new
        if chunk:
            yield chunk

    def prepare(
        self,
        examples: Sequence[ExampleT],
        *,
        labelled: bool = False,
        features: Sequence[FeatureTable] | None = None,
    ) -> tuple[ModelInput, list[bool]]:
        """Examples as the model reads them, and which of them are truncated.

        features: each encoder's features of all their passages, computed before; no encoder is then run.
        """
        passages = [self.task.passages(example, self) for example in examples]
        ends = np.cumsum([0, *map(len, passages)]).tolist()
        rows = [range(first, last) for first, last in pairwise(ends)]
        targets = None
        if labelled:
            pairs = zip(examples, passages, strict=True)
            targets = [target for example, own in pairs for target in self.task.targets(example, own)]
        flat = [passage for own in passages for passage in own]
        if features is None:
            self._clear_caches()
            scores, lengths, cut = self._from_texts(flat)
        else:
            scores, lengths, cut = self._from_features(flat, features)
        truncated = [any(cut[row] for row in own) for own in rows]
        return ModelInput(scores, lengths, list(examples), passages, rows, targets), truncated

    def _from_texts(self, passages: Sequence[Passage]) -> tuple[RowScores, list[int], list[bool]]:
        known: dict[AnyText, list[TextRow]] = {}
        rows = [self.rows(passage, known) for passage in passages]
        device = next(self.model.parameters()).device

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            of_encoders = zip(*(rows[i] for i in numbers), strict=True)
            batches = [collate_texts(of_encoder).to(device) for of_encoder in of_encoders]
            found: torch.Tensor = self.model(batches)
            return found, batches[0].word_starts >= 0

        lengths = [max(sum(len(row.ids) for row in texts) for texts in own) for own in rows]
        return scores, lengths, [any(row.cut for row in own[0]) for own in rows]

    def rows(self, passage: Passage, known: dict[AnyText, list[TextRow]] | None = None) -> list[list[TextRow]]:
        """The passage as each encoder reads it, one row or, of texts apart, two; all encoders have the same words.

        known: of each text that is shared by passages, its row for each encoder; a batch has such a row once.
        """
        texts, cut = self.given_to_encoders(passage)
        pairs = list(zip(self.model.encoders, self.tokenizers, strict=True))
        known = known if known is not None and is_shared(passage) else {}
        for text in texts:
            if text not in known:
                known[text] = [self._row(encoder, tokenizer, text) for encoder, tokenizer in pairs]
        found = [[known[text][number] for text in texts] for number in range(len(pairs))]
        marks = passage.text.marks if isinstance(passage.text, Marked) else None
        return [
            [replace(row, cut=row.cut or cut, parts=row.parts if marks is None else marks) for row in rows]
            for rows in found
        ]

    def _row(self, encoder: Encoder, tokenizer: Tokenizer, text: AnyText) -> TextRow:
        network = self.config.network
        marked, pieces = network.reads_first_position, network.reads_every_piece
        return text_row(encoder, tokenizer, text, self.longest, with_first=marked, every_piece=pieces)

    def _shared_features(
        self, examples: Sequence[ExampleT], known: Sequence[FeatureTable] | None
    ) -> list[FeatureTable] | None:
        """Each encoder's features of the distinct texts of some examples, in memory, so that an encoder runs once for
        each text; None where passages do not share texts, or these are too long. known: features computed before."""
        passages = [passage for example in examples for passage in self.task.passages(example, self)]
        if not any(map(is_shared, passages)):
            return None
        texts = dict.fromkeys(text for passage in passages for text in self.given_to_encoders(passage)[0])
        new = [text for text in texts if known is None or text not in known[0].rows]
        if all(isinstance(passage.text, Marked) for passage in passages) and sum(map(len_of, new)) > CHARACTERS_AT_ONCE:
            # The windows around the predicates of very long sentences: too many to be kept, and all different.
            return None
        if known is None:
            self._clear_caches()
        tables = []
        for number, (encoder, tokenizer) in enumerate(zip(self.model.encoders, self.tokenizers, strict=True)):
            before = [] if known is None else [known[number]]
            rows = {text: self._row(encoder, tokenizer, text) for text in new}
            tables.append(joined_tables([*before, *([computed(Pretrained(encoder, tokenizer), rows)] if rows else [])]))
        return tables

    def _clear_caches(self) -> None:
        """The same examples get the same bits, whatever was read before."""
        for encoder in self.model.encoders:
            encoder.clear_cache()

    def _from_features(
        self, passages: Sequence[Passage], features: Sequence[FeatureTable]
    ) -> tuple[RowScores, list[int], list[bool]]:
        given = [self.given_to_encoders(passage) for passage in passages]
        first = features[0]
        rows = [[first.rows[text] for text in texts] for texts, _ in given]  # the same in every table
        apart = any(len(texts) > 1 for texts, _ in given)
        model, device = self.model, next(self.model.parameters()).device
        means = None
        if model.reads_mean_of_words() and not apart:
            means = [table.means([own[0] for own in rows]).to(device) for table in features]

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            if means is not None:
                found = [Representations(mean.layers[:, numbers], mean.mask[numbers]) for mean in means]
                return model.read(found), found[0].mask
            chosen = [rows[i] for i in numbers]
            found = [table.batch(chosen).to(device) for table in features]
            return model.read(found, parts_of(numbers)), found[0].mask

        def parts_of(numbers: Sequence[int]) -> torch.Tensor | None:
            if apart:
                return first.parts([rows[i] for i in numbers]).to(device)
            marks = [text.marks for i in numbers if isinstance(text := passages[i].text, Marked)]
            return padded(marks)[0].to(device) if marks else None

        cut = [cut or any(bool(first.cut[row]) for row in own) for own, (_, cut) in zip(rows, given, strict=True)]
        return scores, [sum(map(first.length, own)) for own in rows], cut

    def frozen(self) -> TaskModel[ExampleT, AnswerT]:
        """Ready for inference: nothing is trained any more, and dropout is off."""
        self.model.requires_grad_(False)
        self.model.eval()
        return replace(self, trained=True)


def build_model(encoders: Sequence[Encoder], task: Task[Any, Any], config: TransferConfig) -> Model:
    """Encoders, mixes and head, the last two with their random start."""
    if len(encoders) > 1 and config.network.reads_first_position:
        raise ConfigError("network.pool 'first' is for one encoder; encoders side by side have only words in common.")
    if config.network.reads_together and not (len(encoders) == 1 and encoders[0].joins):
        raise ConfigError(
            "network.reads 'together' and network.mark 'segment' are for one BERT; other encoders "
            "read two texts 'apart', and marks as an 'embedding'."
        )
    readers = [build_reader(encoder, config.mix) for encoder in encoders]
    head = task.head(*widths_for_head(readers), config.network)
    check_fit(config.mix, head)
    return Model(readers, head)


@lru_cache(maxsize=256)  # a context is asked about several times in a row
def units_of(tokenizer: Tokenizer, text: str, pieces: bool) -> Units:
    found = tokenizer.encode(text)
    words = found.words.astype(np.int64)
    if pieces:
        return Units(found.spans.astype(np.int64), np.ones(len(words), dtype=np.int64), words)
    spans = np.array(list(word_bounds(found)), dtype=np.int64).reshape(-1, 2)
    return Units(spans, np.bincount(words, minlength=len(spans)), np.arange(len(spans)))


def is_shared(passage: Passage) -> bool:
    """Whether other passages are likely to hold the same text: a premise, a context, a sentence with other marks."""
    return isinstance(passage.text, Apart) or (isinstance(passage.text, Marked) and not passage.text.seen)


def len_of(text: AnyText) -> int:
    """Characters."""
    if isinstance(text, Joined):
        return len_of(text.first) + len_of(text.second)
    if isinstance(text, Marked):
        return len_of(text.words)
    return len(text) if isinstance(text, str) else sum(map(len, text))


def kept_words(tokens: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Which words are kept so that they have `longest` tokens at most: all, or as many from both ends, at least one.

    tokens: (W,), of each word.
    """
    if int(tokens.sum()) <= longest:
        return np.arange(len(tokens))
    first = max(1, int(np.searchsorted(np.cumsum(tokens), longest - longest // 2, side="right")))
    last = int(np.searchsorted(np.cumsum(tokens[first:][::-1]), longest // 2, side="right"))
    return np.concatenate([np.arange(first), np.arange(len(tokens) - last, len(tokens))])
