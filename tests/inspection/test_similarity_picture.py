from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart.inspection.similarity import LayerSimilarity, Similarity
from headstart.inspection.similarity_picture import by_layer, by_pair, write_similarity

GOLD = np.array([1.0, 2.0, 4.0])


def result(layers: int) -> Similarity:
    found = tuple(LayerSimilarity(k, 0.5 + 0.1 * k, (0.4 + 0.1 * k, 0.7 + 0.1 * k)) for k in range(layers))
    return Similarity("elmo", "words", 3, 3, 0, found, GOLD, np.tile([0.1, 0.3, 0.2], (layers, 1)))


def test_several_layers_are_a_line_with_its_band() -> None:
    (axes,) = by_layer(result(3)).axes
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0.0, 0.5], [1.0, 0.6], [2.0, 0.7]]
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.4, 0.9))


def test_a_single_layer_is_a_point_for_each_pair() -> None:
    (axes,) = by_pair(result(1)).axes
    (points,) = axes.collections
    assert np.asarray(points.get_offsets()).tolist() == [[1.0, 0.1], [2.0, 0.3], [4.0, 0.2]]


def test_written_by_the_ending_of_the_name(tmp_path: Path) -> None:
    for layers, name in ((1, "a.svg"), (3, "b.svg"), (3, "c.png")):
        write_similarity(result(layers), tmp_path / name)
    assert "cosine" in (tmp_path / "a.svg").read_text()
    assert "3 pairs of words" in (tmp_path / "b.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
