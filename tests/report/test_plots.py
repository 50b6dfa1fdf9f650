from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from xml.etree import ElementTree

import pytest

from headstart.report import plots
from headstart.report.plots import mix_groups
from headstart.report.results import Comparison, Forgetting, LayerWeights


def draw_mixes(results: Comparison) -> str | None:
    return plots.mix_weights(mix_groups(results))


PICTURES = [plots.learning_curve, draw_mixes, plots.times, plots.forgetting]


def words_of(svg: str | None) -> str:
    assert svg is not None
    return " ".join(node.text or "" for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text"))


@pytest.fixture(scope="module")
def drawn(finished: Comparison) -> list[str]:
    return [draw(finished) or "" for draw in PICTURES]


def test_pictures_are_xml(drawn: list[str]) -> None:
    for svg in drawn:
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"


def test_pictures_repeat_themselves(drawn: list[str], finished: Comparison) -> None:
    assert [draw(finished) for draw in PICTURES] == drawn


def test_ids_of_different_pictures_differ(drawn: list[str]) -> None:
    found = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in drawn]
    assert all(found)
    assert len(set.union(*found)) == sum(len(ids) for ids in found)


def test_every_reference_has_its_id(drawn: list[str]) -> None:
    for svg in drawn:
        wanted = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
        assert {a or b for a, b in wanted} <= set(re.findall(r'\bid="([^"]+)"', svg))


def test_learning_curve_names_rows_and_real_counts(drawn: list[str]) -> None:
    words = words_of(drawn[0])
    for expected in ("Scratch", "ELMo, frozen", "BERT, fine-tuned", "50", "1,000", "accuracy", "Always '1'"):
        assert expected in words


def test_learning_curve_of_one_budget_is_points(make: Callable[..., Comparison]) -> None:
    words = words_of(plots.learning_curve(make((50,), (0,))))
    assert "ELMo, frozen" in words
    assert "Always '1'" in words
    assert "log scale" not in words


def test_a_collapsed_row_is_marked_beside_its_line(finished: Comparison) -> None:
    table = [replace(entry, collapsed=2) if entry.row == "elmo-frozen" else entry for entry in finished.table]
    assert "ELMo, frozen (collapsed)" in words_of(plots.learning_curve(replace(finished, table=table)))


def test_mix_is_averaged_over_the_seeds_at_the_most_labels(finished: Comparison) -> None:
    weights = {0: [0.2, 0.5, 0.3], 1: [0.3, 0.4, 0.3], 2: [0.1, 0.6, 0.3]}
    cells = []
    for cell in finished.cells:
        if cell.row == "elmo-frozen":
            layers = weights[cell.seed] if cell.labels == 1000 else [1.0, 0.0, 0.0]
            cell = replace(cell, mix={"input": LayerWeights(layers, 1.1)})
        cells.append(cell)
    results = replace(finished, cells=cells)
    groups = mix_groups(results)
    assert [mix.title for mix in groups] == ["ELMo, frozen", "BERT, fine-tuned, input", "BERT, fine-tuned, output"]
    assert groups[0].weights == pytest.approx([0.2, 0.5, 0.3])
    assert groups[0].gamma == pytest.approx(1.1)
    words = words_of(draw_mixes(results))
    assert "words layer 1 layer 2" in words
    assert "gamma 1.10" in words


def test_one_layer_is_no_mix(finished: Comparison) -> None:
    mix = {"input": LayerWeights([1.0], 1.0)}
    cells = [replace(cell, mix=mix if cell.mix else {}) for cell in finished.cells]
    assert draw_mixes(replace(finished, cells=cells)) is None


def test_times_take_a_log_axis_where_they_differ_much(finished: Comparison) -> None:
    words = words_of(plots.times(finished))  # 4.2 s and 600 s
    assert "log scale" in words
    assert "10 min" in words
    assert "4.2 s" in words
    rows = [replace(row, pretraining_seconds=None) for row in finished.rows]
    words = words_of(plots.times(replace(finished, rows=rows)))
    assert "log scale" not in words
    assert "pretraining" not in words


@pytest.mark.parametrize("longest", [758.5, 649.4])
def test_times_of_some_minutes_have_few_ticks_at_whole_minutes(finished: Comparison, longest: float) -> None:
    rows = [replace(row, pretraining_seconds=None) for row in finished.rows]
    table = [replace(entry, seconds=seconds) for entry, seconds in zip(finished.table, cycle([113, 99, longest]))]
    words = words_of(plots.times(replace(finished, rows=rows, table=table)))
    assert "0 s 5 min 10 min time" in words


def test_forgetting_leaves_out_what_is_not_finite(finished: Comparison) -> None:
    assert "260.1" in words_of(plots.forgetting(finished))
    without_end = [replace(cell, forgetting=Forgetting(219.5, math.inf)) for cell in finished.cells]
    assert plots.forgetting(replace(finished, cells=without_end)) is None


@pytest.mark.parametrize("title", ["a $x$ <b>&", "評判 の 行", "long " * 40, "--> ]]>"])
def test_any_title_can_be_drawn(title: str, finished: Comparison) -> None:
    first, second, third = finished.rows
    results = replace(finished, rows=[first, replace(second, title=title), third])
    assert title[:20].strip() in words_of(plots.learning_curve(results))
    assert title[:20].strip() in words_of(draw_mixes(results))
