"""Skip-gram, 100 dimensions, two threads: ours, from ids on disk, against gensim alone, from strings in memory.

One epoch over the first two million words of film reviews. Both count the same words of the same vocabulary; what two
threads write over each other is chance, so the vectors are not compared.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gensim.models import Word2Vec

from bench.measure import Measurement, Setting, Side, in_turns
from bench.samples import lines
from bench.works import REVIEWS
from headstart.pretraining.static.word2vec import Word2VecConfig, Word2VecLearner
from headstart.text.sentences import sentence_spans
from headstart.text.shards import Shards, ShardWriter
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary, WordCounter
from headstart.text.words import split_words

WORDS, QUICK_WORDS = 1_500_000, 250_000
WORKERS = 2
MIN_COUNT = 5


def first_sentences(path: Path, most_words: int) -> list[str]:
    """The text's first so many words."""
    sentences: list[str] = []
    n_words = 0
    for line in lines(path):
        for start, end in sentence_spans(line, False):
            sentences.append(line[start:end].lower())
            n_words += len(split_words(sentences[-1]))
        if n_words >= most_words:
            break
    return sentences


def write_shards(folder: Path, vocabulary: Vocabulary, sentences: list[str]) -> Shards:
    tokenizer = WordTokenizer(vocabulary)
    with ShardWriter(folder, len(vocabulary)) as writer:
        writer.add(tokenizer.encode_sentences(sentences), True)
    return Shards.open(folder)


def run(setting: Setting) -> Iterator[Measurement]:
    texts = first_sentences(setting.data / REVIEWS, QUICK_WORDS if setting.quick else WORDS)
    sentences = [split_words(text) for text in texts]
    n_words = sum(map(len, sentences))
    counter = WordCounter(lowercase=True)
    counter.add(Counter(word for sentence in sentences for word in sentence))
    vocabulary = counter.vocabulary(None, MIN_COUNT)
    peer = Word2Vec(vector_size=100, sg=1, workers=WORKERS, min_count=MIN_COUNT)
    peer.build_vocab_from_freq(
        {word: int(n) for word, n in zip(vocabulary.words, vocabulary.counts, strict=True) if n},
        corpus_count=len(sentences),
    )
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(Path(folder) / "shards", vocabulary, texts)
        check_same_words(shards, n_words, vocabulary, peer)
        learner = Word2VecLearner(shards, None, vocabulary.counts, Word2VecConfig(workers=WORKERS), seed=0)
        steps = learner.steps_per_epoch()

        def ours() -> int:
            return sum(learner.step(number, 1 - number / steps).units for number in range(steps))

        def gensim_alone() -> int:
            peer.train(sentences, total_examples=len(sentences), total_words=n_words, epochs=1)
            return n_words

        rates = in_turns({"ours": Side(ours), "gensim": Side(gensim_alone)}, setting.repeats)
    yield Measurement(
        work=f"word2vec skip-gram, {n_words / 1e6:.1f} M words",
        unit="words/s",
        ours=rates["ours"],
        peer=rates["gensim"],
        peer_name="gensim, strings in memory",
        goal=0.95,
    )


def check_same_words(shards: Shards, n_words: int, vocabulary: Vocabulary, peer: Word2Vec) -> None:
    ours, theirs = (shards.n_units, len(vocabulary) - len(SPECIALS)), (n_words, len(peer.wv))
    if ours != theirs:
        raise RuntimeError(f"words and vocabulary differ: ours {ours}, gensim's {theirs}")
