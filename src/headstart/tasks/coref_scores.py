"""The scores of coreference chains, as the CoNLL reference scorer (v8.01) counts them, and LEA.

Each gives the numerator and denominator of recall and of precision for one document; those are summed over documents.
Key: the gold chains. Response: the predicted ones. Mentions match if their words are the same. Nothing is added to
either side: a mention that only one side has counts in the denominators. Singletons count if the chains hold them.

Repeated mentions: of the response, one that the key has stays only where it is first. In the key all of them stay, and
the last of its chains is the one to which a mention belongs. (The scorer refuses more than ten in the response.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from headstart.metrics import Counts, Metric
from headstart.tasks.coref_documents import Chain, Mention, without_repeats, without_singletons

Pairs = Counter[tuple[int, int]]
"""How many mentions a chain of the key and one of the response have in common, where there are any."""


class RecallPrecision(NamedTuple):
    """Numerators and denominators: recall is recalled / gold, precision is precise / predicted."""

    recalled: float
    gold: float
    precise: float
    predicted: float

    @property
    def recall(self) -> float:
        return self.recalled / self.gold if self.gold else 0.0

    @property
    def precision(self) -> float:
        return self.precise / self.predicted if self.predicted else 0.0

    @property
    def f1(self) -> float:
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0


@dataclass(frozen=True, slots=True)
class Alignment:
    """The chains of both sides, and the mentions that each two of them share.

    Without repeated mentions in the key, the three counts are the same. belonging: mentions of the response that belong
    to the key's chain; of_response: those that it has; of_key: entries of the key's chain that the response's has.
    """

    key: tuple[Chain, ...]
    response: tuple[Chain, ...]
    belonging: Pairs
    of_response: Pairs
    of_key: Pairs


def aligned(key: Iterable[Chain], response: Iterable[Chain]) -> Alignment:
    key = tuple(key)
    chain_of = {mention: k for k, chain in enumerate(key) for mention in chain}
    response = without_repeats(response, chain_of)
    place = {mention: r for r, chain in enumerate(response) for mention in chain}
    belonging = Counter((chain_of[mention], r) for mention, r in place.items() if mention in chain_of)
    of_key = Counter((k, place[mention]) for k, chain in enumerate(key) for mention in chain if mention in place)
    distinct = ((k, mention) for k, chain in enumerate(key) for mention in set(chain))
    of_response = Counter((k, place[mention]) for k, mention in distinct if mention in place)
    return Alignment(key, response, belonging, of_response, of_key)


def muc(sides: Alignment) -> RecallPrecision:
    """Links (Vilain et al. 1995): a chain of n mentions has n - 1."""
    right = sum(count - 1 for count in sides.belonging.values())
    return RecallPrecision(right, links(sides.key), right, links(sides.response))


def links(chains: Sequence[Chain]) -> int:
    return sum(len(chain) - 1 for chain in chains)


def b_cubed(sides: Alignment) -> RecallPrecision:
    """Mentions (Bagga and Baldwin 1998): of each, how much of its chain the other side's chain holds."""
    shared = {(k, r): count * sides.of_response[k, r] for (k, r), count in sides.belonging.items()}
    recalled = sum(count / len(sides.key[k]) for (k, _), count in shared.items())
    precise = sum(count / len(sides.response[r]) for (_, r), count in shared.items())
    return RecallPrecision(recalled, entries(sides.key), precise, entries(sides.response))


def entries(chains: Sequence[Chain]) -> int:
    return sum(map(len, chains))


def ceaf_e(sides: Alignment) -> RecallPrecision:
    """Entities (Luo 2005): the similarity 2 |K and R| / (|K| + |R|) of chains, summed over their best matching."""
    similarity = {(k, r): 2 * n / (len(sides.key[k]) + len(sides.response[r])) for (k, r), n in sides.of_key.items()}
    best = best_matching(similarity)
    return RecallPrecision(best, len(sides.key), best, len(sides.response))


def best_matching(similarity: dict[tuple[int, int], float]) -> float:
    """The largest sum over pairs of which no two share a row or a column.

    Each group of chains that are connected is matched by itself, as the time grows with the cube of their number.
    """
    if not similarity:
        return 0.0
    pairs = np.array(list(similarity), dtype=np.int64)
    rows, columns = (np.unique(side, return_inverse=True)[1] for side in pairs.T)
    n, m = int(rows.max()) + 1, int(columns.max()) + 1
    graph = coo_array((np.ones(len(pairs)), (rows, columns + n)), shape=(n + m, n + m))
    _, group = connected_components(graph, directed=False)
    values = np.array(list(similarity.values()))
    return float(sum(best_in_group(rows[here], columns[here], values[here]) for here in members(group[rows])))


def members(groups: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """The places of each group."""
    order = np.argsort(groups, kind="stable")
    return list(np.split(order, np.flatnonzero(np.diff(groups[order])) + 1))


def best_in_group(rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    names, rows = np.unique(rows, return_inverse=True)
    others, columns = np.unique(columns, return_inverse=True)
    matrix = np.zeros((len(names), len(others)))
    matrix[rows, columns] = values
    return float(matrix[linear_sum_assignment(matrix, maximize=True)].sum())


def lea(sides: Alignment) -> RecallPrecision:
    """Entities by their links (Moosavi and Strube 2016): |K| times the share of K's links that are in one chain.

    A chain of n mentions has n (n - 1) / 2 links; a singleton has one, to itself.
    """
    recalled = resolved(sides.key, sides.response, sides.of_key)
    turned = Counter({(r, k): count for (k, r), count in sides.belonging.items()})
    precise = resolved(sides.response, sides.key, turned)
    return RecallPrecision(recalled, entries(sides.key), precise, entries(sides.response))


def resolved(chains: Sequence[Chain], others: Sequence[Chain], shared: Pairs) -> float:
    found = 0.0
    for (own, other), count in shared.items():
        size = len(chains[own])
        if size == 1:
            found += len(others[other]) == 1
        else:
            found += size * (count * (count - 1)) / (size * (size - 1))
    return found


def mentions(sides: Alignment) -> RecallPrecision:
    """Mentions alone, each once, in whichever chain."""
    key, response = set(all_mentions(sides.key)), set(all_mentions(sides.response))
    right = len(key & response)
    return RecallPrecision(right, len(key), right, len(response))


def all_mentions(chains: Iterable[Chain]) -> list[Mention]:
    return [mention for chain in chains for mention in chain]


# --- metrics ----------------------------------------------------------------------------------------------------------

PARTS = {"muc": muc, "b_cubed": b_cubed, "ceaf_e": ceaf_e}
"""Those whose mean is the CoNLL F1."""
TITLES = {"muc": "MUC F1", "b_cubed": "B-cubed F1", "ceaf_e": "CEAF-e F1", "lea": "LEA F1", "mentions": "mention F1"}
FIELDS = len(RecallPrecision._fields)


def f1_of_shares(counts: Counts) -> NDArray[np.float64]:
    """F1 of summed counts (..., 4), and 0 where recall and precision are."""
    recall, precision = (ratio(counts[..., n], counts[..., n + 1]) for n in (0, 2))
    return ratio(2 * recall * precision, recall + precision)


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def mean_f1(counts: Counts) -> NDArray[np.float64]:
    """The mean of the parts' F1. counts: (..., 12)."""
    parts = counts.reshape(*counts.shape[:-1], len(PARTS), FIELDS)
    found: NDArray[np.float64] = f1_of_shares(parts).mean(axis=-1)
    return found


CONLL_F1 = Metric(
    "conll_f1", "CoNLL F1", tuple(f"{part}_{name}" for part in PARTS for name in RecallPrecision._fields), mean_f1
)
MENTION_F1 = Metric("mention_f1", "mention F1", RecallPrecision._fields, f1_of_shares)
LEA_F1 = Metric("lea_f1", "LEA F1", RecallPrecision._fields, f1_of_shares)


def conll_counts(key: Iterable[Chain], response: Iterable[Chain]) -> tuple[float, ...]:
    """What CONLL_F1 counts of one document, (12,)."""
    sides = aligned(key, response)
    return tuple(number for part in PARTS.values() for number in part(sides))


def summed_scores(
    keys: Sequence[Sequence[Chain]], responses: Sequence[Sequence[Chain]], singletons: bool = True
) -> dict[str, RecallPrecision]:
    """The scores of some documents by the names of TITLES. singletons: False drops chains of one mention from both."""
    scorers = {**PARTS, "lea": lea, "mentions": mentions}
    totals = {name: np.zeros(FIELDS) for name in scorers}
    for key, response in zip(keys, responses, strict=True):
        if not singletons:
            key, response = without_singletons(key), without_singletons(response)
        sides = aligned(key, response)
        for name, scorer in scorers.items():
            totals[name] += scorer(sides)
    return {name: RecallPrecision(*map(float, total)) for name, total in totals.items()}
