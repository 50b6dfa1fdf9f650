"""Time per token and peak memory against what grows, each point in a process of its own.

python -m bench.growth --data DATA --out FOLDER [--quick] [--only SERIES ...]

DATA holds lm_imdb_unsup/train.txt.gz and sst/train.txt. FOLDER gets growth.json, growth.md and growth.svg.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.growth.picture import picture
from bench.growth.series import SERIES, Case, cases
from bench.growth.table import Point, markdown
from bench.growth.text import Texts
from bench.machine import description
from bench.works import REVIEWS, SST_TRAIN


def measured(case: Case) -> Point | None:
    """None if its process failed; what it said is shown."""
    command = [sys.executable, "-m", "bench.growth.child", case.work, json.dumps(dict(case.options))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{case.line} at {case.x:,g}: FAILED: {done.stderr.strip()[-500:]}", file=sys.stderr, flush=True)
        return None
    figures = json.loads(done.stdout.splitlines()[-1])
    point = Point(
        series=case.series,
        line=case.line,
        x=case.x,
        tokens=figures["tokens"],
        seconds=figures["seconds"],
        peak_bytes=figures["peak_bytes"],
    )
    shown = f"{point.microseconds:>9.1f} µs/token {point.megabytes:>7,.0f} MB"
    print(f"{case.series:10} {case.line:24} {case.x:>11,g} {shown}", flush=True)
    return point


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--quick", action="store_true", help="fewer points, and less text")
    parser.add_argument("--only", choices=SERIES, nargs="*", default=list(SERIES))
    arguments = parser.parse_args()
    missing = [name for name in (REVIEWS, SST_TRAIN) if not (arguments.data / name).is_file()]
    if missing:
        parser.error(f"{arguments.data}: lacks {' and '.join(missing)}")
    began = time.monotonic()
    points: list[Point] = []
    wanted = 0
    with tempfile.TemporaryDirectory() as folder:
        texts = Texts(arguments.data, Path(folder), arguments.quick)
        for series in arguments.only:
            for case in cases(series, texts, arguments.quick):
                wanted += 1
                points += filter(None, [measured(case)])
    about = {"machine": description(), "quick": arguments.quick, "seconds": round(time.monotonic() - began)}
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = [point.as_row() for point in points]
    (arguments.out / "growth.json").write_text(json.dumps({**about, "points": rows}, indent=1) + "\n")
    (arguments.out / "growth.md").write_text(markdown(points))
    if points:
        (arguments.out / "growth.svg").write_text(picture(points))
    print(f"{len(points)} of {wanted} points in {about['seconds']} s: {arguments.out / 'growth.md'}")
    sys.exit(len(points) < wanted)


if __name__ == "__main__":
    main()
