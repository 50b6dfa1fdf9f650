"""Coreference resolution: which mentions of a document refer to the same entity, found together with the mentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from headstart.config import Section, Table
from headstart.errors import DataError
from headstart.heads.coref import CorefHead, CorefHeadConfig, DocumentWords, coref_loss, kept_spans, mention_loss
from headstart.heads.coref_memory import words_within
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.metrics import Metric
from headstart.tasks.base import Page, Passage, Scores, Target, Task, Tokenized, Writer, of_class
from headstart.tasks.coref_baseline import usual_mentions
from headstart.tasks.coref_documents import Chain, Chains, CorefDocument, sorted_chains, without_repeats
from headstart.tasks.coref_inputs import CorefInputConfig, read_unresolved
from headstart.tasks.coref_parts import DocumentPart, JoinedParts, documents_in, parts_of
from headstart.tasks.coref_reading import read_documents
from headstart.tasks.coref_rules import CHAIN_RULES, GAP_RULES, Rules, gold_chains
from headstart.tasks.coref_shown import show_document
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.coref_writers import ChainColumns, ChainPage, ChainView, chains_as_json
from headstart.tasks.prediction_writers import JsonLines
from headstart.tasks.shown import Shown
from headstart.tasks.windows import gathered, word_windows
from headstart.text.formats import without_surrogates

MUCH_MEMORY = 500_000_000
"""Bytes for one document from which on the user is told without asking."""


@dataclass(frozen=True)
class Coref(Task[CorefDocument, Chains]):
    """genres: those of the training documents; singletons: whether a mention alone is a chain, as it is in them, unless
    `network.singletons` says otherwise; rules: how answers are scored."""

    genres: tuple[str, ...] = ()
    singletons: bool = False
    rules: Rules = CHAIN_RULES

    name: ClassVar[str] = "coref"
    title: ClassVar[str] = "coreference resolution"
    one: ClassVar[str] = "document"
    many: ClassVar[str] = "documents"
    Network: ClassVar[type[RecurrentConfig]] = CorefHeadConfig
    Input: ClassVar[type[Section]] = CorefInputConfig
    scores_words: ClassVar[bool] = True
    scores_documents: ClassVar[bool] = True
    rate_factor: ClassVar[float] = 2.0
    ignores_case: ClassVar[bool] = False
    saved_keys: ClassVar[Mapping[str, type]] = {"genres": list, "singletons": bool}

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, config: Section) -> list[CorefDocument]:
        """CoNLL-2012's columns, JSON lines, a folder of either, or GAP's table."""
        return read_documents(path).documents

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        return read_documents(path).notices(Path(path))

    @classmethod
    def learn(cls, train: Sequence[CorefDocument]) -> Self:
        chains = [chain for document in train for chain in gold_chains(document)]
        if not chains:
            raise DataError("The training documents have no chain, so there is nothing to learn.")
        genres = sorted({document.genre for document in train if document.genre is not None})
        return cls(tuple(genres), any(len(chain) == 1 for chain in chains))

    @classmethod
    def from_table(cls, table: Table) -> Self:
        return cls(tuple(table["genres"]), table["singletons"])

    def to_table(self) -> Table:
        return {"genres": list(self.genres), "singletons": self.singletons}

    @property
    def metric(self) -> Metric:
        return self.rules.metric

    def scoring(self, examples: Sequence[CorefDocument]) -> Self:
        return replace(self, rules=GAP_RULES) if any(e.pronoun is not None for e in examples) else self

    def check(self, examples: Sequence[CorefDocument], known_to: str) -> None:
        for example in examples:
            self.rules.check(example)

    @classmethod
    def key(cls, example: CorefDocument) -> str:
        return " ".join(example.words)

    @classmethod
    def gold(cls, example: CorefDocument) -> list[list[list[int]]] | None:
        return None if example.chains is None else [[list(mention) for mention in chain] for chain in example.chains]

    @classmethod
    def line(cls, example: CorefDocument) -> Table:
        shown = chains_as_json(example, gold_chains(example))
        return {key: value for key, value in shown.items() if key != "mentions"}  # the chains once more, for people

    @classmethod
    def words(cls, example: CorefDocument) -> Sequence[str]:
        return example.words

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        # A fine-tuned BERT has an LSTM above it too: CoNLL F1 of 41.7 instead of 36.6 with 40 documents.
        network, fitting = {"width": 128}, {"batch": 1, "learning_rate": 2e-3}
        if how in ("finetune", "gradual"):
            return {"longest": 384, "network": network, "fitting": {**fitting, "epochs": 5.0, "min_steps": 300}}
        return {"longest": 400, "network": network, "fitting": {**fitting, "epochs": 12.0, "min_steps": 600}}

    def passages(self, example: CorefDocument, tokenized: Tokenized) -> list[Passage]:
        """The document, or overlapping windows of it; no word is left out."""
        tokens = tokenized.tokens_per_word(example.words)
        windows = word_windows(tokens, tokenized.longest, tokenized.stride)
        return [Passage(example.words[start:end], start) for start, end in windows]

    def targets(self, example: CorefDocument, passages: Sequence[Passage]) -> list[Target]:
        chains = without_repeats(gold_chains(example))
        return [part.as_target() for part in parts_of(example, chains, passages, self._genre(example))]

    def _genre(self, example: CorefDocument) -> int:
        """0 for one that the training documents did not have."""
        return 1 + self.genres.index(example.genre) if example.genre in self.genres else 0

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        return CorefHead(inputs, joined, 1 + len(self.genres), of_class(CorefHeadConfig, config))

    def weight(self, target: Target) -> int:
        """The words that are read in this passage, and not in a neighbouring one."""
        return DocumentPart.of_target(target).words

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        """Of consecutive passages of each document."""
        coref = of_class(CorefHead, head)
        losses = []
        for rows, document in documents_in([DocumentPart.of_target(target) for target in targets]):
            kept = zip(scores[rows.start : rows.stop], document.kept, strict=True)
            states = torch.cat([row[first:end] for row, (first, end) in kept])
            losses.append(self._document_loss(coref, states, document))
        return torch.stack(losses).sum()

    def words_at_once(self, head: Head) -> int | None:
        coref = of_class(CorefHead, head)
        return None if coref.config.memory is None else words_within(coref.sizes, coref.config.memory)

    def memory_note(self, head: Head, examples: Sequence[CorefDocument]) -> str | None:
        """Of the longest document, if the user set a bound, or if it needs much."""
        coref = of_class(CorefHead, head)
        words = max((len(example.words) for example in examples), default=0)
        if not words:
            return None
        blocks, needed = coref.blocks(words), coref.sizes.needed(words, coref.config.memory)
        if coref.config.memory is None and needed < MUCH_MEMORY:
            return None
        spans = coref.sizes.spans(words)
        in_blocks = f"in blocks of {blocks.coarse:,}" if blocks.coarse < spans else "at once"
        return (
            f"The longest document has {words:,} words; its chains need about {needed / 1e9:.2f} GB of memory, beside "
            f"the encoder: {spans:,} possible mentions are compared with those before them, {in_blocks}."
        )

    def _document_loss(self, head: CorefHead, states: Tensor, document: JoinedParts) -> Tensor:
        words = DocumentWords(states, torch.from_numpy(document.sentences).to(states.device), document.genre)
        spans, mentions = head.mention_scores(words)
        chains = torch.from_numpy(document.chains_at(spans.cpu().numpy())).to(states.device)
        kept = self._kept(head, spans, mentions, len(states))
        links = head.links(words, spans[kept], mentions[kept])
        return coref_loss(links, chains[kept]) + mention_loss(mentions, chains > 0)

    def _kept(self, head: CorefHead, spans: Tensor, mentions: Tensor, words: int) -> Tensor:
        kept = kept_spans(spans.cpu().numpy(), mentions.detach().cpu().numpy(), head.sizes.spans(words))
        return torch.from_numpy(kept).to(spans.device)

    def decode(
        self,
        head: Head,
        examples: Sequence[CorefDocument],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Chains]:
        coref = of_class(CorefHead, head)
        device = next(head.parameters()).device
        answers = []
        for example, own, states in zip(examples, passages, scores, strict=True):
            found = gathered(own, states, coref.out_width)
            if not len(found):
                answers.append(Chains(()))
                continue
            numbers = np.repeat(np.arange(len(example.sentences)), [end - first for first, end in example.sentences])
            sentences = torch.from_numpy(numbers).to(device)
            words = DocumentWords(torch.from_numpy(found).to(device), sentences, self._genre(example))
            with torch.no_grad():
                answers.append(Chains(self._resolved(coref, words)))
        return answers

    def _resolved(self, head: CorefHead, words: DocumentWords) -> tuple[Chain, ...]:
        """Each kept span joins the chain of its best antecedent, where that scores above none at all."""
        spans, mentions = head.mention_scores(words)
        kept = self._kept(head, spans, mentions, len(words.states))
        links = head.links(words, spans[kept], mentions[kept])
        singletons = self.singletons if head.config.singletons is None else head.config.singletons
        best, places = links.scores.max(dim=1)
        antecedents = links.antecedents.gather(1, places[:, None])[:, 0].tolist()
        listed = [(int(first), int(end)) for first, end in links.spans.tolist()]
        chains: list[list[tuple[int, int]]] = []
        chain_of: dict[int, list[tuple[int, int]]] = {}
        for number, (score, mention) in enumerate(zip(best.tolist(), links.mentions.tolist(), strict=True)):
            if score > 0:
                chain = chain_of.get(antecedents[number])
                if chain is None:
                    chain = chain_of[antecedents[number]] = [listed[antecedents[number]]]
                    chains.append(chain)
                chain.append(listed[number])
                chain_of[number] = chain
            elif singletons and mention > 0:
                chain_of[number] = [listed[number]]
                chains.append(chain_of[number])
        return sorted_chains(chains)

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: CorefDocument, answer: Chains) -> Sequence[float]:
        return self.rules.counts(example, answer)

    def scores(self, examples: Sequence[CorefDocument], answers: Sequence[Chains]) -> dict[str, float]:
        return self.rules.scores(examples, answers)

    def score_titles(self) -> dict[str, str]:
        return self.rules.titles

    def details(self, examples: Sequence[CorefDocument], answers: Sequence[Chains]) -> Table:
        return self.rules.details(examples, answers)

    def describe(self, details: Table) -> list[str]:
        return self.rules.describe(details)

    def baseline(self, train: Sequence[CorefDocument], examples: Sequence[CorefDocument]) -> tuple[str, list[Chains]]:
        found = usual_mentions(train, examples, self.singletons)
        return "words that are often mentions, a chain for each word", [Chains(chains) for chains in found]

    def collapsed(self, answers: Sequence[Chains]) -> bool:
        return len(answers) > 1 and not any(answer.chains for answer in answers)

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[CorefDocument]:
        return read_unresolved(source, of_class(CorefInputConfig, config))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[CorefDocument]:
        return [document_of_text(without_surrogates(texts["text"]), "text")]

    def empty_answer(self, example: CorefDocument) -> Chains:
        return Chains(())

    def as_json(self, example: CorefDocument, answer: Chains) -> dict[str, Any]:
        return chains_as_json(example, answer.chains)

    def show(self, example: CorefDocument, answers: Sequence[Table]) -> Shown:
        return show_document(example, answers)

    def writers(self) -> Mapping[str, type[Writer[CorefDocument, Chains]]]:
        return {"conll": ChainColumns, "json": JsonLines, "view": ChainView}

    def default_format(self, terminal: bool) -> str:
        return "view" if terminal else "conll"

    def page(self, path: Path) -> Page[CorefDocument, Chains]:
        return ChainPage(path)
