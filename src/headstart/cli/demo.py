"""`headstart demo`: fetch, pretrain, show. Needs nothing but the package index, once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headstart.demo import Learned

FORETOLD = {
    "skipgram": "a neighbour, given a word",
    "elmo": "the next word, given one side",
    "bert": "a hidden piece, given both",
}
ALSO = {
    "unigram_perplexity": "by frequency alone",
    "forward_perplexity": "forward",
    "backward_perplexity": "backward",
    "masked_accuracy": "right",
    "next_accuracy": "next text told",
}
NAMES = {"skipgram": "word vectors (skip-gram)", "elmo": "ELMo (tiny)", "bert": "BERT (tiny)"}


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs; an earlier demo there is replaced.")] = Path(
        ".demo"
    ),
    seconds: Annotated[float, typer.Option("--seconds", help="Time for each of the three.")] = 60.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """Pretrain three small encoders on 25,000 film reviews, about a minute each, and compare what they learned."""
    import shutil

    from headstart.cli.display import display
    from headstart.demo import Learned, Starting
    from headstart.demo import demo as run_demo

    for kind in NAMES:
        if (out / kind / "config.toml").exists():
            shutil.rmtree(out / kind)
    learned: list[Learned] = []
    with display(quiet) as show:
        for event in run_demo(out, seconds):
            if isinstance(event, Learned):
                learned.append(event)
            elif isinstance(event, Starting):
                show.heading(NAMES[event.kind])
            else:
                show(event)
    show_learned(learned, out)


def show_learned(learned: list[Learned], out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from headstart.card import duration, score

    console = Console(highlight=False)
    table = Table(title="Held-out film reviews")
    for column in ("encoder", "perplexity", "of", "also", "time"):
        table.add_column(column, justify="right" if column in ("perplexity", "time") else "left")
    for row in learned:
        scores = dict(row.finished.scores)
        main = scores.pop("perplexity", float("nan"))
        shown = {name: value for name, value in scores.items() if name in ALSO}
        also = ", ".join(f"{ALSO[name]} {score(name, value)}" for name, value in shown.items())
        table.add_row(NAMES[row.kind], f"{main:,.1f}", FORETOLD[row.kind], also, duration(row.finished.elapsed))
    console.print(table)
    console.print("The three perplexities are of different things and are not to be compared with each other.\n")
    for row in learned:
        for query, found in row.neighbours.items():
            where = f" in: {query}" if " " in query else ""
            console.print(f"{NAMES[row.kind]}, nearest to 'play'{where}")
            for neighbour in found:
                line = f"  {neighbour.cosine:5.2f}  {neighbour.word}"
                console.print(f"{line}   {neighbour.sentence or ''}", markup=False, soft_wrap=True)
    console.print(f"\nThe runs are in {out}; each has a CARD.md.")
