"""Points in clusters: how many there are, which belongs to which, and a picture of them in two dimensions.

Letters: n points, D width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_CLUSTERS = 8
FEWEST = 10
"""Different points below which no split is tried: the silhouette of a few points says little."""
STARTS = 3
"""Of k-means, the best of which counts."""
NULLS = 19
"""Normal clouds that the best split is compared with: beating all of them has a chance of 1 in 20 without clusters."""
Array = NDArray[np.float64]


def split(vectors: Array, clusters: int | None, seed: int) -> NDArray[np.int64]:
    """The cluster of each point, (n,).

    clusters: None takes the number with the best silhouette, or one where no split is better than in a normal cloud.
    """
    if clusters is not None:
        return k_means(vectors, clusters, seed)
    one = np.zeros(len(vectors), np.int64)
    if len(np.unique(vectors, axis=0)) < FEWEST:
        return one
    tried = {k: k_means(vectors, k, seed) for k in range(2, MOST_CLUSTERS + 1)}
    scores = {k: mean_silhouette(vectors, numbers) for k, numbers in tried.items()}
    best = max(scores, key=lambda k: scores[k])
    return tried[best] if scores[best] > best_of_normal(vectors, best, seed) else one


def best_of_normal(vectors: Array, clusters: int, seed: int) -> float:
    """The best silhouette that k-means finds in clouds of the same covariance that have one centre (Liu et al. 2008).

    Any cloud that is longer than it is wide splits somewhere; only a better split is a sign of clusters.
    """
    deviations = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) / np.sqrt(len(vectors))
    rng = np.random.default_rng(seed)
    clouds = (rng.standard_normal((len(vectors), len(deviations))) * deviations for _ in range(NULLS))
    return max(mean_silhouette(cloud, k_means(cloud, clusters, seed)) for cloud in clouds)


def k_means(vectors: Array, clusters: int, seed: int) -> NDArray[np.int64]:
    from sklearn.cluster import KMeans  # a second to import, which `headstart.load` need not wait for

    found: NDArray[np.int64] = KMeans(clusters, n_init=STARTS, random_state=seed).fit_predict(vectors).astype(np.int64)
    return found


def flat(vectors: Array) -> tuple[Array, tuple[float, float]]:
    """The first two principal components, (n, 2), and the share of the variance of each."""
    centred = vectors - vectors.mean(axis=0)
    U, S, Vt = np.linalg.svd(centred, full_matrices=False)
    # The sign of a component is arbitrary: its largest weight is made positive.
    signs = np.sign(Vt[np.arange(len(Vt)), np.abs(Vt).argmax(axis=1)])
    points = np.zeros((len(vectors), 2))
    points[:, : len(S)] = (U * S * signs)[:, :2]
    shares = np.append(S**2 / max(float((S**2).sum()), float(np.finfo(np.float64).tiny)), 0.0)
    return points, (float(shares[0]), float(shares[1]))


def silhouette(vectors: Array, numbers: NDArray[np.int64]) -> float | None:
    """None where it is not defined: for one cluster, and where each point is its own."""
    clusters = int(numbers.max()) + 1
    return mean_silhouette(vectors, numbers) if 1 < clusters < len(vectors) else None


def mean_silhouette(vectors: Array, numbers: NDArray[np.int64]) -> float:
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(vectors, numbers))
