"""Attention as one HTML file: a small map for each head; pointing at a word shows where every head looks from it."""

from __future__ import annotations

import base64
import io
import json
from html import escape

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

from headstart.inspection.attend import MARK, Attention
from headstart.inspection.heads import HeadSummary
from headstart.tasks.tag_view import page_of

LEVELS = 255
"""A share is written as a byte: the page of a hundred words and 144 heads stays below 3 MB."""
HUE = (0.16, 0.47, 0.83)
"""Red, green and blue of the maps, whose opacity is the share: they are read on a light and on a dark page."""


def attention_page(attention: Attention) -> str:
    """Everything is inside: without a script the maps and what each head does, with it the words that can be pointed
    at."""
    layers, heads = len(attention.layers), len(attention.heads)
    rows = [
        f'<tr><th scope="row">layer {layer}</th>'
        + "".join(cell(attention, summary) for summary in attention.summary() if summary.layer == layer)
        + "</tr>"
        for layer in attention.layers
    ]
    columns = "".join(f'<th scope="col">head {head}</th>' for head in attention.heads)
    summary = f"{layers * heads:,} heads: {' '.join(escape(word) for word in attention.words)}"
    units = "".join(unit(attention, place) for place in range(len(attention.units)))
    body = [
        f'<p class="units" role="group" aria-label="The sentence">{units}</p>',
        f'<p id="told" role="status">{HOW_TO_READ}</p>',
        '<div class="maps" tabindex="0" role="region" aria-label="Maps of all heads"><table>',
        f"<thead><tr><td></td>{columns}</tr></thead><tbody>",
        *rows,
        "</tbody></table></div>",
        f'<script type="application/json" id="data">{data(attention)}</script>',
        f"<script>{SCRIPT}</script>",
    ]
    return page_of(f"Where the heads of {attention.encoder} look", summary, [], body, PAGE_STYLE)


def unit(attention: Attention, place: int) -> str:
    kind = ' class="mark"' if attention.word_of[place] == MARK else ""
    return f'<button type="button"{kind}>{escape(attention.units[place])}<small></small></button>'


def cell(attention: Attention, head: HeadSummary) -> str:
    shares = ", ".join(f"{100 * share:.0f} % {place}" for place, share in head.shares.items())
    name = f"layer {head.layer}, head {head.head}"
    place, share = max(head.shares.items(), key=lambda pair: pair[1])
    picture = base64.b64encode(png_of(attention.of(head.layer, head.head))).decode()
    return (
        f'<td><button type="button" title="{name}: {shares}"><span class="map"><img alt="{name}: {shares}" '
        f'src="data:image/png;base64,{picture}"><i></i></span><small>{place} {100 * share:.0f}</small></button></td>'
    )


def png_of(values: NDArray[np.float32]) -> bytes:
    """A picture with one pixel for each pair of units."""
    pixels = np.empty((*values.shape, 4))
    pixels[..., :3] = HUE
    pixels[..., 3] = np.sqrt(np.clip(values, 0, 1))
    out = io.BytesIO()
    imsave(out, pixels, format="png", metadata={"Software": ""})  # instead of matplotlib's version
    return out.getvalue()


def data(attention: Attention) -> str:
    """Shares as bytes, head after head, for the script; < is escaped, so that no word ends the element."""
    levels = np.rint(LEVELS * attention.probabilities).astype(np.uint8)
    heads = [f"layer {layer}, head {head}" for layer in attention.layers for head in attention.heads]
    table = {"units": attention.units, "heads": heads, "shares": base64.b64encode(levels.tobytes()).decode()}
    return json.dumps(table).replace("<", "\\u003c")


HOW_TO_READ = (
    "In each map a row is the word that looks, a column the word that it looks at: the stronger the colour, the more "
    "attention. Below each map, the place that gets most of the attention of words, in %: before, itself and "
    "after are the word before, the word itself and the word after."
)
PAGE_STYLE = """
body { max-width: 78rem; }
button { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: .3rem;
  padding: 0; cursor: pointer; }
button:focus-visible, .maps:focus-visible { outline: 2px solid hsl(212 var(--edge)); outline-offset: 1px; }
.units { display: flex; flex-wrap: wrap; gap: .25rem; white-space: normal; }
.units button { padding: .1rem .4rem; border-color: var(--line); line-height: 1.3; min-width: 2.2rem;
  background: rgb(41 120 212 / var(--share, 0)); }
.units button.mark { font-size: .85em; }
.units button[aria-pressed=true] { border-color: currentColor; }
.units small { display: block; min-height: 1.3em; font-size: .7rem; font-variant-numeric: tabular-nums; }
main p#told { color: var(--soft); font-size: .9rem; line-height: 1.5; min-height: 4.5em; white-space: normal; }
.maps { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8rem; line-height: 1.3; width: 100%; }
th { font-weight: 400; color: var(--soft); white-space: nowrap; padding: .15rem .3rem; }
tbody th { text-align: right; }
.maps td { padding: .15rem; text-align: center; vertical-align: top; }
.maps button { width: 100%; min-width: 3.9rem; max-width: 9rem; padding: .15rem; }
.maps button[aria-pressed=true] { border-color: currentColor; }
.map { display: block; position: relative; border: 1px solid var(--line); overflow: hidden; }
.map img { display: block; width: 100%; aspect-ratio: 1; image-rendering: pixelated; }
.map i { position: absolute; left: 0; right: 0; border: 1px solid currentColor; display: none; }
.maps small { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--soft); }
@media print { .maps button { min-width: 0; } }
"""
# Pointing, focusing and tapping choose alike. Without a chosen head the sentence shows the mean of all.
SCRIPT = """
const given = JSON.parse(document.getElementById("data").textContent), T = given.units.length;
const shares = Uint8Array.from(atob(given.shares), (letter) => letter.charCodeAt(0));
const units = [...document.querySelectorAll(".units button")], heads = [...document.querySelectorAll(".maps button")];
const told = document.getElementById("told"), first = told.textContent;
const row = (head, from) => shares.subarray((head * T + from) * T, (head * T + from + 1) * T);
const percent = (share) => Math.round((100 * share) / 255);
let from = null, head = null, pinned = null;

function meanRow(from) {
  const mean = new Array(T).fill(0);
  heads.forEach((_, h) => row(h, from).forEach((share, to) => { mean[to] += share / heads.length; }));
  return mean;
}

function strongest(shares) {
  let best = 0;
  shares.forEach((share, to) => { if (share > shares[best]) best = to; });
  return best;
}

function show() {
  if (from === null) return;
  const shown = head === null ? meanRow(from) : row(head, from);
  units.forEach((unit, to) => {
    unit.style.setProperty("--share", Math.sqrt(shown[to] / 255) * 0.75);
    unit.setAttribute("aria-pressed", to === from);
    unit.querySelector("small").textContent = percent(shown[to]) || "";
  });
  heads.forEach((button, h) => {
    const best = strongest(row(h, from)), line = button.querySelector("i");
    button.querySelector("small").textContent = `${given.units[best]} ${percent(row(h, from)[best])}`;
    button.setAttribute("aria-pressed", h === head);
    line.style.cssText = `display: block; top: ${(100 * from) / T}%; height: ${100 / T}%`;
  });
  const who = head === null ? `the mean of all ${heads.length} heads` : given.heads[head];
  told.textContent = `From “${given.units[from]}”, in %: above, ${who}; below each map, what it looks at most. ` +
    "Point at another word, or at a map to see that head alone; a click on a map keeps it, another lets it go.";
}

units.forEach((unit, to) => ["mouseenter", "focus", "click"].forEach((event) =>
  unit.addEventListener(event, () => { from = to; show(); })));
heads.forEach((button, h) => {
  ["mouseenter", "focus"].forEach((event) => button.addEventListener(event, () => {
    head = h; if (from === null) from = Math.min(1, T - 1); show(); }));
  button.addEventListener("mouseleave", () => { head = pinned; show(); });
  button.addEventListener("click", () => { pinned = pinned === h ? null : h; head = pinned; show(); });
});
told.textContent = `Point at a word of the sentence to see where each head looks from there. ${first}`;
"""
