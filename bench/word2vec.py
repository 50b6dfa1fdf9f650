"""Skip-gram, 100 dimensions, two threads: ours, from ids on disk, against gensim alone, from strings in memory."""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections import Counter
from pathlib import Path

from gensim.models import Word2Vec

from bench.measure import Measurement, in_turns
from headstart.text.sentences import sentence_spans
from headstart.text.shards import Shards, ShardWriter
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import Vocabulary, WordCounter
from headstart.text.words import split_words
from headstart.training.word2vec import Word2VecConfig, Word2VecLearner

TEXT = "lm_imdb_unsup/train.txt.gz"
WORDS = 2_000_000
WORKERS = 2
MIN_COUNT = 5


def first_sentences(path: Path) -> list[str]:
    """The text's first two million words."""
    sentences: list[str] = []
    n_words = 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            for start, end in sentence_spans(line, False):
                sentences.append(line[start:end].lower())
                n_words += len(split_words(sentences[-1]))
            if n_words >= WORDS:
                break
    return sentences


def write_shards(folder: Path, vocabulary: Vocabulary, sentences: list[str]) -> Shards:
    tokenizer = WordTokenizer(vocabulary)
    with ShardWriter(folder, len(vocabulary)) as writer:
        writer.add(tokenizer.encode_sentences(sentences), True)
    return Shards.open(folder)


def run(data: Path) -> list[Measurement]:
    """data: a gzipped text, or the folder that holds lm_imdb_unsup/train.txt.gz."""
    texts = first_sentences(data / TEXT if data.is_dir() else data)
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
        learner = Word2VecLearner(shards, None, vocabulary.counts, Word2VecConfig(workers=WORKERS), seed=0)
        steps = learner.steps_per_epoch()

        def ours() -> int:
            return sum(learner.step(number, 1 - number / steps).units for number in range(steps))

        def gensim_alone() -> int:
            peer.train(sentences, total_examples=len(sentences), total_words=n_words, epochs=1)
            return n_words

        mine, other = in_turns(ours, gensim_alone)
    return [Measurement("word2vec skip-gram, 2 M words", "words/s", mine, other, "gensim, strings in memory", 0.95)]


if __name__ == "__main__":
    for row in run(Path(sys.argv[1])):
        print(f"{row.work}: {row.ours:,.0f} {row.unit}; {row.peer_name}: {row.peer:,.0f}; ratio {row.ratio:.3f}")
