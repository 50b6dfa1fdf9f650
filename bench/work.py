"""One work in a process of its own, so that its threads, memory and settings disturb no other.

    python -m bench.work NAME --data DATA --repeats 5 --out FILE.json [--quick]

The file holds the rows that were measured and, if the work failed on the way, one line that says why.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.measure import Measurement, Setting
from bench.works import NEEDS

QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "true"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.work", description=__doc__)
    parser.add_argument("name", choices=NEEDS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    os.environ |= QUIET
    warnings.simplefilter("ignore")  # the peers' own, of which there are many
    rows: list[Measurement] = []
    error = ""
    try:
        for row in rows_of(given.name, Setting(data=given.data, repeats=given.repeats, quick=given.quick)):
            rows.append(row)
    except Exception as failure:  # whatever it is becomes a row of the table; the traceback goes to the log
        traceback.print_exc()
        error = one_line(failure)
    given.out.write_text(json.dumps({"rows": [asdict(row) for row in rows], "error": error}))
    return 1 if error else 0


def rows_of(name: str, setting: Setting) -> Iterator[Measurement]:
    yield from importlib.import_module(f"bench.works.{name}").run(setting)


def one_line(failure: Exception) -> str:
    text = " ".join(str(failure).split())
    return f"{type(failure).__name__}: {text}" if text else type(failure).__name__


if __name__ == "__main__":
    raise SystemExit(main())
