"""Peak memory of `headstart pretrain` over a text once and twice: it must not grow with the corpus.

python -m bench.memory --data FOLDER
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "lm_imdb_unsup/train.txt.gz"
COMMANDS = {
    "static": ["static", "--steps", "20"],
    "elmo": ["elmo", "--size", "tiny", "--steps", "20"],
    "bert": ["bert", "--size", "tiny", "--steps", "20", "--vocabulary-size", "8000"],
}
SECONDS_BETWEEN_LOOKS = 0.2


def family(process: int) -> list[int]:
    """A process and all its descendants."""
    children = Path(f"/proc/{process}/task/{process}/children")
    try:
        found = [int(child) for child in children.read_text().split()]
    except OSError:  # it has just ended
        return [process]
    return [process, *(member for child in found for member in family(child))]


def held_bytes(process: int) -> int:
    """Its own memory plus its share of what it shares, mapped files included."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    fields = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
    return 1024 * int(fields["Pss"])


def peak(command: list[str], home: Path) -> int:
    """The greatest sum over the process and its workers while the command runs."""
    process = subprocess.Popen(command, env={**os.environ, "HEADSTART_HOME": str(home)})
    most = 0
    while process.poll() is None:
        most = max(most, sum(held_bytes(member) for member in family(process.pid)))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return most


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=COMMANDS, nargs="*", default=list(COMMANDS))
    arguments = parser.parse_args()
    once = arguments.data / TEXT
    print(f"{'command':60} {'once':>8} {'twice':>8} {'growth':>7}")
    for kind in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / "again.txt.gz"
            shutil.copy(once, again)
            peaks = []
            for number, texts in enumerate(([once], [once, again])):
                place = Path(folder) / str(number)
                options = [*COMMANDS[kind], "--one-per-line", "--quiet", "--out", str(place / "run")]
                command = [sys.executable, "-m", "headstart", "pretrain", options[0], *map(str, texts), *options[1:]]
                peaks.append(peak(command, place / "home"))
        shown = f"pretrain {' '.join(COMMANDS[kind])}"
        print(
            f"{shown:60} {peaks[0] / 1e6:>5.0f} MB {peaks[1] / 1e6:>5.0f} MB {peaks[1] / peaks[0] - 1:>+7.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
