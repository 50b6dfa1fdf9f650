"""One table of all measurements: work, ours, peer, ratio, goal; and the same as JSON with the machine's description."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

import torch

from bench.measure import Measurement

WORKS = ("startup", "word2vec", "bert_pretraining", "elmo_pretraining")


def machine() -> dict[str, object]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds lm_imdb_unsup/train.txt.gz")
    parser.add_argument("--only", choices=WORKS, nargs="*", default=WORKS)
    parser.add_argument("--out", type=Path, default=Path("bench/results/bench.json"))
    arguments = parser.parse_args()
    rows: list[Measurement] = []
    print(f"{'work':42} {'ours':>12} {'peer':>12} {'ratio':>6} {'goal':>6}  peer")
    for work in arguments.only:
        for row in importlib.import_module(f"bench.{work}").run(arguments.data):
            rows.append(row)
            figures = f"{row.ours:>12,.1f} {row.peer:>12,.1f} {row.ratio:>6.2f} {row.goal:>6.2f}"
            print(f"{row.work:42} {figures}  {row.peer_name} ({row.unit})", flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    table = [{**asdict(row), "ratio": row.ratio} for row in rows]
    arguments.out.write_text(json.dumps({"machine": machine(), "rows": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
