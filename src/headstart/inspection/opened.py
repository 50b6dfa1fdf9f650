"""What `headstart.load` gives: a pretrained encoder with everything that can be asked of it as a method."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from headstart.config import pick, resolve
from headstart.inspection.attend import Attention, Numbers, attend
from headstart.inspection.encode import Encoded, encode_lines
from headstart.inspection.fill_words import Filled, fill_words
from headstart.inspection.neighbours import NearestOccurrences, WordNeighbours, neighbours
from headstart.inspection.next_words import Generated, NextWords, expect, generate
from headstart.inspection.occurrences import WORDS
from headstart.inspection.probe import PROBES
from headstart.inspection.probe_results import Probed
from headstart.inspection.score import score_all
from headstart.inspection.score_results import Scored
from headstart.inspection.scored_pairs import ScoredPair, read_scored_pairs
from headstart.inspection.sense_clusters import MOST, sense_clusters
from headstart.inspection.sense_results import SenseClusters
from headstart.inspection.similarity import Similarity, similarity
from headstart.pretrained import Layers, Pretrained
from headstart.progress import result_of
from headstart.tasks import task_class
from headstart.tasks.pair_reading import PairInputConfig
from headstart.text.lines import Lines
from headstart.training.ranks import Ranks
from headstart.weights import sources
from headstart.weights.sources import Source

ARGUMENTS = "the arguments"
Texts = str | Path | Sequence[str | Path]
"""One file, folder or pattern, or several."""


class Opened(Pretrained):
    """A `Pretrained` with the verbs of this room as methods. Each calls the function of its name, and says no more."""

    __slots__ = ()

    def encode(
        self,
        text: str | Path,
        out: str | Path,
        *,
        layers: Layers = "top",
        pool: str | None = None,
        field: str | None = None,
        ranks: Ranks | None = None,
    ) -> Encoded:
        """Write the vectors of every line of a file into the new file `out`. See `headstart.encode`."""
        return result_of(encode_lines(self, Lines(text, field), Path(out), layers=layers, pool=pool, ranks=ranks))

    def neighbours(
        self,
        query: str,
        most: int = 8,
        *,
        among: Texts = (),
        static: Pretrained | None = None,
        layer: Layers = "top",
        words: int = WORDS,
        index: str | Path | None = None,
        field: str | None = None,
    ) -> WordNeighbours | NearestOccurrences:
        """Word vectors: the nearest words of a word. ELMo, BERT: the nearest occurrences, in a text, of the word marked
        in "They staged a [play]". See `headstart.inspection.neighbours.neighbours`."""
        where: dict[str, Any] = {"layer": layer, "words": words, "index": index, "field": field}
        return result_of(neighbours(self, query, listed(among), static=static, most=most, **where))

    def senses(
        self,
        word: str,
        among: Texts,
        *,
        clusters: int | None = None,
        most: int = MOST,
        layer: Layers = "top",
        field: str | None = None,
        seed: int = 0,
    ) -> SenseClusters:
        """ELMo, BERT: the occurrences of a word in a text, clustered. See `sense_clusters`."""
        how: dict[str, Any] = {"clusters": clusters, "most": most, "layer": layer, "seed": seed}
        return result_of(sense_clusters(self, word, listed(among), field=field, **how))

    def attend(
        self, sentence: str | Sequence[str], layers: Numbers = None, heads: Numbers = None, *, at_words: bool = False
    ) -> Attention:
        """BERT: where the attention heads look in a sentence. See `headstart.inspection.attend.attend`."""
        return attend(self, sentence, layers, heads, at_words=at_words)

    def fill(self, text: str, most: int = 5, *, pieces: int = 1) -> Filled:
        """BERT: words for the [MASK]s of a text, each of at most so many pieces. See `fill_words`."""
        return fill_words(self, text, most, pieces=pieces)

    def next_words(self, text: str, most: int = 5, *, backward: bool = False) -> NextWords:
        """ELMo: the most probable words after a text, or before it."""
        return expect(self, text, most, backward=backward)

    def generate(
        self, text: str, words: int = 20, *, backward: bool = False, temperature: float | None = None, seed: int = 0
    ) -> Generated:
        """ELMo: go on with a text word by word. See `headstart.inspection.next_words.generate`."""
        return generate(self, text, words, backward=backward, temperature=temperature, seed=seed)

    def score(self, sentences: Sequence[str]) -> Scored:
        """The perplexity of sentences by direction (ELMo), or their pseudo-perplexity (BERT)."""
        return score_all(self, sentences)

    def similarity(
        self, data: str | Path | Sequence[ScoredPair], *, layers: Layers = "all", seed: int = 0, **reading: Any
    ) -> Similarity:
        """Spearman's rho of cosines with people's scores. data: a file, or pairs; reading: columns, as text_field."""
        if isinstance(data, str | Path):
            data = read_scored_pairs(Path(data), resolve(PairInputConfig, reading, ARGUMENTS))
        return result_of(similarity(self, data, layers=layers, seed=seed))

    def probe(
        self,
        data: str | Path,
        dev: str | Path,
        *,
        task: str = "tag",
        most: int | None = None,
        seed: int = 0,
        **reading: Any,
    ) -> Probed:
        """What each layer knows of the labels in two files. task: tag or classify; reading: columns, as text_field."""
        kind = task_class(task)
        run_probe = pick(PROBES, kind.name, "probe")
        config = resolve(kind.Input, reading, ARGUMENTS)
        sides = [kind.read(Path(path), config) for path in (data, dev)]
        return result_of(run_probe(self, *sides, **({} if most is None else {"most": most}), seed=seed))


def listed(texts: Texts) -> Sequence[str | Path]:
    return [texts] if isinstance(texts, str | Path) else texts


def load(source: Source, *, words: Collection[str] | None = None, precision: str = "float32") -> Opened:
    """A pretrained encoder with its tokenizer and heads.

    source: a run directory, a Hugging Face BERT folder, a tuple of ELMo's two files, a file of word vectors (GloVe,
    word2vec), a name of the catalogue or hf:org/name; the last two are downloaded once. words: of word vectors, keep
    only these. precision: float32, or int8, in which a BERT is faster and gives nearly the same vectors.
    """
    pretrained = sources.load(source, words=words, precision=precision)
    return Opened(**{field.name: getattr(pretrained, field.name) for field in fields(pretrained)})
