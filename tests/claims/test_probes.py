from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart.claims.data import TaskFiles
from headstart.claims.probes import PROBED, TaskProbes, findings_of, halves_compared, picture_of, read_probed, table_of
from headstart.inspection.probe_results import LayerProbe, Probed

SENTENCES = 50


def layer(number: int, right: int, control: float | None = 0.25) -> LayerProbe:
    """So many right of the ten words of every dev sentence."""
    share = right / 10
    return LayerProbe(number, share, (share, share), control, (right,) * SENTENCES, (10,) * SENTENCES)


def probed(*right: int, control: float | None = 0.25) -> Probed:
    layers = tuple(layer(number, count, control) for number, count in enumerate(right))
    return Probed("toy", "words", 900, 500, 4, 0, 0.5, layers)


def task(name: str) -> TaskFiles:
    return TaskFiles(name, "parts of speech", "tag", Path(), Path())  # type: ignore[arg-type]


def test_halves_are_those_above_layer_0_without_the_middle() -> None:
    """Layers 1 and 2 have 8 and 9 of ten, 4 and 5 have 6 and 7: two more, whatever 0 and 3 have."""
    counts = [one.counts for one in probed(0, 8, 9, 1, 6, 7).layers]
    (lower,) = halves_compared(counts, "lower", "lower above upper")
    (upper,) = halves_compared(counts, "upper", "upper above lower")
    assert lower.difference is not None
    assert upper.difference is not None
    assert lower.difference.value == pytest.approx(0.2)
    assert upper.difference.value == pytest.approx(-0.2)
    assert (lower.verdict, upper.verdict) == ("holds", "fails")


@pytest.mark.parametrize("layers", [1, 2])
def test_without_two_layers_above_layer_0_nothing_is_compared(layers: int) -> None:
    assert halves_compared([np.ones((3, 2))] * layers, "lower", "") == []


def test_layers_that_know_the_same_leave_it_undecided() -> None:
    (finding,) = halves_compared([one.counts for one in probed(5, 7, 7).layers], "lower", "")
    assert finding.verdict == "undecided"


@pytest.mark.parametrize(("name", "verdicts"), [("pos", ["holds"]), ("sentiment", ["fails"]), ("ner", [])])
def test_the_claim_is_of_parts_of_speech_below_and_sentiment_above(name: str, verdicts: list[str]) -> None:
    found = findings_of(TaskProbes(task(name), [probed(1, 9, 5), probed(8)]))
    assert [finding.verdict for finding in found] == verdicts


def test_a_row_for_each_layer_and_no_control_where_there_is_none() -> None:
    with_control = table_of(TaskProbes(task("pos"), [probed(8), probed(1, 9, 5)]))
    assert [row[:2] for row in with_control.rows] == [["toy", "0"], ["toy", "0"], ["toy", "1"], ["toy", "2"]]
    assert [str(cell) for cell in with_control.rows[2][2:]] == ["90.0 (90.0 to 90.0)", "25.0", "+65.0"]
    assert table_of(TaskProbes(task("pos"), [probed(8, control=None)])).columns == ["", "layer", "accuracy"]


def test_one_layer_is_drawn_as_a_flat_line() -> None:
    picture = picture_of(TaskProbes(task("pos"), [probed(8), probed(1, 9, 5)]), "probes")
    assert picture.name == "probes-pos"
    assert picture.svg.startswith("<svg")
    assert "baseline" in picture.svg


def test_probes_are_kept_and_a_broken_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    assert read_probed(path) is None
    path.write_bytes(PROBED.dump_json(probed(1, 9, 5)))
    assert read_probed(path) == probed(1, 9, 5)
    path.write_bytes(path.read_bytes()[:-9])
    assert read_probed(path) is None
