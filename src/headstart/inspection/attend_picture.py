"""Attention as a picture: a row for each layer and a column for each head, or a few heads with their words."""

from __future__ import annotations

import textwrap

from matplotlib.figure import Figure

from headstart.inspection.attend import Attention
from headstart.report.heat_maps import HeatMap, draw_grid, draw_named

BESIDE_EACH_OTHER = 3
"""Maps with words at their axes; of more heads, only the picture of a single layer or head has the words."""
LINE = 110
"""Letters of the caption."""
CAPTION = "rows look, columns are looked at"


def draw_attention(attention: Attention) -> Figure:
    """Within `style()`. Rows: the unit that looks; columns: the unit that it looks at."""
    layers, heads = attention.layers, attention.heads
    if len(layers) > 1 and len(heads) > BESIDE_EACH_OTHER:
        # Twelve heads beside each other leave no room for a word above each.
        titles = [f"head {head}" if head == heads[0] else str(head) for head in heads]
        rows = [
            (f"layer {layer}", [HeatMap(title, values) for title, values in zip(titles, of_layer, strict=True)])
            for layer, of_layer in zip(layers, attention.probabilities, strict=True)
        ]
        return draw_grid(rows, "\n".join(textwrap.wrap(f"{CAPTION}: {' '.join(attention.units)}", LINE)))
    maps = [HeatMap(f"layer {layer}, head {head}", attention.of(layer, head)) for layer in layers for head in heads]
    return draw_named(maps, attention.units, CAPTION, columns=BESIDE_EACH_OTHER)
