"""How sure a score is, which difference is more than chance, and how many labels a head start is worth.

Letters: S seeds, N dev examples, U distinct columns of an (S, N) array, R rounds of the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics import mean
from headstart.report.wording import CHANCE, percent

ROUNDS = 2000
LARGEST_BLOCK = 2_000_000  # numbers drawn at once, 32 MB; many seeds and examples would need gigabytes
Row = Mapping[str, Any]
Correct = Mapping[tuple[str, int, int], NDArray[np.bool_]]


def interval(correct: NDArray[np.bool_], seed: int = 0, rounds: int = ROUNDS) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean of `correct` (S, N), resampling both seeds and dev examples."""
    low, high = np.quantile(resampled_means(correct.astype(np.int8), seed, rounds), [0.025, 0.975])
    return float(low), float(high)


def paired(
    correct_a: NDArray[np.bool_], correct_b: NDArray[np.bool_], seed: int = 0, rounds: int = ROUNDS
) -> tuple[float, float]:
    """The difference of the means (b - a) and its two-sided p, from the same resampled seeds and examples in both.

    Never 0: what was observed counts as one more round. Swapping a and b changes the sign and nothing else.
    """
    if correct_a.shape != correct_b.shape:
        raise ValueError(f"both must have the same seeds and examples; got {correct_a.shape} and {correct_b.shape}")
    gain = correct_b.astype(np.int8) - correct_a.astype(np.int8)
    difference = float(gain.mean())
    if difference == 0.0:
        return 0.0, 1.0
    upwards = gain if difference > 0 else -gain
    against = int((resampled_means(upwards, seed, rounds) <= 0.0).sum())
    return difference, min(1.0, 2 * (against + 1) / (rounds + 1))


def resampled_means(values: NDArray[np.int8], seed: int, rounds: int) -> NDArray[np.float64]:
    """The mean of `values` (S, N) under `rounds` draws of S seeds and N examples with replacement: (R,).

    Examples with equal columns cannot be told apart, so drawing how often each distinct column occurs gives the
    same distribution; there are far fewer of those than examples.
    """
    rng = np.random.default_rng(seed)
    S, N = values.shape
    columns, counts = np.unique(values, axis=1, return_counts=True)  # (S, U), (U,)
    totals: NDArray[np.float64] = np.empty(rounds)
    block = max(1, LARGEST_BLOCK // len(counts))
    for start in range(0, rounds, block):
        size = min(block, rounds - start)
        of_examples = rng.multinomial(N, counts / N, size=size).astype(np.float64)  # (size, U)
        of_seeds = rng.multinomial(S, np.full(S, 1 / S), size=size)  # (size, S)
        totals[start : start + size] = ((of_examples @ columns.T) * of_seeds).sum(axis=1)
    totals /= N * S  # whole numbers until here, so that no gain at all is exactly 0
    return totals


def labels_needed(curve: list[tuple[int, float]], score: float) -> float | None:
    """The labels at which a learning curve [(labels, score)] reaches `score`; None when it never does.

    The curve never falls (running maximum) and is interpolated in log(labels). Where its first point is there
    already, that point's count: what fewer labels would do is not known.
    """
    best, last = -math.inf, 0
    for labels, reached in sorted(curve):
        if reached >= score:
            if last == 0 or reached == score:
                return float(labels)
            share = (score - best) / (reached - best)
            return math.exp(math.log(last) + share * (math.log(labels) - math.log(last)))
        best, last = max(best, reached), labels
    return None


def summarise(
    rows: Sequence[Row],
    cells: Sequence[Row],
    correct: Correct,
    labels: Sequence[int],
    seeds: Sequence[int],
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """The "table", "labels_saved" and "advice" of results.json. Cells may be missing: a comparison under way.

    rows: in the order of the generations. correct: {(row, labels, seed): (N,)}, one entry for each cell.
    """
    by_key = {(cell["row"], cell["labels"], cell["seed"]): cell for cell in cells}
    table: list[dict[str, Any]] = []
    for place, row in enumerate(rows):
        before = rows[place - 1]["name"] if place else None
        for count in labels:
            done = [by_key[key] for seed in seeds if (key := (row["name"], count, seed)) in by_key]
            if done:
                table.append(table_entry(done, before, correct, rounds))
    return {
        "table": table,
        "labels_saved": labels_saved(rows, table),
        "advice": advice(rows, table, correct, seeds, rounds),
    }


def table_entry(done: Sequence[Row], before: str | None, correct: Correct, rounds: int) -> dict[str, Any]:
    """One row at one number of labels, over the seeds that are done."""
    name, count = done[0]["row"], done[0]["labels"]
    scores = [float(cell["accuracy"]) for cell in done]
    low, high = interval(np.stack([correct[name, count, cell["seed"]] for cell in done]), rounds=rounds)
    against = compared(correct, before, name, count, [cell["seed"] for cell in done], rounds) if before else None
    return {
        "row": name,
        "labels": count,
        "mean": mean(scores),
        "low": low,
        "high": high,
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        "scores": scores,
        "macro_f1": mean([cell["macro_f1"] for cell in done]),
        "seconds": mean([cell["seconds"] for cell in done]),
        "difference": against[0] if against else None,
        "p": against[1] if against else None,
        "collapsed": sum(bool(cell["collapsed"]) for cell in done),
    }


def compared(
    correct: Correct, row_a: str, row_b: str, labels: int, seeds: Sequence[int], rounds: int
) -> tuple[float, float] | None:
    """`paired` over the seeds that both rows have; None when there is none."""
    both = [seed for seed in seeds if (row_a, labels, seed) in correct and (row_b, labels, seed) in correct]
    if not both:
        return None
    a, b = (np.stack([correct[row, labels, seed] for seed in both]) for row in (row_a, row_b))
    return paired(a, b, rounds=rounds)


def labels_saved(rows: Sequence[Row], table: Sequence[Row]) -> list[dict[str, Any]]:
    """For each entry of the table: how many labels scratch needs for the same score."""
    scratch = next((row["name"] for row in rows if row["kind"] == "scratch"), None)
    curve = [(entry["labels"], entry["mean"]) for entry in table if entry["row"] == scratch]
    titles = {row["name"]: row["title"] for row in rows}
    tried = {labels for labels, _ in curve}
    saved = []
    for entry in table:
        if entry["row"] == scratch or entry["labels"] not in tried:
            continue
        needed = labels_needed(curve, entry["mean"])
        begins = f"{titles[entry['row']]} with {entry['labels']:,} labels"
        if needed is None:
            sentence = f"{begins} does more than scratch does with {max(tried):,} (the most tried)."
        elif needed <= entry["labels"]:
            sentence = f"{begins} is no better than scratch with {entry['labels']:,}."
        else:
            sentence = f"{begins} does what scratch does with {round(needed):,}."
        equals = None if needed is None else round(needed)
        saved.append({"row": entry["row"], "labels": entry["labels"], "equals": equals, "sentence": sentence})
    return saved


def advice(
    rows: Sequence[Row], table: Sequence[Row], correct: Correct, seeds: Sequence[int], rounds: int
) -> dict[str, str]:
    """What to deploy: the best mean at the most labels, and a simpler row if it is as good. {} for an empty table."""
    if not table:
        return {}
    most = max(entry["labels"] for entry in table)
    last = {entry["row"]: entry for entry in table if entry["labels"] == most}
    best = max(last.values(), key=lambda entry: entry["mean"])  # the earlier row of equals
    name = best["row"]
    sentence = (
        f"Deploy models/{name}: {percent(best['mean'])} ({100 * best['low']:.1f} to {percent(best['high'])}) "
        f"with {most:,} labels."
    )
    order = [row["name"] for row in rows if row["name"] in last]
    for other in order:
        earlier, faster = order.index(other) < order.index(name), last[other]["seconds"] < best["seconds"]
        if other == name or not (earlier or faster):
            continue
        against = compared(correct, other, name, most, seeds, rounds)
        if against and against[1] > CHANCE:
            why = "trains faster" if faster else "is simpler"
            sentence += f" models/{other} is not worse by more than chance and {why}."
            break
    if len(best["scores"]) == 1:
        sentence += " One seed only: no spread known."
    return {"row": name, "run": f"models/{name}", "sentence": sentence}
