from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as parquet
import pytest

import headstart
from headstart import pretrained as pretrained_module
from headstart.atomic import locked
from headstart.batches.rows import collate, text_row
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.inspection import stretches, unfinished, vector_files
from headstart.inspection.encode import Encoded, encode_lines
from headstart.inspection.unfinished import folder_of
from headstart.progress import Notice, Progress, result_of
from headstart.text.lines import Lines

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
    monkeypatch.setattr(stretches, "STRETCH", 9)


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
    with pytest.raises(ConfigError, match=r"name of a \.npy, \.h5, \.hdf5 or \.parquet file"):
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
    with pytest.raises(CheckpointError, match=r"vectors\.npy: cannot be written \(No space left on device\)"):
        encode(pretrained_runs["bert"], text)
    assert list(text.parent.iterdir()) == [text]


def test_words_of_elmos_layout_stand_between_spaces(pretrained_runs: dict[str, Path], text: Path) -> None:
    """As `allennlp elmo` writes it, whose words are those of the line."""
    text.write_text("It's a film .\n\nnobody likes it's plot\nIt's a film .\n", encoding="utf-8")
    done = result_of(headstart.encode(pretrained_runs["elmo"], text, text.parent / "vectors.h5", layers="all"))
    assert (done.shape, done.texts, done.empty, done.lengths) == ((12, 3, 16), 4, 1, None)
    encoder = headstart.load(pretrained_runs["elmo"])
    with h5py.File(done.path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
        for number, line in enumerate(text.read_text(encoding="utf-8").splitlines()):
            (expected,) = encoder.represent([line.split()])
            assert (file[str(number)].shape, file[str(number)].dtype) == (expected.shape, np.float32)
            np.testing.assert_allclose(file[str(number)], expected, atol=1e-6)
        assert file["sentence_to_index"].shape == (1,)
        assert json.loads(file["sentence_to_index"][0]) == {"It's a film .": "3", "nobody likes it's plot": "2"}


def test_elmos_layout_of_one_layer_is_flat_and_of_words_only(pretrained_runs: dict[str, Path], text: Path) -> None:
    out = text.parent / "vectors.hdf5"
    result_of(headstart.encode(pretrained_runs["bert"], text, out))
    with h5py.File(out) as file:
        assert file["1"].shape == (len(TEXTS[1].split()), 16)
    with pytest.raises(ConfigError, match="ELMo's layout, which has a vector for each word"):
        result_of(headstart.encode(pretrained_runs["bert"], text, text.parent / "other.h5", pool="mean"))


@pytest.mark.parametrize("layers", ["top", [2, 0]])
@pytest.mark.parametrize("pool", ["mean", "words"])
def test_a_parquet_file_has_the_rows_of_the_npy_file(
    layers: Any, pool: str, pretrained_runs: dict[str, Path], text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_files, "GROUP_BYTES", 500)  # several row groups
    _, rows = encode(pretrained_runs["bert"], text, pool=pool, layers=layers)
    done = result_of(
        headstart.encode(pretrained_runs["bert"], text, text.parent / "v.parquet", pool=pool, layers=layers)
    )
    table = parquet.read_table(done.path)
    names = ["vector"] if layers == "top" else ["layer_2", "layer_0"]
    assert table.num_rows == len(rows)
    for place, name in enumerate(names):
        assert str(table.schema.field(name).type) == "fixed_size_list<element: float>[16]"
        np.testing.assert_array_equal(table[name].to_pylist(), rows if layers == "top" else rows[:, place])
    if pool == "mean":
        assert table.column_names == ["line", "text", *names]
        assert (table["line"].to_pylist(), table["text"].to_pylist()) == (list(range(len(TEXTS))), TEXTS)
    else:
        assert table.column_names == ["line", "place", "word", *names]
        words = [headstart.load(pretrained_runs["bert"]).words(line) for line in TEXTS]
        expected = [(line, place, word) for line, of in enumerate(words) for place, word in enumerate(of)]
        assert list(zip(*(table[name].to_pylist() for name in table.column_names[:3]), strict=True)) == expected


def content(path: Path) -> Any:
    """Of .npy and parquet files the bytes; HDF5 files also hold when they were made."""
    if path.suffix != ".h5":
        return path.read_bytes()
    with h5py.File(path) as file:
        return {name: dataset[...].tolist() for name, dataset in file.items()}


@pytest.fixture
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH", 3)
    monkeypatch.setattr(unfinished, "SECONDS_BETWEEN_SAVES", 0)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("elmo", "vectors.npy", {"pool": "words", "layers": "all"}),
        ("bert", "vectors.npy", {}),
        ("elmo", "vectors.h5", {}),
        ("static", "vectors.parquet", {"pool": "words"}),
    ],
)
def test_killed_anywhere_and_gone_on_it_is_the_same(
    kind: str, name: str, options: Any, pretrained_runs: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    """What a killed process leaves is what is on the disk at that moment: a copy of it, made after each event."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    pretrained = headstart.load(pretrained_runs[kind])
    events = encode_lines(pretrained, Lines(text), whole / name, **options)
    for number, _ in enumerate(events):
        if (whole / f"{name}.partial").exists():
            shutil.copytree(whole / f"{name}.partial", killed / str(number) / f"{name}.partial")
    stops = sorted(killed.iterdir())
    assert len(stops) > 5
    went_on = 0
    for stop in stops:
        seen = list(encode_lines(pretrained, Lines(text), stop / name, **options))
        went_on += any(isinstance(event, Notice) for event in seen)
        assert {path.name for path in stop.iterdir()} == {path.name for path in whole.iterdir()}
        for path in whole.iterdir():
            assert content(stop / path.name) == content(path)
    assert went_on >= 3


@pytest.mark.usefixtures("short_stretches")
def test_what_was_written_last_is_cut_off_and_what_is_done_is_not_encoded_again(
    pretrained_runs: dict[str, Path], text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = text.parent / "vectors.npy"
    whole = content(encode(pretrained_runs["bert"], text)[0].path)
    out.unlink()
    work = headstart.encode(pretrained_runs["bert"], text, out)
    while not (folder_of(out) / "record.json").exists():
        next(work)
    work.close()
    with (folder_of(out) / "vectors.npy").open("ab") as file:
        file.write(b"half a row")
    done = json.loads((folder_of(out) / "record.json").read_text())["reached"]["lines"]
    read: list[str] = []
    monkeypatch.setattr(stretches, "text_row", lambda *given: (read.append(given[2]), text_row(*given))[1])
    seen = list(headstart.encode(pretrained_runs["bert"], text, out))
    assert Notice(f"Going on after line {done:,}, where this was stopped.") in seen
    assert read == TEXTS[done:]
    assert out.read_bytes() == whole
    assert not folder_of(out).exists()


@pytest.fixture
def stopped(short_stretches: None, pretrained_runs: dict[str, Path], text: Path) -> Path:
    """The folder of a run that was stopped on its way."""
    out = text.parent / "vectors.npy"
    work = headstart.encode(pretrained_runs["bert"], text, out)
    while not (folder_of(out) / "record.json").exists():
        next(work)
    work.close()
    return folder_of(out)


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("elmo", {}, "begun with another encoder, or precision"),
        ("bert", {"precision": "int8"}, "begun with another encoder, or precision"),
        ("bert", {"layers": 0}, "begun with another choice of layers"),
        ("bert", {"pool": "first"}, "begun with another pool"),
        ("bert", {"layers": [2]}, "begun with another shape of vectors"),
    ],
)
def test_other_settings_do_not_go_on(
    source: str, options: Any, says: str, stopped: Path, pretrained_runs: dict[str, Path], text: Path
) -> None:
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}
    with pytest.raises(CheckpointError, match=says):
        encode(pretrained_runs[source], text, **options)
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before


def test_a_changed_text_does_not_go_on_and_one_that_grew_does(
    stopped: Path, pretrained_runs: dict[str, Path], text: Path
) -> None:
    lines = text.read_text(encoding="utf-8")
    for changed in (lines.replace("The cat likes the film", "The cat hates the film"), "one line\n"):
        text.write_text(changed, encoding="utf-8")
        with pytest.raises(CheckpointError, match="are no longer those that were encoded"):
            encode(pretrained_runs["bert"], text)
    text.write_text(f"{lines}a new story\n", encoding="utf-8")
    done, found = encode(pretrained_runs["bert"], text)
    assert done.texts == len(found) == len(TEXTS) + 1


def test_a_folder_that_is_damaged_or_in_use_is_refused(
    stopped: Path, pretrained_runs: dict[str, Path], text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(stopped / "lock", ""), pytest.raises(CheckpointError, match="another process is at work"):
        encode(pretrained_runs["bert"], text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"film\n")))
    with pytest.raises(CheckpointError, match="standard input cannot go on"):
        result_of(headstart.encode(pretrained_runs["bert"], "-", text.parent / "vectors.npy"))
    vectors = (stopped / "vectors.npy").read_bytes()
    (stopped / "vectors.npy").write_bytes(vectors[:150])
    with pytest.raises(CheckpointError, match=r"has 150 bytes of the [\d,]+ that were written"):
        encode(pretrained_runs["bert"], text)
    (stopped / "record.json").write_text('{"settings": {}, "reached": {"lines": "3"}}')
    with pytest.raises(CheckpointError, match=r"record\.json: is broken"):
        encode(pretrained_runs["bert"], text)


def test_killed_between_the_two_files_of_the_end(pretrained_runs: dict[str, Path], text: Path) -> None:
    out = text.parent / "vectors.npy"
    with pytest.MonkeyPatch.context() as patch:
        moved: list[Path] = []

        def move_one(source: Path, target: Path) -> None:
            if moved and target in (out, text.parent / "vectors.lengths.npy"):
                raise KeyboardInterrupt
            os.rename(source, target)
            moved.extend([target] if target.name == "vectors.lengths.npy" else [])

        patch.setattr(unfinished.os, "replace", move_one)
        with pytest.raises(KeyboardInterrupt):
            encode(pretrained_runs["bert"], text, pool="words")
    assert moved
    assert not out.exists()
    done, found = encode(pretrained_runs["bert"], text, pool="words")
    assert done.lengths is not None
    assert np.load(done.lengths).sum() == len(found) == done.shape[0]
    assert not folder_of(out).exists()
