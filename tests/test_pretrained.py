"""A stream of sentences: the same vectors as all at once, in order, and no more memory for more of them."""

from __future__ import annotations

import itertools
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import headstart
from headstart import pretrained as module
from headstart.checksums import SUMS
from headstart.encoders.registry import ENCODERS
from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError
from headstart.pretrained import Pretrained, load_run, save_run, weights_of

WHO = ["The cat", "Every child", "Nobody", "The old actor , my friend ,"]
WHAT = ["the film", "a long play", "old songs .", "the music", "his work", "a new story and the city", "it", "the dog"]
SENTENCES = [f"{who} likes {what}" for what in WHAT for who in WHO]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_SENTENCES", 7)


def opened(runs: dict[str, Path], kind: str) -> Pretrained:
    return headstart.load(runs[kind])


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_sentence_has_the_same_vectors_whatever_block_it_is_in(
    kind: str, pretrained_runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = opened(pretrained_runs, kind)
    texts = ["", *SENTENCES[:20], "The cat , the dog , my friend and the old actor talk about the film .", "Nobody"]
    alone = [encoder.represent([text])[0] for text in texts]
    for limit in ({"BLOCK_SENTENCES": 7}, {"BLOCK_SENTENCES": 1}, {"BLOCK_BYTES": 3_000}, {"BLOCK_BYTES": 1}, {}):
        with monkeypatch.context() as patch:
            for name, value in limit.items():
                patch.setattr(module, name, value)
            streamed = list(encoder.stream(texts))
        assert [vectors.shape for vectors in streamed] == [vectors.shape for vectors in alone]
        for one, other in zip(streamed, alone, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    assert alone[0].shape[1] == 0


@pytest.mark.parametrize(("layers", "numbers"), [("all", [0, 1, 2]), ("top", [2]), (1, [1]), ([2, 0], [2, 0])])
def test_layers_are_those_of_represent(
    layers: str | int | list[int], numbers: list[int], pretrained_runs: dict[str, Path], small_blocks: None
) -> None:
    encoder, texts = opened(pretrained_runs, "bert"), SENTENCES[:9]
    for some, every in zip(encoder.stream(texts, layers), encoder.represent(texts), strict=True):
        np.testing.assert_array_equal(some, every[numbers])


def test_sentences_are_taken_as_they_are_needed(pretrained_runs: dict[str, Path], small_blocks: None) -> None:
    taken = itertools.count()
    endless = (f"the cat likes film {next(taken)} ." for _ in itertools.repeat(None))
    stream = opened(pretrained_runs, "static").stream(endless)
    assert next(taken) == 0  # nothing before the first vector is asked for
    given = len(list(itertools.islice(stream, 10)))
    assert given == 10
    assert next(taken) <= 10 + 2 * 7


def test_a_wrong_layer_is_told_at_once_and_a_long_sentence_when_it_comes(pretrained_runs: dict[str, Path]) -> None:
    encoder = opened(pretrained_runs, "bert")
    with pytest.raises(ConfigError, match="no layer 5"):
        encoder.stream(iter(["film"]), 5)
    stream = encoder.stream(["film", "film " * 600])
    with pytest.raises(DataError, match="602 pieces with its marks, and this BERT reads 512"):
        list(stream)


def peak_of(encoder: Pretrained, n: int) -> int:
    """Most bytes at once while a stream of n sentences goes through."""

    def texts() -> Iterator[str]:
        return (f"{SENTENCES[i % len(SENTENCES)]} {i}" for i in range(n))

    tracemalloc.start()
    try:
        assert sum(1 for _ in encoder.stream(texts())) == n
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_times_the_sentences_take_no_more_memory(
    pretrained_runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_SENTENCES", 256)
    encoder = opened(pretrained_runs, "static")
    peak_of(encoder, 600)  # what is allocated once
    few, many = peak_of(encoder, 2_000), peak_of(encoder, 20_000)
    assert many < 1.2 * few


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_run_that_is_saved_again_holds_the_same(kind: str, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    first = opened(pretrained_runs, kind)
    save_run(first, tmp_path / "again", {}, "")
    second = load_run(tmp_path / "again")
    assert second.kind == kind
    assert second.heads.keys() == first.heads.keys()
    mine, other = weights_of(first), weights_of(second)
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    np.testing.assert_array_equal(first.represent(SENTENCES[:1])[0], second.represent(SENTENCES[:1])[0])


def test_heads_come_along_by_their_names(pretrained_runs: dict[str, Path]) -> None:
    heads = {kind: set(opened(pretrained_runs, kind).heads) for kind in ("static", "elmo", "bert")}
    assert heads == {"static": set(), "elmo": {"head"}, "bert": {"masked", "next"}}


@pytest.mark.parametrize(
    ("renamed", "message"),
    [("nonsense", "'nonsense', which is neither the encoder nor a known head"), ("head", "'head' is for ELMo")],
)
def test_an_unknown_head_or_one_of_another_encoder_is_refused(
    renamed: str, message: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    save_run(opened(pretrained_runs, "bert"), tmp_path / "run", {}, "")
    weights = tmp_path / "run" / "weights.safetensors"
    tensors = load_file(weights)
    save_file({name.replace("next.", f"{renamed}."): value for name, value in tensors.items()}, weights)
    (tmp_path / "run" / SUMS).unlink()
    with pytest.raises(CheckpointError, match=message):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("kind", ENCODERS)
def test_loading_leaves_torchs_generator_alone(kind: str, pretrained_runs: dict[str, Path]) -> None:
    before = torch.get_rng_state()
    opened(pretrained_runs, kind).represent(SENTENCES[:2])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("given", ["one string", b"bytes"])
def test_one_string_is_not_a_list_of_sentences(given: str | bytes, pretrained_runs: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="list of sentences is wanted, one string was given"):
        opened(pretrained_runs, "static").represent(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 3, b"film", ["a", None], {"text": "a"}])
def test_a_sentence_that_is_none_is_named(wrong: object, pretrained_runs: dict[str, Path]) -> None:
    encoder = opened(pretrained_runs, "static")
    for carry_state in (False, True):
        with pytest.raises(DataError, match=r"Sentence 2 is .*; wanted a string, or a list of words"):
            encoder.represent(["fine", wrong], carry_state=carry_state)  # type: ignore[list-item]
    with pytest.raises(DataError, match="list of sentences is wanted; got None"):
        encoder.represent(None)  # type: ignore[arg-type]


def test_words_may_come_as_a_list_a_tuple_or_an_array(pretrained_runs: dict[str, Path]) -> None:
    words = ["The", "cat", "likes", "it"]
    encoder = opened(pretrained_runs, "elmo")
    first, *others = encoder.represent([words, tuple(words), np.array(words)])  # type: ignore[list-item]
    assert all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize("kind", ENCODERS)
def test_words_are_those_that_have_a_vector_and_a_text_may_have_none(
    kind: str, pretrained_runs: dict[str, Path]
) -> None:
    pretrained = headstart.load(pretrained_runs[kind])
    texts = ["", " ", "\u200b", "The cat likes the film ."]
    vectors = pretrained.represent(texts)
    assert [len(pretrained.words(text)) for text in texts] == [found.shape[1] for found in vectors]
    assert pretrained.words("") == []


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_lone_surrogate_changes_no_other_word(kind: str, pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs[kind])
    for sentence in ("the cat \ud800", ["the", "cat", "\ud800"]):
        (vectors,) = pretrained.represent([sentence], layers=0)
        np.testing.assert_allclose(vectors[0, 0], pretrained.represent(["the"], layers=0)[0][0, 0], atol=1e-6)
        assert np.isfinite(vectors).all()


def test_it_says_what_it_is_in_a_line(pretrained_runs: dict[str, Path]) -> None:
    assert repr(opened(pretrained_runs, "bert")) == (
        f"<Pretrained bert: BERT, 3 layers of 16, vocabulary {len(opened(pretrained_runs, 'bert').tokenizer):,}, "
        "heads masked, next>"
    )


DAMAGED = {
    "the shape asks for terabytes": ("width = 16", "width = 1000000", "does not fit its config.toml"),
    "a number that no computer holds": ("width = 16", f"width = {10**30}", "'width' in the configuration"),
    "more layers than could be built": ("layers = 2", "layers = 2147483648", "less than or equal to 1000"),
    "no size of the vocabulary": ("vocabulary = ", "volcabulary = ", "'vocabulary' is missing or not a int"),
    "a list for a number": ("vocabulary = ", "vocabulary = [1]\nother = ", "'vocabulary' is missing or not a int"),
    "a value for a section": ('kind = "bert"', 'kind = "bert"\ndata = 3\n[other]', "not a TOML file"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_configuration_is_told_before_memory_is_taken(
    damage: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    old, new, message = DAMAGED[damage]
    run = tmp_path / "run"
    shutil.copytree(pretrained_runs["bert"], run)
    text = (run / "config.toml").read_text(encoding="utf-8")
    assert old in text
    (run / "config.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    (run / SUMS).unlink()
    with pytest.raises(HeadstartError, match=message):
        load_run(run)


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_run_without_its_shape_is_refused_by_name(
    kind: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    save_run(opened(pretrained_runs, kind), tmp_path / "run", {}, "")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("[encoder]", "[other]"))
    (tmp_path / "run" / SUMS).unlink()
    with pytest.raises(CheckpointError, match=r"config\.toml: has no section \[encoder\]"):
        load_run(tmp_path / "run")
