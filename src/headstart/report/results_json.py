"""results.json of a transfer and of a comparison, and the files of its cells: to JSON and back.

Files of the version before are read as well: it knew accuracy and macro-F1 only, and its cells held the predicted
classes in place of counts and answers. Its keys are still written. Keys that a later version adds are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.report.results import (
    Advice,
    Baseline,
    Cell,
    Comparison,
    DataFacts,
    Forgetting,
    LabelsSaved,
    LayerWeights,
    Mixes,
    RowFacts,
    Run,
    ShownAnswer,
    ShownExample,
    TableEntry,
    TransferResults,
)
from headstart.tasks.shown import Segment, ShownText

PlainT = TypeVar("PlainT")
OLD_METRIC = "accuracy"
OLD_SCORES = ("accuracy", "macro_f1")
BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What reading a file raises that is not JSON, or JSON of another shape."""


def transfer_to_json(results: TransferResults) -> Table:
    return {
        **{one.name: getattr(results, one.name) for one in fields(results)},
        **results.means,
        "mean": results.mean,
        "means": results.means,
        "spread": results.spread,
        "scores": results.scores,
        "mix": {place: asdict(mix) for place, mix in results.mix.items()},
        "forgetting": None if results.forgetting is None else asdict(results.forgetting),
        "baseline": baseline_to_json(results.baseline),
        "runs": [{"seed": run.seed, **run.scores, **asdict(run)} for run in results.runs],
    }


def transfer_from_json(table: Table) -> TransferResults:
    metric = table.get("metric", OLD_METRIC)
    changed = {
        "metric": metric,
        "runs": [run_from_json(run) for run in table["runs"]],
        "forgetting": forgetting_from_json(table),
        "baseline": baseline_from_json(table),
    }
    return from_known_keys(TransferResults, {"metric_title": metric, **table, **changed})


def run_from_json(table: Table) -> Run:
    changed = {"mix": mixes_from_json(table["mix"]), "curve": curve_from_json(table)}
    return from_known_keys(Run, {**table, **named_scores(table), **changed})


def cell_to_json(cell: Cell) -> Table:
    """The cell's own file; without counts and answers where it has none."""
    facts = asdict(cell.without_answers())
    first = {key: facts.pop(key) for key in ("row", "labels", "seed")}
    del facts["counts"], facts["answers"]
    kept = {"counts": cell.counts.tolist(), "answers": cell.answers} if len(cell.counts) else {}
    return {**first, **cell.scores, **facts, **kept}


def cell_from_json(table: Table, gold: Table | None = None) -> Cell:
    """gold: the contents of gold.json, for cells of the version before."""
    answered: Table = {}
    if "counts" in table:
        answered = {"counts": np.array(table["counts"], dtype=np.float64), "answers": table["answers"]}
    elif "predicted" in table and gold is not None:
        answered = classified(table["predicted"], table["probabilities"], gold["gold"], gold["names"])
    changed = {
        "mix": mixes_from_json(table["mix"]),
        "forgetting": forgetting_from_json(table),
        "curve": curve_from_json(table),
    }
    return from_known_keys(Cell, {**table, **named_scores(table), **changed, **answered})


def read_cell(text: str, gold: Table | None = None) -> Cell | None:
    """A cell's file; None if it is not whole, so that the cell is fitted again."""
    try:
        return cell_from_json(json.loads(text), gold)
    except BROKEN:
        return None


def comparison_to_json(results: Comparison) -> Table:
    return {
        **{one.name: getattr(results, one.name) for one in fields(results)},
        "train": asdict(results.train),
        "dev": asdict(results.dev),
        "rows": [asdict(row) for row in results.rows],
        "cells": [cell_to_json(cell.without_answers()) for cell in results.cells],
        "table": [{**entry.means, **asdict(entry)} for entry in results.table],
        "labels_saved": [asdict(saved) for saved in results.labels_saved],
        "advice": asdict(results.advice) if results.advice else {},
        "baseline": baseline_to_json(results.baseline),
        "examples": [asdict(example) for example in results.examples],
    }


def comparison_from_json(table: Table) -> Comparison:
    return Comparison(
        **{key: table[key] for key in ("task", "headstart", "labels", "seeds", "metric", "notices")},
        task_title=str(table.get("task_title", table["task"])),
        metric_title=str(table.get("metric_title", table["metric"])),
        train=from_known_keys(DataFacts, table["train"]),
        dev=from_known_keys(DataFacts, table["dev"]),
        rows=[from_known_keys(RowFacts, row) for row in table["rows"]],
        cells=[cell_from_json(cell) for cell in table["cells"]],
        table=[entry_from_json(entry) for entry in table["table"]],
        labels_saved=[from_known_keys(LabelsSaved, saved) for saved in table["labels_saved"]],
        advice=from_known_keys(Advice, table["advice"]) if table["advice"] else None,
        baseline=baseline_from_json(table),
        examples=[example_from_json(example) for example in table.get("examples", [])],
    )


def read_comparison(path: Path) -> Comparison:
    """results.json of a comparison."""
    try:
        return comparison_from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error
    except BROKEN as error:
        raise CheckpointError(
            f"{path}: is not the results.json of a comparison ({error!r}). Run `headstart compare` again to write it."
        ) from error


def entry_from_json(table: Table) -> TableEntry:
    old = {OLD_METRIC: table["mean"], **{name: table[name] for name in OLD_SCORES if name in table}}
    return from_known_keys(TableEntry, {"means": old, **table})


def example_from_json(table: Table) -> ShownExample:
    texts = [ShownText(text["title"], segments_from_json(text)) for text in table["texts"]]
    answers = [
        from_known_keys(ShownAnswer, {**answer, "segments": segments_from_json(answer)}) for answer in table["answers"]
    ]
    return from_known_keys(ShownExample, {**table, "texts": texts, "answers": answers})


def segments_from_json(table: Table) -> list[Segment]:
    return [from_known_keys(Segment, segment) for segment in table["segments"]]


def baseline_to_json(baseline: Baseline | None) -> Table | None:
    return None if baseline is None else {"title": baseline.title, "score": baseline.score}


def baseline_from_json(table: Table) -> Baseline | None:
    found = table.get("baseline")
    return None if found is None else from_known_keys(Baseline, found)


def forgetting_from_json(table: Table) -> Forgetting | None:
    found = table.get("forgetting")
    return None if found is None else from_known_keys(Forgetting, found)


def mixes_from_json(table: Table) -> Mixes:
    return {place: from_known_keys(LayerWeights, mix) for place, mix in table.items()}


def curve_from_json(table: Table) -> list[tuple[int, float]]:
    return [(step, score) for step, score in table.get("curve", [])]


def named_scores(table: Table) -> Table:
    """ "metric" and "scores" of a run, from before there were such keys too."""
    if "metric" in table:
        return {"metric": table["metric"], "scores": table["scores"]}
    return {"metric": OLD_METRIC, "scores": {name: table[name] for name in OLD_SCORES}}


def classified(
    predicted: Sequence[int], probabilities: Sequence[Sequence[float]], gold: Sequence[int | str], names: Sequence[str]
) -> Table:
    """Counts of accuracy and answers of a classifier, as fields of a cell; classes are given by number."""
    right = [names[a] == (b if isinstance(b, str) else names[b]) for a, b in zip(predicted, gold, strict=True)]
    answers = [
        {"label": names[label], "probabilities": dict(zip(names, row, strict=True))}
        for label, row in zip(predicted, probabilities, strict=True)
    ]
    return {"counts": np.array([(float(one), 1.0) for one in right]).reshape(-1, 2), "answers": answers}


def from_known_keys(cls: type[PlainT], table: Table) -> PlainT:
    """A dataclass of plain values from the keys that it knows."""
    names = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    return cls(**{key: value for key, value in table.items() if key in names})
