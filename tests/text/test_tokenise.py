import gzip
import random
import shutil
from collections import Counter
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.progress import Progress
from headstart.text import pool
from headstart.text.counting import TextSample, count_words, learn_pieces
from headstart.text.documents import TextConfig, read_blocks
from headstart.text.jobs import JOB_CHARACTERS, read_jobs
from headstart.text.sentences import sentence_spans
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import Tokenizer, WordTokenizer
from headstart.text.wordpiece_learning import learn_wordpiece
from headstart.text.words import split_words


def drain(generator: Generator[Progress, None, object]) -> tuple[list[Progress], object]:
    readings: list[Progress] = []
    while True:
        try:
            readings.append(next(generator))
        except StopIteration as end:
            return readings, end.value


def make_text(seed: int, documents: int) -> list[str]:
    rng = random.Random(seed)
    words = [f"w{int(rng.paretovariate(0.6))}" for _ in range(2000)]
    return [
        " ".join(
            " ".join(rng.choices(words, k=rng.randrange(1, 12))).capitalize() + "." for _ in range(rng.randrange(1, 9))
        )
        for _ in range(documents)
    ]


def write_lines(path: Path, lines: list[str]) -> Path:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


LINES = TextConfig(one_per_line=True)


def words_of(paths: list[Path], cache: Path, size: int | None = 100) -> WordTokenizer:
    _, counter = drain(count_words(paths, LINES, lowercase=False, cache=cache, workers=1))
    return WordTokenizer(counter.vocabulary(size, 1))


def run(paths: list[Path], tokenizer: Tokenizer, cache: Path, **options: object) -> tuple[list[Progress], Corpora]:
    settings = {"config": LINES, "valid_paths": None, "max_sentence": None, "workers": 1} | options
    return drain(prepare(paths, tokenizer=tokenizer, cache=cache, **settings))


def spelled(shards: Shards, tokenizer: WordTokenizer) -> list[list[str]]:
    def word(id: int) -> str:
        return tokenizer.vocabulary.words[id] if id < len(tokenizer) else shards.extra(id)

    return [[word(int(id)) for id in shards.sentence(i)] for i in range(shards.n_sentences)]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_shards_hold_the_words_of_the_text(tmp_path):
    documents = make_text(0, 250)
    path = write_lines(tmp_path / "a.txt", documents)
    tokenizer = words_of([path], tmp_path / "cache")
    readings, corpora = run([path], tokenizer, tmp_path / "cache")

    def sentences(chosen: list[str]) -> list[list[str]]:
        return [split_words(text[first:last]) for text in chosen for first, last in sentence_spans(text, False)]

    held_out = documents[99::100]
    assert spelled(corpora.train, tokenizer) == sentences([text for text in documents if text not in held_out])
    assert corpora.valid is not None
    assert spelled(corpora.valid, tokenizer) == sentences(held_out)
    assert (corpora.train.n_documents, corpora.valid.n_documents) == (248, 2)
    assert readings[-1] == Progress("tokenising", path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize("kind", ["words", "wordpiece"])
def test_shards_are_the_same_whatever_the_workers(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(pool, "SMALL", 0)
    documents = make_text(1, 6000)
    assert sum(map(len, documents)) > 2 * JOB_CHARACTERS
    path = write_lines(tmp_path / "a.txt.gz", documents)
    if kind == "words":
        tokenizer: Tokenizer = words_of([path], tmp_path / "cache")
    else:
        tokenizer = learn_wordpiece(documents[:500], size=300, lowercase=True)
    made = []
    for workers in (1, 2, 3):
        _, corpora = run([path], tokenizer, tmp_path / f"cache{workers}", workers=workers, max_sentence=7)
        assert corpora.valid is not None
        made.append((files_of(corpora.train.directory), files_of(corpora.valid.directory)))
    assert made[0] == made[1] == made[2]


def test_the_second_time_is_read_from_the_cache(tmp_path):
    path = write_lines(tmp_path / "a.txt", make_text(2, 50))
    tokenizer = words_of([path], tmp_path / "cache")
    _, first = run([path], tokenizer, tmp_path / "cache")
    moved = shutil.copy(path, tmp_path / "moved.txt")
    readings, second = run([Path(moved)], tokenizer, tmp_path / "cache")
    assert (first.reused, second.reused, readings) == (False, True, [])
    assert second.train.directory == first.train.directory
    for changed in ({"max_sentence": 3}, {"config": TextConfig(one_per_line=False)}, {"valid_paths": [path]}):
        assert not run([path], tokenizer, tmp_path / "cache", **changed)[1].reused
    assert not run([path], words_of([path], tmp_path / "cache", size=50), tmp_path / "cache")[1].reused
    write_lines(path, make_text(3, 50))
    assert not run([path], tokenizer, tmp_path / "cache")[1].reused


def test_a_damaged_entry_is_made_again(tmp_path):
    path = write_lines(tmp_path / "a.txt", make_text(2, 50))
    tokenizer = words_of([path], tmp_path / "cache")
    _, first = run([path], tokenizer, tmp_path / "cache")
    whole = files_of(first.train.directory)
    (first.train.directory / "00000.ids").write_bytes(b"")
    _, second = run([path], tokenizer, tmp_path / "cache")
    assert not second.reused
    assert files_of(second.train.directory) == whole


def test_a_stopped_build_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "SMALL", 0)
    path = write_lines(tmp_path / "a.txt", make_text(4, 5000))
    tokenizer = words_of([path], tmp_path / "cache")
    for workers in (1, 2):
        going = prepare([path], None, tokenizer, LINES, cache=tmp_path / "cache", max_sentence=None, workers=workers)
        next(going)
        going.close()
        assert list((tmp_path / "cache" / "shards").iterdir()) == []


def test_validation_text_of_its_own(tmp_path):
    train, valid = write_lines(tmp_path / "a.txt", make_text(5, 300)), write_lines(tmp_path / "b.txt", make_text(6, 7))
    tokenizer = words_of([train], tmp_path / "cache")
    readings, corpora = run([train], tokenizer, tmp_path / "cache", valid_paths=[valid])
    assert corpora.valid is not None
    assert (corpora.train.n_documents, corpora.valid.n_documents) == (300, 7)
    assert readings[-1].done == readings[-1].total == train.stat().st_size + valid.stat().st_size


@pytest.mark.parametrize(("documents", "share"), [(50, 0.01), (300, 0.0)])
def test_nothing_is_held_out_of_a_small_text_or_if_not_wanted(tmp_path, documents, share):
    path = write_lines(tmp_path / "a.txt", make_text(7, documents))
    config = TextConfig(one_per_line=True, valid_share=share)
    _, corpora = run([path], words_of([path], tmp_path / "cache"), tmp_path / "cache", config=config)
    assert corpora.valid is None
    assert corpora.train.n_documents == documents


def test_long_sentences_are_cut(tmp_path):
    path = write_lines(tmp_path / "a.txt", [" ".join(["word"] * 10), "word word"])
    _, corpora = run([path], words_of([path], tmp_path / "cache", None), tmp_path / "cache", max_sentence=4)
    assert [len(corpora.train.sentence(i)) for i in range(4)] == [4, 4, 2, 2]
    assert corpora.train.document_lengths().tolist() == [10, 2]


def test_text_without_words(tmp_path):
    path = write_lines(tmp_path / "a.txt", ["some words"])
    tokenizer = words_of([path], tmp_path / "cache", None)
    with pytest.raises(DataError, match="holds no text"):
        run([write_lines(tmp_path / "b.txt", [" "])], tokenizer, tmp_path / "cache")
    with pytest.raises(DataError, match="finds no word in this text"):
        run([write_lines(tmp_path / "c.txt", ["\x00"])], tokenizer, tmp_path / "cache")
    assert list((tmp_path / "cache" / "shards").iterdir()) == []


@pytest.mark.parametrize("lowercase", [False, True])
def test_words_are_counted_once_and_cached(tmp_path, monkeypatch, lowercase):
    monkeypatch.setattr(pool, "SMALL", 0)
    documents = make_text(8, 3000)
    path = write_lines(tmp_path / "a.txt", documents)
    words = (word for text in documents for word in split_words(text))
    expected = Counter(word.lower() if lowercase else word for word in words)
    for workers in (1, 2):
        options = {"lowercase": lowercase, "cache": tmp_path / f"cache{workers}", "workers": workers}
        readings, counter = drain(count_words([path], LINES, **options))
        assert counter.counts == expected
        assert readings[-1] == Progress("counting words", path.stat().st_size, path.stat().st_size)
        again, cached = drain(count_words([path], LINES, **options))
        assert again == []
        assert (cached.counts, cached.total, cached.lowercase) == (counter.counts, counter.total, lowercase)


def test_pieces_are_learned_once_and_cached(tmp_path):
    path = write_lines(tmp_path / "a.txt", make_text(9, 500))
    options = {"size": 200, "lowercase": True, "exact": True, "cache": tmp_path / "cache"}
    readings, learned = drain(learn_pieces([path], LINES, **options))
    assert {reading.stage for reading in readings} <= {"learning WordPiece"}
    again, cached = drain(learn_pieces([path], LINES, **options))
    assert again == []
    assert cached.pieces == learned.pieces
    assert len(learned) == 200
    directly = learn_wordpiece(make_text(9, 500), size=200, lowercase=True)
    assert learned.pieces == directly.pieces
    with pytest.raises(DataError, match=r"Lower tokenizer\.size"):
        drain(learn_pieces([path], LINES, **(options | {"size": 90_000})))
    assert len(list((tmp_path / "cache" / "wordpiece").iterdir())) == 1


def test_a_sample_is_spread_over_the_text(tmp_path):
    path = write_lines(tmp_path / "a.txt", [f"document{i:04d}" for i in range(1000)])
    sample = TextSample([path], path.stat().st_size // 10)
    numbers = [int(block.text[-4:]) for block in sample(read_blocks([path], LINES))]
    assert 90 <= len(numbers) <= 110
    assert all(9 <= after - before <= 11 for before, after in pairwise(numbers))
    assert numbers == [int(block.text[-4:]) for block in sample(read_blocks([path], LINES))]


def test_jobs_cover_the_blocks_in_order(tmp_path):
    documents = make_text(10, 200)
    jobs = list(read_jobs([write_lines(tmp_path / "a.txt", documents)], LINES, characters=1000))
    assert [text for job in jobs for text in job.texts] == documents
    assert all(sum(map(len, job.texts)) >= 1000 for job in jobs[:-1])
