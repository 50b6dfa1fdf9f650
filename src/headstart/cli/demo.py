"""`headstart demo`: fetch, pretrain, compare. Needs nothing but the package index, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the demo; one begun there is gone on with.")] = Path(
        ".demo"
    ),
    seconds: Annotated[float, typer.Option("--seconds", help="Time for all pretraining.")] = 140.0,
    seeds: Annotated[int, typer.Option("--seeds", help="How often each cell is fitted.")] = 3,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """Compare the generations on film reviews: pretrain on 25,000, then learn from 50 to 1,000 labelled sentences.

    A BERT that was really pretrained (minilm) is downloaded and takes part.
    """
    from headstart.cli.compare import watch_comparison
    from headstart.comparison.demo import demo as run_demo

    watch_comparison(run_demo(out, seconds, seeds), out / "comparison", quiet)
