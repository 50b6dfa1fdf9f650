from __future__ import annotations

from xml.etree import ElementTree

import pytest

from headstart.report.drawing import style
from headstart.report.layer_bars import draw_layer_bars, layer_bars, shade


def words_of(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def test_every_task_and_every_layer_is_named() -> None:
    svg = layer_bars({"entities": [0.2, 0.5, 0.3], "natural language inference": [0.6, 0.2, 0.2]}, "six")
    words = words_of(svg)
    assert {"words", "layer 1", "layer 2", "equal weights", "entities", "natural", "inference"} <= set(words)
    assert svg == layer_bars({"entities": [0.2, 0.5, 0.3], "natural language inference": [0.6, 0.2, 0.2]}, "six")
    assert 'id="six-' in svg


@pytest.mark.parametrize("layers", [1, 3, 7, 13])
def test_any_number_of_layers_can_be_drawn(layers: int) -> None:
    svg = layer_bars({"entities": [1 / layers] * layers}, "six")
    assert words_of(svg).count("entities") == 1
    assert len({shade(layer, layers) for layer in range(layers)}) == layers


def test_encoders_of_different_depth_have_a_panel_each() -> None:
    with style():
        figure = draw_layer_bars([("deep", [0.1, 0.2, 0.3, 0.4]), ("flat", [0.5, 0.5]), ("low", [0.7, 0.3])])
    heights = [[bar.get_height() for bar in axes.patches] for axes in figure.axes]
    assert heights == [[0.5, 0.7, 0.5, 0.3], [0.1, 0.2, 0.3, 0.4]]
