"""Runs on several processes, started by torchrun: one command for each question.

python -m bench.scale faults        are runs the same whose workers are killed, or whose machines lose their link?
python -m bench.scale grid          have comparisons the same table whose workers are killed?
python -m bench.scale efficiency    two processes against one with two threads, on this machine
python -m bench.scale cost          a model of a step's time, fitted here and checked; what it says of more machines
python -m bench.scale preparing     text prepared by two machines against one
python -m bench.scale encoding      `encode` by two processes: its time, and the same bytes whatever is killed?
python -m bench.scale vectors       word vectors that several processes train and merge: are they as good?
"""

from __future__ import annotations

import importlib
import sys

QUESTIONS = ("faults", "grid", "encoding", "efficiency", "cost", "preparing", "vectors")


def main() -> int:
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked not in QUESTIONS:
        print(__doc__)
        return 0 if asked in ("", "-h", "--help") else 2
    answered: int = importlib.import_module(f"bench.scale.{asked}").main(sys.argv[2:])
    return answered


if __name__ == "__main__":
    raise SystemExit(main())
