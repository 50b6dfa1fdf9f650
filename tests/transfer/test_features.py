"""Frozen features: equal to what the encoder gives, computed once, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headstart
from headstart.batches.rows import AnyText, Joined
from headstart.errors import DataError
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.text.building import SEAL
from headstart.text.characters import character_table
from headstart.transfer import features
from headstart.transfer.features import encoder_fingerprint, gather, texts_digest

TEXTS = ["The cat likes the film .", "Nobody", "A dog watches old songs and the old actor hates a long play ."]


def entries(cache: Path) -> list[Path]:
    return list((cache / "features").iterdir())


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
def test_cached_features_equal_uncached_ones(kind: str, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    pretrained = headstart.load(pretrained_runs[kind])
    expected = pretrained.represent(TEXTS)
    for _ in range(2):
        table = result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path))
        assert len(entries(tmp_path)) == 1
        R = table.batch([[table.rows[text]] for text in TEXTS])
        for row, vectors in enumerate(expected):
            n = vectors.shape[1]
            assert R.mask[row].tolist() == [True] * n + [False] * (R.mask.shape[1] - n)
            # Batches of another shape may round differently in the last bit.
            np.testing.assert_allclose(R.layers[:, row, :n].numpy(), vectors, atol=1e-6)


def test_a_second_reading_does_no_encoder_work(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrained = headstart.load(pretrained_runs["elmo"])
    result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path))

    def never(*arguments: Any) -> None:
        raise AssertionError("the encoder ran again")

    monkeypatch.setattr(Pretrained, "encode_rows", never)
    result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path))


@pytest.mark.parametrize("change", ["encoder", "texts", "longest", "first"])
def test_another_encoder_text_or_option_is_another_entry(
    change: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    options: dict[str, Any] = {"longest": 64, "with_first": False}
    result_of(gather(pretrained, TEXTS, cache=tmp_path, **options))
    texts = TEXTS
    if change == "encoder":
        with torch.no_grad():
            next(pretrained.encoder.parameters())[0, 0] += 1
    elif change == "texts":
        texts = TEXTS[:2]
    elif change == "longest":
        options["longest"] = 5
    else:
        options["with_first"] = True
    result_of(gather(pretrained, texts, cache=tmp_path, **options))
    assert len(entries(tmp_path)) == 2


def test_vectors_that_were_given_ready_are_another_entry(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    pretrained = headstart.load(pretrained_runs["elmo"])
    before = encoder_fingerprint(pretrained.encoder)
    ready = torch.ones(1, pretrained.encoder.config.projection)
    pretrained.encoder.tokens.remember(torch.from_numpy(character_table(["Nobody"])), ready)
    given = encoder_fingerprint(pretrained.encoder)
    pretrained.encoder.tokens.remember(torch.from_numpy(character_table(["Nobody"])), 2 * ready)
    assert len({before, given, encoder_fingerprint(pretrained.encoder)}) == 3
    pretrained.encoder.drop_given_vectors()
    assert encoder_fingerprint(pretrained.encoder) == before


def test_texts_that_differ_never_share_an_entry() -> None:
    texts: list[AnyText] = [
        *["", "a", "ab", "a b", "\0a", "\0a\0b", "\1a\1b", "a?", "a\ud800", "a\ufffd"],
        *[(), ("",), ("a",), ("ab",), ("a b",), ("a", "b"), ("a\0b",), ("a", "b", ""), ("", "a", "b")],
        *[Joined("a", "b"), Joined("ab", ""), Joined("", "ab"), Joined("a\1b", ""), Joined("a", "\1b")],
        *[Joined(("a",), "b"), Joined("a", ("b",)), Joined(("a", "b"), "")],
    ]
    lists: list[list[AnyText]] = [*([text] for text in texts), [], ["a", "b"], ["", "ab"], [("a",), ("b",)]]
    assert len({texts_digest(some) for some in lists}) == len(lists)


def test_large_tables_are_halved(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrained = headstart.load(pretrained_runs["static"])
    exact = result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path / "exact"))
    monkeypatch.setattr(features, "LARGEST_EXACT", 10)
    halved = result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path / "halved"))
    assert (exact.layers.dtype, halved.layers.dtype) == (np.float32, np.float16)
    np.testing.assert_allclose(halved.layers.astype(np.float32), exact.layers, rtol=1e-3, atol=1e-6)


def test_no_room_on_the_disk_is_one_sentence_and_leaves_nothing(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(features.os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"do not fit .No space left on device.. Set HEADSTART_HOME"):
        result_of(gather(headstart.load(pretrained_runs["static"]), TEXTS, longest=64, cache=tmp_path))
    assert list((tmp_path / "features").iterdir()) == []


def test_broken_entries_are_made_anew(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    pretrained = headstart.load(pretrained_runs["static"])
    before = np.array(result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path)).layers)
    entry = next((tmp_path / "features").iterdir())
    (entry / "layers.bin").write_bytes(b"cut")
    np.testing.assert_array_equal(result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path)).layers, before)


def test_broken_entries_of_a_version_without_checksums_are_named(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pretrained = headstart.load(pretrained_runs["static"])
    result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path))
    entry = next((tmp_path / "features").iterdir())
    (entry / SEAL).unlink()
    (entry / "layers.bin").write_bytes(b"cut")
    with pytest.raises(DataError, match=r"cached features are broken .* Remove this folder"):
        result_of(gather(pretrained, TEXTS, longest=64, cache=tmp_path))


def test_means_are_those_of_the_words_and_a_text_without_words_has_none(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    table = result_of(gather(pretrained, [*TEXTS, ""], longest=64, cache=tmp_path))
    R = table.means([table.rows[text] for text in [*TEXTS, ""]])
    assert R.mask[:, 0].tolist() == [True, True, True, False]
    for row, vectors in enumerate(pretrained.represent(TEXTS)):
        np.testing.assert_allclose(R.layers[:, row, 0].numpy(), vectors.mean(1), atol=1e-5)
    assert not R.layers[:, 3].any()


def test_no_texts_are_an_empty_batch(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    table = result_of(gather(headstart.load(pretrained_runs["static"]), TEXTS, longest=64, cache=tmp_path))
    K, D = table.shape
    for R in (table.batch([]), table.means([])):
        assert R.layers.shape == (K, 0, 1, D)
        assert R.mask.shape == (0, 1)
