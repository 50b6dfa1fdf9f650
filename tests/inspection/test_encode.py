from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headstart
from headstart import pretrained as pretrained_module
from headstart.batches.rows import collate, text_row
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.inspection.encode import Encoded, GrowingArray
from headstart.progress import Progress, result_of

THINGS = ["the film", "a long play", "old songs", "his work ,", "the music of the city", "a new story"]
TEXTS = [
    "",
    *(f"The cat likes {thing} ." for thing in THINGS),
    "   ",
    "Nobody",
    *(f"my friend hates {x}" for x in THINGS),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained_module, "BLOCK_SENTENCES", 5)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def encode(source: Path, text: Path | str, **options: Any) -> tuple[Encoded, np.ndarray]:
    done = result_of(headstart.encode(source, text, Path(text).parent / "vectors.npy", **options))
    return done, np.load(done.path)


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
@pytest.mark.parametrize("layers", ["top", "all", 0])
def test_row_i_is_the_mean_of_line_i(kind: str, layers: Any, pretrained_runs: dict[str, Path], text: Path) -> None:
    done, found = encode(pretrained_runs[kind], text, layers=layers)
    encoder = headstart.load(pretrained_runs[kind])
    K, D = encoder.encoder.shape
    assert found.shape == done.shape == ((len(TEXTS), K, D) if layers == "all" else (len(TEXTS), D))
    assert (found.dtype, done.texts, done.empty, done.cut, done.lengths) == (np.float32, len(TEXTS), 2, 0, None)
    for row, vectors in zip(found, encoder.represent(TEXTS, layers), strict=True):
        expected = vectors.mean(axis=1) if vectors.shape[1] else np.zeros((len(vectors), D))
        np.testing.assert_allclose(row, expected if layers == "all" else expected[0], atol=1e-6)


def test_first_is_the_position_before_the_words(pretrained_runs: dict[str, Path], text: Path) -> None:
    _, found = encode(pretrained_runs["bert"], text, pool="first")
    encoder = headstart.load(pretrained_runs["bert"])
    row = text_row(encoder.encoder, encoder.tokenizer, TEXTS[1])
    batch = collate([row])
    top = encoder.encoder.eval()(batch.ids, batch.mask).layers[-1, 0].detach().numpy()
    np.testing.assert_allclose(found[1], top[0], atol=1e-6)
    assert not found[0].any()


def test_first_of_word_vectors_is_the_first_word(pretrained_runs: dict[str, Path], text: Path) -> None:
    _, found = encode(pretrained_runs["static"], text, pool="first")
    (vectors,) = headstart.load(pretrained_runs["static"]).represent([TEXTS[3]])
    np.testing.assert_array_equal(found[3], vectors[0, 0])


@pytest.mark.parametrize("layers", ["top", "all"])
def test_a_row_for_each_word_and_how_many_each_line_has(
    layers: Any, pretrained_runs: dict[str, Path], text: Path
) -> None:
    done, found = encode(pretrained_runs["bert"], text, pool="words", layers=layers)
    assert done.lengths == text.parent / "vectors.lengths.npy"
    lengths = np.load(done.lengths)
    every = headstart.load(pretrained_runs["bert"]).represent(TEXTS, layers)
    assert lengths.tolist() == [vectors.shape[1] for vectors in every]
    expected = np.concatenate(every, axis=1).transpose(1, 0, 2)
    np.testing.assert_allclose(found, expected if layers == "all" else expected[:, 0], atol=1e-6)


def test_long_lines_are_cut_and_counted_unless_every_word_has_a_row(
    pretrained_runs: dict[str, Path], text: Path
) -> None:
    text.write_text("short\n" + "film " * 600 + "\n")
    done, found = encode(pretrained_runs["bert"], text)
    assert (done.cut, found.shape[0]) == (1, 2)
    done.path.unlink()
    with pytest.raises(DataError, match=r"text\.txt:2: this text is longer than the 512 pieces"):
        encode(pretrained_runs["bert"], text, pool="words")
    assert list(text.parent.iterdir()) == [text]


def test_progress_reaches_the_number_of_lines(pretrained_runs: dict[str, Path], text: Path) -> None:
    seen = list(headstart.encode(pretrained_runs["bert"], text, text.parent / "vectors.npy"))
    assert all(isinstance(reading, Progress) and reading.done <= reading.total for reading in seen)
    assert [reading.done for reading in seen] == sorted(reading.done for reading in seen)
    assert seen[-1] == Progress("encoding", len(TEXTS), len(TEXTS), "texts")


@pytest.mark.parametrize(
    ("content", "options", "error", "says"),
    [
        ("", {}, DataError, "holds no text"),
        ("\n \n", {}, DataError, "holds no text"),
        ("film\n", {"pool": "maen"}, ConfigError, "Did you mean 'mean'"),
        ("film\n", {"precision": "int4"}, ConfigError, "Did you mean 'int8'"),
        ("film\n", {"layers": 9}, ConfigError, "no layer 9"),
    ],
)
def test_wrong_requests_leave_nothing_behind(
    content: str, options: Any, error: type[Exception], says: str, pretrained_runs: dict[str, Path], text: Path
) -> None:
    text.write_text(content)
    with pytest.raises(error, match=says):
        encode(pretrained_runs["bert"], text, **options)
    assert list(text.parent.iterdir()) == [text]


def test_a_source_or_a_text_that_is_not_there(text: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file or folder"):
        encode(text.parent / "none", text)
    with pytest.raises(DataError, match="no such file or folder"):
        encode(text, text.parent / "none.txt")


@pytest.mark.parametrize(("there", "pool"), [("vectors.npy", "mean"), ("vectors.lengths.npy", "words")])
def test_a_file_that_is_there_stays(there: str, pool: str, pretrained_runs: dict[str, Path], text: Path) -> None:
    (text.parent / there).write_bytes(b"mine")
    with pytest.raises(ConfigError, match=f"{there}: is already there"):
        encode(pretrained_runs["bert"], text, pool=pool)
    assert (text.parent / there).read_bytes() == b"mine"
    with pytest.raises(ConfigError, match=r"name of a \.npy file"):
        result_of(headstart.encode(pretrained_runs["bert"], text, text.parent / "vectors.txt"))


def test_nothing_stands_under_the_name_before_the_end_nor_after_an_abort(
    pretrained_runs: dict[str, Path], text: Path
) -> None:
    work = headstart.encode(pretrained_runs["bert"], text, text.parent / "vectors.npy")
    next(work)
    assert not (text.parent / "vectors.npy").exists()
    work.close()
    assert list(text.parent.iterdir()) == [text]


def test_a_full_disk_is_one_sentence(
    pretrained_runs: dict[str, Path], text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"vectors\.npy: cannot be written \(No space left on device\)"):
        encode(pretrained_runs["bert"], text)
    assert list(text.parent.iterdir()) == [text]


@pytest.mark.parametrize("row_shape", [(), (3,), (2, 3)])
def test_a_growing_array_opens_as_numpys_own(row_shape: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def parts() -> Iterator[np.ndarray]:
        for n in (1, 0, 40, 100_000):
            yield rng.integers(0, 100, (n, *row_shape)).astype(np.float32)

    written = list(parts())
    with GrowingArray(tmp_path / "a.npy", row_shape, np.float32) as array:
        for part in written:
            array.add(part)
        array.complete()
        array.put_in_place()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.concatenate(written))
    assert np.load(tmp_path / "a.npy", mmap_mode="r").shape == array.shape
