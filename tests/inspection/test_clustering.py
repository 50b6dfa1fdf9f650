"""Clusters are found where they are, and none where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from headstart.inspection.clustering import flat, silhouette, split
from headstart.inspection.neighbours import unit


def blobs(centres: list[list[float]], each: int, spread: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return unit(np.concatenate([np.array(c) + spread * rng.standard_normal((each, len(c))) for c in centres]))


def test_as_many_clusters_as_there_are() -> None:
    corners = [[3.0, 0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0, 0], [0, 0, 3.0, 0, 0, 0]]
    for n in (2, 3):
        numbers = split(blobs(corners[:n], 30, 0.3), None, seed=0)
        assert [len(set(numbers[i * 30 : i * 30 + 30].tolist())) for i in range(n)] == [1] * n
        assert len(set(numbers.tolist())) == n


@pytest.mark.parametrize("seed", range(3))
def test_one_cluster_where_no_split_is_better_than_chance(seed: int) -> None:
    shape = np.array([1.0, 0.5, 0.3, 0.2, 0.1, 0.1])
    cloud = np.random.default_rng(seed).standard_normal((60, 6)) * shape
    assert split(cloud, None, seed).tolist() == [0] * 60
    assert len(set(split(cloud, 3, seed).tolist())) == 3  # as many as were asked for


def test_few_or_equal_occurrences_are_one_cluster() -> None:
    assert split(blobs([[9.0, 0], [0, 9.0]], 4, 0.01), None, 0).tolist() == [0] * 8
    assert split(np.ones((30, 3)), None, 0).tolist() == [0] * 30


def test_the_picture_keeps_what_varies_most() -> None:
    points, shares = flat(np.array([[0.0, 0, 0], [4, 0, 0], [2, 1, 0], [2, -1, 0]]))
    np.testing.assert_allclose(points, [[-2, 0], [2, 0], [0, 1], [0, -1]], atol=1e-12)
    assert shares == pytest.approx((0.8, 0.2))
    assert flat(np.ones((1, 3)))[0].tolist() == [[0.0, 0.0]]


def test_the_silhouette_of_a_split_by_hand() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    # (b - a) / b: 9.5 / 10.5 at the ends and 8.5 / 9.5 within
    assert silhouette(points, np.array([0, 0, 1, 1])) == pytest.approx((9.5 / 10.5 + 8.5 / 9.5) / 2)
    assert silhouette(points, np.array([0, 0, 0, 0])) is None
    assert silhouette(points, np.array([0, 1, 2, 3])) is None
