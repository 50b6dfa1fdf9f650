"""One table of all faults: how many cases of each, how many ended as wanted, and how to see again those that did not.

    python -m bench.faults [--quick] [--only FAULT ...] [--case GROUP[:NUMBER] ...] [--seed N] [--out FILE]

Exits with 1 if any case ended in another way than it should. docs/reliability.md says what is wanted of each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.faults import ROWS
from bench.faults.outcome import Outcome, Setting, cells, failure_line, groups, table
from bench.faults.warm import import_everything

MUTATED = "mutated"
"""The one kind that needs no command."""
SHOWN = 10
"""Failures of each group; all are in the file of --out."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    began = time.monotonic()
    if given.only != [MUTATED]:
        import_everything()
    with tempfile.TemporaryDirectory(prefix="faults-", dir=given.folder) as folder:
        setting = Setting(Path(folder), given.seed, given.quick, tuple(given.case))
        outcomes = list(all_rows(given.only, setting))
    failed = [outcome for outcome in outcomes if outcome.wrong]
    print(f"\n{table(outcomes)}\n\n{len(outcomes):,} cases, {len(failed):,} not as wanted.", end=" ")
    print("This was the quick one." if given.quick else "", f"Took {time.monotonic() - began:.0f} s.")
    if given.out is not None:
        record = {"seed": given.seed, "quick": given.quick, "outcomes": [asdict(outcome) for outcome in outcomes]}
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if failed or not outcomes else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--only", choices=ROWS, nargs="+", default=list(ROWS), metavar="FAULT")
    parser.add_argument("--case", nargs="+", default=[], metavar="CASE", help="such as text.csv, or text.csv:17")
    parser.add_argument("--quick", action="store_true", help="few cases of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the files of the cases are written")
    parser.add_argument("--out", type=Path, help="a JSON file for the outcome of every case")
    return parser.parse_args(arguments)


def all_rows(names: Sequence[str], setting: Setting) -> Iterator[Outcome]:
    """The outcomes of these kinds of fault. Groups are told as they end, each failure at once."""
    for name in names:
        folder = setting.folder / name
        folder.mkdir()
        here = Setting(folder, setting.seed, setting.quick, setting.only)
        done: list[Outcome] = []
        for outcome in importlib.import_module(f"bench.faults.{name}").run(here):
            if done and done[-1].group != outcome.group:
                print(*cells(groups(done)[-1]), sep="  ", flush=True)
            done.append(outcome)
            if outcome.wrong and sum(bool(one.wrong) for one in groups(done)[-1]) <= SHOWN:
                print(failure_line(outcome, setting.seed), flush=True)
        yield from done


if __name__ == "__main__":
    raise SystemExit(main())
