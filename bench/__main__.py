"""One table of all works: ours, the peer, their ratio, the goal, and our share of the machine's own speed.

    python -m bench --data DATA [--quick] [--only WORK ...] [--repeats 5] [--out bench/results/bench.json]

Every work runs in a process of its own. The file also has the machine's description and the figure of every repeat; the
works' own output goes to files beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.measure import Measurement, Setting
from bench.table import Failure, Row, cells, summary, table
from bench.works import NEEDS

ROOT = Path(__file__).parents[1]
REPEATS, QUICK_REPEATS = 5, 1
MOST_SECONDS = 600


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    setting = Setting(
        data=given.data.resolve(),
        repeats=given.repeats or (QUICK_REPEATS if given.quick else REPEATS),
        quick=given.quick,
    )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    logs = given.out.parent
    began = time.monotonic()
    if given.quick:
        print("The quick one: small samples and few repeats; its figures are not for the record.")
    before = measured_machine(setting, logs)
    print(f"{before['machine']['processor']}, {before['machine']['cores']} cores; {gigaflops(before)}", flush=True)
    rows: list[Row] = []
    for name in given.only:
        found = run_work(name, setting, logs)
        rows += found
        for row in found:
            print("  ".join(filter(None, cells(row, before["ceiling"]))), flush=True)
    after = before if given.quick else measured_machine(setting, logs)
    ceiling = max(before["ceiling"], after["ceiling"])
    print(f"\n{table(rows, ceiling)}\n\n{summary(rows)}", end=" ")
    print("This was the quick one." if given.quick else f"Ceiling at the end: {gigaflops(after)}", end=" ")
    print(f"Took {time.monotonic() - began:.0f} s.")
    given.out.write_text(json.dumps(record(rows, setting, before, after), indent=1) + "\n")
    return 1 if any(isinstance(row, Failure) for row in rows) else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sst/, lm_imdb_unsup/ and conll2003/")
    parser.add_argument("--only", choices=NEEDS, nargs="+", default=list(NEEDS), metavar="WORK")
    parser.add_argument("--quick", action="store_true", help="small samples, measured once")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/bench.json")
    return parser.parse_args(arguments)


def run_work(name: str, setting: Setting, logs: Path) -> list[Row]:
    """The rows of one work; none, with a line that says why, if its text is not there."""
    missing = [needed for needed in NEEDS[name] if not (setting.data / needed).exists()]
    if missing:
        print(f"{name}: left out, because {setting.data} has no {', '.join(missing)}", flush=True)
        return []
    options = ["--data", str(setting.data), "--repeats", str(setting.repeats), *(["--quick"] if setting.quick else [])]
    found, fault = answer_of(["bench.work", name, *options], logs / f"{name}.log")
    rows: list[Row] = [Measurement(**row) for row in found.get("rows", [])]
    why = found.get("error") or fault
    return [*rows, Failure(name, why)] if why else rows


def measured_machine(setting: Setting, logs: Path) -> dict[str, Any]:
    """Its description and its ceiling."""
    found, fault = answer_of(["bench.machine", *(["--quick"] if setting.quick else [])], logs / "machine.log")
    if fault:
        raise SystemExit(f"The machine's own speed cannot be measured: {fault}")
    return found


def answer_of(module: list[str], log: Path) -> tuple[dict[str, Any], str]:
    """What a module of the bench wrote to its --out, and what went wrong if anything did."""
    with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
        out = Path(folder) / "answer.json"
        command = [sys.executable, "-m", *module, "--out", str(out)]
        try:
            code = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, timeout=MOST_SECONDS).returncode
        except subprocess.TimeoutExpired:
            return {}, f"not done after {MOST_SECONDS} s; see {log}"
        found = json.loads(out.read_text()) if out.is_file() else {}
    return found, f"exit code {code}; see {log}" if code else ""


def gigaflops(machine: dict[str, Any]) -> str:
    by_library = ", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in machine["ceiling_by_library"].items())
    return f"{machine['ceiling'] / 1e9:.0f} GFLOP/s in float32 ({by_library})."


def record(rows: list[Row], setting: Setting, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """All there is to keep."""
    ceiling = max(before["ceiling"], after["ceiling"])
    measured = [row for row in rows if isinstance(row, Measurement)]
    return {
        "machine": before["machine"],
        "quick": setting.quick,
        "repeats": setting.repeats,
        "ceiling": {"before": before["ceiling_by_library"], "after": after["ceiling_by_library"]},
        "rows": [
            {**asdict(row), "median": row.rate, "peer_median": row.peer_rate, "ratio": row.ratio}
            | {"share_of_ceiling": row.share(ceiling), "reached": row.reached}
            for row in measured
        ],
        "failed": [asdict(row) for row in rows if isinstance(row, Failure)],
    }


if __name__ == "__main__":
    raise SystemExit(main())
