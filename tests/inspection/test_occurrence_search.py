"""The search of an index: exact cosines in order, faiss near to them, and what a search leaves out."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.errors import ConfigError, DataError
from headstart.inspection import occurrence_search, occurrences
from headstart.inspection.neighbours import NearestOccurrences, nearest_occurrences, neighbours, unit
from headstart.inspection.occurrence_search import OccurrenceIndex, build_search, centre_of, search_file
from headstart.inspection.occurrence_text import marked_word, vector_of
from headstart.inspection.occurrences import occurrence_index
from headstart.pretrained import Pretrained
from headstart.progress import Notice, result_of


def index_of(vectors: np.ndarray, folder: Path) -> OccurrenceIndex:
    """An index of these vectors, each in a sentence of its own."""
    n = len(vectors)
    halved = vectors.astype(np.float16)
    places = np.column_stack([np.arange(n), np.zeros(n), np.ones(n)]).astype(np.uint32)
    text, ends = np.full(n, ord("a"), np.uint8), np.arange(1, n + 1, dtype=np.uint64)
    return OccurrenceIndex(folder, 0, halved, places, text, ends, result_of(centre_of(halved)))


def clustered(n: int, D: int, seed: int = 0) -> np.ndarray:
    """A large common component, n / 50 clusters, and noise."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n // 50, D))
    return (5 + centres[rng.integers(0, len(centres), n)] + 0.7 * rng.standard_normal((n, D))).astype(np.float32)


def test_cosines_by_hand(tmp_path: Path) -> None:
    vectors = np.array([[1, 1], [3, 1], [2, 3], [2, -1]], np.float32)  # mean (2, 1)
    index = index_of(vectors, tmp_path)
    assert list(index.ranked(np.array([5, 5], np.float32))) == [
        (2, pytest.approx(0.8, abs=1e-6)),  # (0, 2) to (3, 4)
        (1, pytest.approx(0.6, abs=1e-6)),
        (0, pytest.approx(-0.6, abs=1e-6)),
        (3, pytest.approx(-0.8, abs=1e-6)),
    ]


def test_halved_vectors_give_the_cosines_of_whole_ones(tmp_path: Path) -> None:
    vectors = clustered(5_000, 48)
    index = index_of(vectors, tmp_path)
    centred = unit(vectors - vectors.mean(axis=0))
    expected = centred @ unit(vectors[7] - vectors.mean(axis=0))
    np.testing.assert_allclose(index.cosines(unit(vectors[7] - index.centre.mean)), expected, atol=2e-3)
    ranked = dict(index.ranked(vectors[7]))
    assert sorted(ranked) == list(range(5_000))  # each once, though they are asked for in growing numbers
    assert list(ranked.values()) == sorted(ranked.values(), reverse=True)


def test_occurrences_that_are_all_the_same_have_a_cosine_of_zero(tmp_path: Path) -> None:
    index = index_of(np.ones((3, 4), np.float32), tmp_path)
    assert [cosine for _, cosine in index.ranked(np.ones(4, np.float32))] == [0.0, 0.0, 0.0]


def test_faiss_finds_nine_of_ten_with_exact_cosines(tmp_path: Path) -> None:
    vectors = clustered(20_000, 32)
    index = index_of(vectors, tmp_path)
    events = list(build_search(tmp_path, index.vectors, index.centre))
    assert (events[-1].done, events[-1].total) == (20_000, 20_000)
    assert index.search is not None
    found = wanted = 0
    for query in unit(clustered(20_000, 32)[::500] + 0.1 - index.centre.mean):
        exact, cosines = index.nearest(query, 10, exact=True)
        near, near_cosines = index.nearest(query, 10)
        same = np.isin(near, exact)
        found, wanted = found + int(same.sum()), wanted + 10
        expected = dict(zip(exact.tolist(), cosines.tolist(), strict=True))
        assert near_cosines[same].tolist() == pytest.approx([expected[n] for n in near[same].tolist()], abs=1e-5)
    assert found / wanted >= 0.9


@pytest.fixture
def elmo(pretrained_runs: dict[str, Path]) -> Pretrained:
    return headstart.load(pretrained_runs["elmo"])


def test_a_large_index_is_given_a_search_once(
    elmo: Pretrained, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "LARGEST_EXACT", 300)
    first = result_of(occurrence_index(elmo, [corpus], folder=tmp_path / "index", words=400))
    path = search_file(first.folder, len(first))
    assert path.is_file()
    assert list(occurrence_index(elmo, [corpus], folder=tmp_path / "index", words=400)) == []
    grown = result_of(occurrence_index(elmo, [corpus], folder=tmp_path / "index", words=600))
    assert not path.exists()
    assert search_file(grown.folder, len(grown)).is_file()
    assert grown.search is not None
    query = unit(np.random.default_rng(0).standard_normal(len(grown.centre.mean)).astype(np.float32))
    assert set(grown.nearest(query, 5)[0].tolist()) <= set(range(len(grown)))


def test_without_faiss_every_vector_is_compared_and_that_is_said(
    elmo: Pretrained, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "LARGEST_EXACT", 300)
    for module in (occurrences, occurrence_search):
        monkeypatch.setattr(module, "can_search", lambda: False)
    for _ in range(2):
        events = list(occurrence_index(elmo, [corpus], folder=tmp_path / "index", words=400))
        assert isinstance(events[-1], Notice)
        assert "headstart[index]" in events[-1].text
    assert result_of(occurrence_index(elmo, folder=tmp_path / "index")).search is None


def test_an_occurrence_is_its_own_nearest_but_its_sentence_is_not_shown(elmo: Pretrained, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    lines = [
        "nobody likes the film .",
        "Nobody likes the film .",
        "nobody likes the film .",
        "a dog hates the garden .",
    ]
    text.write_text("\n\n".join(lines))
    index = result_of(occurrence_index(elmo, [text]))
    marked = marked_word("nobody likes the [film] .")
    assert marked is not None
    (_, cosine), *_ = islice(index.ranked(vector_of(elmo, marked, "top")), 1)
    assert cosine == pytest.approx(1.0, abs=2e-3)
    found = nearest_occurrences(elmo, index, marked, 50)
    assert {one.sentence for one in found} == {lines[1], lines[3]}
    assert len({(one.sentence, one.start) for one in found}) == len(found) == 9
    assert (found[0].word, found[0].cosine) == ("film", max(one.cosine for one in found))
    assert nearest_occurrences(elmo, index, marked, 2) == found[:2]


def test_neighbours_in_a_text_beside_word_vectors(
    elmo: Pretrained, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    words = headstart.load(pretrained_runs["static"])
    found = result_of(neighbours(elmo, "Nobody likes the [film] .", [corpus], static=words, most=3, words=500))
    assert isinstance(found, NearestOccurrences)
    table = found.as_table()
    assert [len(table["occurrences"]), len(table["static"]["neighbours"])] == [3, 3]
    assert table["query"] == "Nobody likes the [film] ."
    assert table["static"] == result_of(neighbours(words, "film", most=3)).as_table()
    html = found._repr_html_()
    assert html.count("<table>") == 2
    assert f"<b>{found.occurrences[0].word}</b>" in html
    unknown = result_of(neighbours(elmo, "the [zzzzz] .", [corpus], static=words, words=500))
    assert unknown.as_table()["static"] == {"encoder": "static", "word": "zzzzz", "neighbours": None}


def test_what_an_encoder_cannot_answer_names_one_that_can(
    elmo: Pretrained, pretrained_runs: dict[str, Path], corpus: Path, home: Path
) -> None:
    shutil.rmtree(home / "occurrences", ignore_errors=True)
    words = headstart.load(pretrained_runs["static"])
    for query, among in (("the [film] .", ()), ("film", [corpus])):
        with pytest.raises(ConfigError, match=r"'film' one vector, whatever its sentence.*elmo-mini, which"):
            result_of(neighbours(words, query, among))
    for query, among, says in (("film", [corpus], "Mark 'film' in one"), ("the [film] .", (), r"sentence\. Give --am")):
        with pytest.raises(ConfigError, match=f"{says}.*words-mini"):
            result_of(neighbours(elmo, query, among))
    with pytest.raises(ConfigError, match="most is a count of one or more; got 0"):
        result_of(neighbours(words, "film", most=0))
    with pytest.raises(DataError, match="mark one word"):
        result_of(neighbours(elmo, "the [old film] .", [corpus]))
    assert not (home / "occurrences").exists()  # each is said before an index is built


def test_an_index_that_is_open_needs_no_text(elmo: Pretrained, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    result_of(occurrence_index(elmo, [corpus], folder=folder, words=300))
    found = result_of(neighbours(elmo, "the [film] .", index=folder, most=2))
    assert isinstance(found, NearestOccurrences)
    assert len(found.occurrences) == 2
