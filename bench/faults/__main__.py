"""One table of all faults: how many cases of each, how many ended as wanted, and how to see again those that did not.

    python -m bench.faults [--quick] [--only FAULT ...] [--case GROUP[:NUMBER] ...] [--seed N] [--jobs N] [--out FILE]

Exits with 1 if any case ended in another way than it should. docs/reliability.md says what is wanted of each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from bench.faults import ROWS
from bench.faults.divided import outcomes_of_groups
from bench.faults.hub import serving
from bench.faults.outcome import Outcome, Setting, failure_line, table
from bench.faults.warm import import_everything

MUTATED = "mutated"
"""The one kind that needs no command."""
SHOWN = 10
"""Failures of each group; all are in the file of --out."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-", dir=given.folder) as name, ExitStack() as around:
        folder = Path(name)
        if given.only != [MUTATED]:
            import_everything()
            around.enter_context(serving(folder / "served"))
        setting = Setting(folder, given.seed, given.quick, tuple(given.case))
        outcomes = list(all_rows(given.only, setting, given.jobs))
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
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="groups of cases at a time")
    parser.add_argument("--out", type=Path, help="a JSON file for the outcome of every case")
    return parser.parse_args(arguments)


def all_rows(names: Sequence[str], setting: Setting, jobs: int) -> Iterator[Outcome]:
    """The outcomes of these kinds of fault. Each failure is told at once, and how many there were as a kind ends."""
    for name in names:
        module, began = importlib.import_module(f"bench.faults.{name}"), time.monotonic()
        groups = [group for group in module.GROUPS if setting.wants_group(group, module.QUICK)]
        told: Counter[str] = Counter()
        done = 0
        for outcome in outcomes_of_groups(name, module.run, groups, setting, jobs):
            done += 1
            told[outcome.group] += bool(outcome.wrong)
            if outcome.wrong and told[outcome.group] <= SHOWN:
                print(failure_line(outcome, setting.seed), flush=True)
            yield outcome
        print(f"{name}: {done:,} cases in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
