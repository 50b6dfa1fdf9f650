"""What one process does for one point: build what the work needs, and give a function that does it once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.measure import OneBatch
from headstart.batches.rows import TextRow
from headstart.cli.allocator import tune_allocator
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.pretrained import Pretrained
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.elmo.batches import LanguageModelBatch
from headstart.pretraining.elmo.objective import ElmoLanguageModel
from headstart.pretraining.neural import NeuralLearner
from headstart.pretraining.static.word2vec import Word2VecConfig, Word2VecLearner
from headstart.progress import result_of
from headstart.text.characters import character_table
from headstart.text.documents import TextConfig
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import Tokenizer, WordTokenizer, load_tokenizer
from headstart.text.vocabulary import SENTENCE_END, SENTENCE_START
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer, build_wordpiece
from headstart.training.optim import OptimizerConfig

PIECES, WORDS = 30_522, 10_000
MASK_RATE = 0.15
RATE = 0.1
TOKENS_AT_LEAST, MOST_STEPS = 4_096, 16
"""One measurement of a small batch is of several steps."""
CORES = 2

Step = Callable[[], int]
"""Do it once; the tokens that were gone through."""


@dataclass(frozen=True, slots=True)
class Work:
    build: Callable[..., Step]
    repeats: int = 3
    """Measured so often, after once to warm up; 0: measured the first time, because it is long or leaves files."""
    reads_corpus: bool = False
    """It starts processes, whose memory counts, or maps files, which the system takes from it when it needs room."""


def steps_of(tokens: int) -> int:
    return max(1, min(MOST_STEPS, TOKENS_AT_LEAST // tokens))


def encode(kind: str, B: int, T: int, words: str) -> Step:
    """B sequences at a time through the encoder, on all cores."""
    encoder, row_of = (mini_bert(), bert_row) if kind == "bert" else (mini_elmo(), elmo_row)
    pretrained = Pretrained(encoder, build_wordpiece(list(SPECIALS), lowercase=True))
    rows = list(itertools.islice(map(row_of, sequences(T - 2, Path(words))), B))

    def step() -> int:
        for _ in range(steps_of(B * T)):
            for _ in pretrained.encode_rows(rows):
                pass
        return steps_of(B * T) * B * T

    return step


def train(kind: str, B: int, T: int, words: str, V: int | None = None) -> Step:
    """Whole training steps on one batch: BERT's two objectives, or ELMo's softmax, sampled if V is large."""
    tune_allocator()  # as `headstart pretrain` does
    model: torch.nn.Module
    if kind == "bert":
        batch: Any = masked_batch(B, T)
        model = MaskedLanguageModel(mini_bert())
    else:
        batch = next_word_batch(B, T, V or WORDS, Path(words))
        model = ElmoLanguageModel(mini_elmo(), V or WORDS)
    learner = NeuralLearner(model, OneBatch(batch), None, OptimizerConfig(), accumulate=1, seed=0)

    def step() -> int:
        for number in range(steps_of(B * T)):
            learner.step(number, RATE)
        return steps_of(B * T) * B * T

    return step


def tokenise(text: str, tokenizer: str, cache: str) -> Step:
    return lambda: corpora(Path(text), load_tokenizer(Path(tokenizer)), Path(cache)).train.n_units


def static(text: str, tokenizer: str, cache: str) -> Step:
    """One pass of skip-gram over the text, which was tokenised before."""
    words = load_tokenizer(Path(tokenizer))
    if not isinstance(words, WordTokenizer):
        raise TypeError(f"{tokenizer}: wanted a tokenizer of whole words")
    shards = corpora(Path(text), words, Path(cache)).train

    def step() -> int:
        learner = Word2VecLearner(shards, None, words.vocabulary.counts, Word2VecConfig(workers=CORES), seed=0)
        return sum(learner.step(number, 1.0).units for number in range(learner.steps_per_epoch()))

    return step


def stream(n: int, sentences: str) -> Step:
    """n sentences through a BERT tiny, whose vectors are not kept."""
    texts = Path(sentences).read_text(encoding="utf-8").splitlines()
    tokenizer = tokenizer_of(texts)
    encoder = Bert(BertConfig(**BERT_SIZES["tiny"]), len(tokenizer))
    pretrained = Pretrained(encoder, tokenizer)

    def step() -> int:
        every = itertools.islice(itertools.cycle(texts), n)
        return sum(vectors.shape[1] for vectors in pretrained.stream(every, "top"))

    return step


WORKS = {
    "encode": Work(encode),
    "train": Work(train),
    "tokenise": Work(tokenise, repeats=0, reads_corpus=True),
    "static": Work(static, repeats=0, reads_corpus=True),
    "stream": Work(stream, repeats=0),
}


def mini_bert() -> Bert:
    return Bert(BertConfig(**BERT_SIZES["mini"]), PIECES)


def mini_elmo() -> Elmo:
    return Elmo(ElmoConfig(**ELMO_SIZES["mini"]))


def sequences(n: int, path: Path) -> Iterator[list[str]]:
    """Runs of n words of a text, over and over."""
    words = itertools.cycle(path.read_text(encoding="utf-8").splitlines())
    while True:
        yield list(itertools.islice(words, n))


def bert_row(words: list[str]) -> TextRow:
    """Random pieces in the place of the words: which ones they are makes no difference to the work."""
    ids = np.random.default_rng(len(words)).integers(len(SPECIALS), PIECES, len(words) + 2)
    return TextRow(ids, 1 + np.arange(len(words)), cut=False)


def elmo_row(words: list[str]) -> TextRow:
    return TextRow(character_table([SENTENCE_START, *words, SENTENCE_END]), 1 + np.arange(len(words)), cut=False)


def masked_batch(B: int, T: int) -> MaskedBatch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(len(SPECIALS), PIECES, (B, T), generator=generator)
    hidden = torch.cat([torch.randperm(T, generator=generator)[: round(MASK_RATE * T)] + row * T for row in range(B)])
    segments = (torch.arange(T) >= T // 2).long().expand(B, T)
    is_next = torch.rand(B, generator=generator) < 0.5
    return MaskedBatch(ids, torch.ones(B, T, dtype=torch.bool), segments, hidden, ids.flatten()[hidden], is_next)


def next_word_batch(B: int, T: int, V: int, words: Path) -> LanguageModelBatch:
    """Real words to read; the words to foretell are as frequent as a vocabulary of V has them, by Zipf's law."""
    rows = itertools.islice(sequences(T - 2, words), B)
    characters = torch.from_numpy(np.stack([elmo_row(row).ids for row in rows])).long()
    ranks = torch.rand((B, T), generator=torch.Generator().manual_seed(0))
    targets = (float(V + 1) ** ranks).long().clamp(1, V) - 1
    return LanguageModelBatch(characters, torch.ones((B, T), dtype=torch.bool), targets)


def corpora(text: Path, tokenizer: Tokenizer, cache: Path) -> Corpora:
    config = TextConfig(one_per_line=True, valid_share=0.0)
    return result_of(prepare([text], None, tokenizer, config, cache=cache, max_sentence=None, workers=CORES))


def tokenizer_of(texts: list[str]) -> WordPieceTokenizer:
    """Every word of these texts is a piece."""
    words = sorted({word for text in texts for word in text.lower().split()})
    return build_wordpiece([*SPECIALS, *words], lowercase=True)
