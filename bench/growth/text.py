"""The real text that the processes read, cut to size once and put into a folder."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

from bench.samples import sst_train, texts_of
from bench.works import REVIEWS
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.words import split_words

CORPUS_BYTES, QUICK_CORPUS_BYTES = 10_000_000, 3_000_000
LONGEST_SENTENCE = 12
WORDS = 8_192
MIN_COUNT = 5


class Texts:
    """Each file is made when it is first asked for."""

    def __init__(self, data: Path, folder: Path, quick: bool) -> None:
        self.data, self.folder = data, folder
        self.corpus_bytes = QUICK_CORPUS_BYTES if quick else CORPUS_BYTES

    def corpus(self, times: int) -> Path:
        """So many times the first megabytes of the reviews; all of it different text."""
        path = self.folder / f"reviews-{times}.txt"
        if not path.exists():
            room = times * self.corpus_bytes
            with gzip.open(self.data / REVIEWS, "rb") as reviews, path.open("wb") as file:
                for line in reviews:
                    room -= file.write(line)
                    if room <= 0:
                        break
        return path

    def tokenizer(self) -> Path:
        """Whole words of the smallest corpus, the same for all of them."""
        folder = self.folder / "tokenizer"
        if not folder.exists():
            counter = WordCounter(lowercase=True)
            with self.corpus(1).open(encoding="utf-8") as file:
                for line in file:
                    counter.add(Counter(split_words(line.lower())))
            folder.mkdir()
            WordTokenizer(counter.vocabulary(None, MIN_COUNT)).save(folder)
        return folder

    def words(self) -> Path:
        """The reviews' first words, one per line."""
        path = self.folder / "words.txt"
        if not path.exists():
            words: list[str] = []
            with gzip.open(self.data / REVIEWS, "rt", encoding="utf-8") as reviews:
                while len(words) < WORDS:
                    words += split_words(next(reviews))
            path.write_text("\n".join(words[:WORDS]), encoding="utf-8")
        return path

    def sentences(self) -> Path:
        """Short sentences of SST, one per line."""
        path = self.folder / "sentences.txt"
        if not path.exists():
            short = [text for text in texts_of(sst_train(self.data)) if len(text.split()) <= LONGEST_SENTENCE]
            path.write_text("\n".join(short), encoding="utf-8")
        return path
