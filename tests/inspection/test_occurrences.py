"""The index of a text's occurrences: what is stored, that it goes on after a kill, and what it refuses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Generator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.atomic import locked
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.inspection import occurrences
from headstart.inspection.occurrence_files import COMMITTED, LOCK, read_committed
from headstart.inspection.occurrence_search import OccurrenceIndex, as_float32
from headstart.inspection.occurrence_text import MarkedWord, marked_word, vector_of
from headstart.inspection.occurrences import occurrence_index
from headstart.pretrained import Pretrained
from headstart.progress import Notice, Progress, result_of

SENTENCES = [
    "The cat likes the old songs .",
    "Nobody plays in\nthe garden !",
    "My friend hates the film ; it is dull .",
]


@pytest.fixture(params=["elmo", "bert"])
def encoder(request: pytest.FixtureRequest, pretrained_runs: dict[str, Path]) -> Pretrained:
    return headstart.load(pretrained_runs[request.param])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(SENTENCES), encoding="utf-8")
    return path


def notices(job: Generator[Progress | Notice, None, OccurrenceIndex]) -> list[str]:
    return [event.text for event in job if isinstance(event, Notice)]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK}


def test_every_word_with_its_place_and_the_encoders_own_vector(encoder: Pretrained, text: Path) -> None:
    index = result_of(occurrence_index(encoder, [text]))
    sentences = [" ".join(sentence.split()) for sentence in SENTENCES]
    expected = [
        (sentence, word, vector)
        for sentence, vectors in zip(sentences, encoder.represent(sentences, "top"), strict=True)
        for word, vector in zip(encoder.words(sentence), vectors[0], strict=True)
        if any(map(str.isalnum, word))
    ]
    places = [index.place(number) for number in range(len(index))]
    assert [(sentence, sentence[start:end]) for sentence, start, end in places] == [one[:2] for one in expected]
    vectors = np.stack([vector for *_, vector in expected])
    np.testing.assert_allclose(as_float32(index.vectors), vectors, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(index.centre.mean, vectors.mean(axis=0), atol=1e-3)


def test_a_layer_of_its_own(encoder: Pretrained, text: Path) -> None:
    top, first = (result_of(occurrence_index(encoder, [text], layer=layer)) for layer in ("top", 1))
    assert (top.layer, first.layer) == (encoder.encoder.shape[0] - 1, 1)
    assert top.folder != first.folder
    wanted = encoder.represent([" ".join(SENTENCES[0].split())], 1)[0][0, 0]
    np.testing.assert_allclose(as_float32(first.vectors[:1])[0], wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("events", [1, 4, 9])
def test_stopped_and_gone_on_it_is_the_same_to_the_byte(
    encoder: Pretrained, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    monkeypatch.setattr(occurrences, "PART", 300)
    options = {"words": 1_000}
    whole = result_of(occurrence_index(encoder, [corpus], folder=tmp_path / "whole", **options))
    stopped = occurrence_index(encoder, [corpus], folder=tmp_path / "stopped", **options)
    list(islice(stopped, events))
    stopped.close()
    assert not (tmp_path / "stopped" / "centre.npz").exists()
    with pytest.raises(DataError, match="Give --among TEXT"):
        result_of(occurrence_index(encoder, folder=tmp_path / "stopped"))
    result_of(occurrence_index(encoder, [corpus], folder=tmp_path / "stopped", **options))
    assert len(whole) >= 1_000
    assert files_of(tmp_path / "stopped") == files_of(tmp_path / "whole")


def test_half_a_part_that_a_killed_process_wrote_is_dropped(
    encoder: Pretrained, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "PART", 300)
    for name in ("whole", "killed"):
        result_of(occurrence_index(encoder, [corpus], folder=tmp_path / name, words=600))
    for name in ("vectors.f16", "places.u32", "sentences.txt", "sentences.u64"):
        with (tmp_path / "killed" / name).open("ab") as file:
            file.write(b"half a part")
    for name in ("whole", "killed"):
        result_of(occurrence_index(encoder, [corpus], folder=tmp_path / name, words=900))
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_a_whole_index_is_opened_and_a_larger_one_adds_to_it(encoder: Pretrained, corpus: Path, tmp_path: Path) -> None:
    said = notices(occurrence_index(encoder, [corpus], folder=tmp_path / "index", words=500))
    assert any("indexing about 500 words" in text for text in said)
    assert any("larger --words" in text for text in said)
    before = files_of(tmp_path / "index")
    assert list(occurrence_index(encoder, [corpus], folder=tmp_path / "index", words=400)) == []
    assert list(occurrence_index(encoder, folder=tmp_path / "index")) == []
    assert files_of(tmp_path / "index") == before
    grown = result_of(occurrence_index(encoder, [corpus], folder=tmp_path / "index", words=800))
    assert len(grown) >= 800
    assert files_of(tmp_path / "index")["vectors.f16"].startswith(before["vectors.f16"])


def test_one_index_for_the_same_text_packed_or_moved(encoder: Pretrained, text: Path, tmp_path: Path) -> None:
    folder = result_of(occurrence_index(encoder, [text])).folder
    moved = tmp_path / "moved.txt"
    moved.write_bytes(text.read_bytes())
    assert result_of(occurrence_index(encoder, [moved])).folder == folder
    moved.write_text("Another text .")
    assert result_of(occurrence_index(encoder, [moved])).folder != folder


def test_sentences_too_long_for_the_encoder_are_left_out_and_counted(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    encoder = headstart.load(pretrained_runs["bert"])
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(f"The cat .\n\n{'the film ' * 300}.\n\n. !\n\nA dog .".encode()))
    job = occurrence_index(encoder, [path])
    said = notices(job)
    assert any(text.endswith("were left out: 1.") for text in said)
    index = result_of(occurrence_index(encoder, [path]))
    assert [index.sentence(number) for number in range(len(index.ends))] == ["The cat .", "A dog ."]


def test_what_is_refused(encoder: Pretrained, text: Path, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with pytest.raises(ConfigError, match="--words is a count of one or more; got 0"):
        result_of(occurrence_index(encoder, [text], words=0))
    with pytest.raises(ConfigError, match="give --among TEXT, or the --index"):
        result_of(occurrence_index(encoder))
    with pytest.raises(DataError, match="holds no index"):
        result_of(occurrence_index(encoder, folder=folder))
    result_of(occurrence_index(encoder, [text], folder=folder))
    with pytest.raises(DataError, match=r"is the index of another text: it has .*, layer \d, text.txt"):
        result_of(occurrence_index(encoder, [corpus], folder=folder))
    with pytest.raises(DataError, match="is the index of another layer"):
        result_of(occurrence_index(encoder, folder=folder, layer=0))
    with pytest.raises(DataError, match="is not empty and holds no index"):
        result_of(occurrence_index(encoder, [text], folder=tmp_path))
    (folder / "centre.npz").unlink()
    with locked(folder / LOCK, ""), pytest.raises(CheckpointError, match="another process builds this index"):
        result_of(occurrence_index(encoder, [text], folder=folder))


def test_a_broken_index_says_so(encoder: Pretrained, text: Path, tmp_path: Path) -> None:
    result_of(occurrence_index(encoder, [text], folder=tmp_path / "index"))
    (tmp_path / "index" / "vectors.f16").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"part of an index is broken .* Remove its folder"):
        result_of(occurrence_index(encoder, [text], folder=tmp_path / "index"))
    (tmp_path / "index" / COMMITTED).write_text(json.dumps({"read": 1, "other": 2}))
    with pytest.raises(CheckpointError, match=r"committed\.json: this part of an index is broken"):
        result_of(occurrence_index(encoder, [text], folder=tmp_path / "index"))


@pytest.mark.parametrize(
    "name", ["vectors.f16", "places.u32", "sentences.txt", "sentences.u64", COMMITTED, "centre.npz"]
)
def test_a_flipped_bit_is_named_and_an_index_of_the_cache_is_made_anew(
    encoder: Pretrained, text: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for given in (tmp_path / "index", None):
        index = result_of(occurrence_index(encoder, [text], folder=given))
        whole = files_of(index.folder)
        damaged = bytearray(whole[name])
        damaged[len(damaged) // 2] ^= 1
        (index.folder / name).write_bytes(damaged)
        if given is not None:
            with pytest.raises(CheckpointError, match=rf"{name}: this part of an index is broken"):
                result_of(occurrence_index(encoder, [text], folder=given))
    again = result_of(occurrence_index(encoder, [text]))
    assert f"{name}: this part of an index is broken" in caplog.text
    assert "is made anew" in caplog.text
    assert files_of(again.folder) == whole


def test_checksums_of_parts_are_those_of_the_whole(encoder: Pretrained, text: Path, tmp_path: Path) -> None:
    at_once = result_of(occurrence_index(encoder, [text], folder=tmp_path / "at once"))
    for words in (5, 12, 100):
        in_parts = result_of(occurrence_index(encoder, [text], folder=tmp_path / "in parts", words=words))
    assert read_committed(in_parts.folder).sums == read_committed(at_once.folder).sums


def test_a_full_disk_is_said_before_anything_is_written(
    encoder: Pretrained, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(DataError, match=r"GB are free\. Make room, give a smaller --words"):
        result_of(occurrence_index(encoder, [text], folder=tmp_path / "index"))
    assert files_of(tmp_path / "index") == {}


def test_a_marked_word() -> None:
    assert marked_word("  They  staged a [ play] in  town .") == MarkedWord("They staged a play in town .", 14, 18)
    assert str(marked_word("[Play] it.")) == "[Play] it."
    assert marked_word("play") is None
    for text in ("[a] [b]", "a [ ] b"):
        with pytest.raises(DataError, match="Mark one word"):
            marked_word(text)


def test_the_vector_of_a_marked_word_is_that_of_its_sentence(encoder: Pretrained) -> None:
    marked = marked_word("the cat likes the [cat] .")
    assert marked is not None
    expected = encoder.represent(["the cat likes the cat ."], "top")[0][0, 4]
    np.testing.assert_array_equal(vector_of(encoder, marked, "top"), expected)
    for text in ("the [old songs] .", "the c[at] .", "the [\u200b] songs ."):
        wrong = marked_word(text)
        assert wrong is not None
        with pytest.raises(DataError, match="mark one word"):
            vector_of(encoder, wrong, "top")


def test_a_text_that_ended_with_the_last_part_has_nothing_to_add(encoder: Pretrained, text: Path) -> None:
    before = result_of(occurrence_index(encoder, [text], words=18))  # as many as there are
    after = result_of(occurrence_index(encoder, [text], words=100))
    assert len(before) == len(after) == 19
    assert before.place(18) == after.place(18)
    assert list(occurrence_index(encoder, [text], words=200)) == []


def test_what_a_killed_process_left_of_a_first_file_is_no_obstacle(
    encoder: Pretrained, text: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    (folder / "index.json.1.2.partial").write_text("{")
    assert len(result_of(occurrence_index(encoder, [text], folder=folder))) == 19
    assert not list(folder.glob("*.partial"))
