"""`headstart demo`: fetch labelled sentences, pretrain, compare. It needs the package index, and that only once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.options import Quiet


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the demo; one that was begun there goes on.")] = Path(
        ".demo"
    ),
    seconds: Annotated[float, typer.Option("--seconds", help="Time for all pretraining together, in seconds.")] = 140.0,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs per row and number of examples.")] = 3,
    quiet: Quiet = False,
) -> None:
    """Compare word vectors, ELMo and BERT on 50 to 1,000 labelled sentences of film reviews.

    The models that come with the package; encoders pretrained on 25,000 reviews while you watch; and a published BERT
    (minilm), if it can be downloaded.
    """
    from headstart.cli.compare import show_compared, watch_comparison
    from headstart.comparison.demo import demo as run_demo

    show_compared(watch_comparison(run_demo(out, seconds, seeds), quiet), quiet)
