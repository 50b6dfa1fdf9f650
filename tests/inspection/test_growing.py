"""Files that grow and go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headstart.errors import CheckpointError
from headstart.inspection.growing import GrowingArray, GrowingTexts


@pytest.mark.parametrize("row_shape", [(), (3,), (2, 3)])
def test_an_array_that_grew_opens_as_numpys_own(row_shape: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def parts() -> Iterator[np.ndarray]:
        for n in (1, 0, 40, 100_000):
            yield rng.integers(0, 100, (n, *row_shape)).astype(np.float32)

    written = list(parts())
    array = GrowingArray(tmp_path / "a.npy", row_shape, np.float32)
    array.open(0)
    for part in written:
        array.add(part)
    array.complete()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.concatenate(written))
    assert array.read().shape == array.shape
    array.close()


def test_it_goes_on_after_the_rows_that_count(tmp_path: Path) -> None:
    for kept, added in ((0, 5), (3, 2), (4, 0)):
        array = GrowingArray(tmp_path / "a.npy", (2,), np.int64)
        array.open(kept)
        array.add(np.arange(kept, kept + added)[:, None].repeat(2, axis=1))
        array.complete()
        array.close()
        assert np.load(tmp_path / "a.npy").tolist() == [[row, row] for row in range(kept + added)]
    with pytest.raises(CheckpointError, match="has 192 bytes of the 208 that were written"):
        GrowingArray(tmp_path / "a.npy", (2,), np.int64).open(5)


def test_texts_are_a_value_on_each_line(tmp_path: Path) -> None:
    texts = GrowingTexts(tmp_path / "texts")
    texts.open(0)
    given = ["two\nlines", ["ein", "Ä\u2028"], ""]
    for text in given:
        texts.add(text)
    texts.flush()
    assert list(texts.read()) == given
    texts.close()


def test_rows_of_another_array_are_put_behind(tmp_path: Path) -> None:
    arrays = [GrowingArray(tmp_path / name, (2,), np.float32) for name in ("a.npy", "b.npy")]
    for number, array in enumerate(arrays):
        array.open(0)
        array.add(np.full((3, 2), number, np.float32))
        array.flush()
    arrays[0].append(arrays[1], 2)
    with pytest.raises(CheckpointError, match=r"b\.npy: has 152 bytes of the 160 that were written"):
        arrays[0].append(arrays[1], 4)
    arrays[0].close()
    arrays[0].open(5)
    arrays[0].complete()
    assert np.load(tmp_path / "a.npy")[:, 0].tolist() == [0, 0, 0, 1, 1]
    for array in arrays:
        array.close()
