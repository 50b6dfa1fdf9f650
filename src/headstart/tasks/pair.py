"""Sentence pairs: one label per pair of texts, as in natural language inference or paraphrase detection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from headstart.batches.rows import Apart, Joined
from headstart.config import Section, Table
from headstart.heads.pair import PairHeadConfig, pair_head
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.tasks.base import Passage, Tokenized, cut_sentence, of_class
from headstart.tasks.labels import OneLabel
from headstart.tasks.pair_reading import (
    DISAGREED,
    PairExample,
    PairInputConfig,
    count_without_label,
    read_pair_inputs,
    read_pairs,
)
from headstart.tasks.reading import separator_notice
from headstart.text.formats import clean


@dataclass(frozen=True)
class Pair(OneLabel[PairExample]):
    """labels: the classes in order."""

    name: ClassVar[str] = "pair"
    title: ClassVar[str] = "sentence pairs"
    one: ClassVar[str] = "pair"
    many: ClassVar[str] = "pairs"
    asks: ClassVar[tuple[str, ...]] = ("first", "second")
    Network: ClassVar[type[RecurrentConfig]] = PairHeadConfig
    Input: ClassVar[type[Section]] = PairInputConfig

    @classmethod
    def read(cls, path: Path, config: Section) -> list[PairExample]:
        """A csv, tsv, jsonl or parquet file with two columns of text, or a tab-separated .txt such as SICK's."""
        return read_pairs(Path(path).expanduser(), of_class(PairInputConfig, config)).examples

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        path, given = Path(path).expanduser(), of_class(PairInputConfig, config)
        found = separator_notice(path, given)
        told = [] if found is None else [found]
        # The labels are read once more, which is cheap: only files with SNLI's keys are read to their end.
        if left_out := count_without_label(path, given):
            pairs, are = ("pair", "is") if left_out == 1 else ("pairs", "are")
            told.append(f"{path}: {left_out:,} {pairs} without a label ('{DISAGREED}') {are} left out.")
        return told

    @classmethod
    def key(cls, example: PairExample) -> str:
        return f"{example.first}\t{example.second}"

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        if how in ("finetune", "gradual") and joins:
            # A thousand pairs of SNLI needed 250 steps: after 100 accuracy was eleven points lower.
            fitting = {"epochs": 2.0, "min_steps": 250}
            return {"network": {"reads": "together", "cell": "none", "dropout": 0.1}, "fitting": fitting}
        return {}

    def passages(self, example: PairExample, tokenized: Tokenized) -> list[Passage]:
        """One: both texts in one sequence where the encoder reads them so, else each in its own."""
        texts = (example.first, example.second)
        return [Passage(Joined(*texts) if tokenized.together else Apart(*texts))]

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        return pair_head(inputs, joined, len(self.labels), of_class(PairHeadConfig, config))

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[PairExample]:
        return read_pair_inputs(source, of_class(PairInputConfig, config))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[PairExample]:
        return [PairExample(clean(texts["first"]), clean(texts["second"]))]

    @classmethod
    def cut_note(cls, count: int, together: bool = False) -> str:
        lost = "the end of the longer text" if together else "the middle of each long text"
        return cut_sentence(count, cls.one, cls.many, f"{lost} was left out")
