"""Training from the command line tunes the allocator; the library leaves the process that it runs in alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headstart
from headstart.cli import allocator, main

FAULTS = """
import resource
from headstart.cli.allocator import tune_allocator

def faults(megabytes=64):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * (megabytes << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert tune_allocator()
first, second = faults(), faults()
print(first, second)
"""


GAPS = """
import sys
from pathlib import Path
from headstart.cli.allocator import return_large_blocks

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

if sys.argv[1:]:
    assert return_large_blocks()
del [bytearray(8 << 20)][:]
before = megabytes()
kept = []
for _ in range(30):
    large = [bytearray(b"x") * (8 << 20) for _ in range(2)]
    kept.append(bytearray(b"x") * 100_000)  # lies behind them in the heap, so that nothing can be cut off there
    del large
print(megabytes() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes glibc's allocator")
def test_large_blocks_go_back_to_the_system() -> None:
    grown = [
        int(subprocess.run([sys.executable, "-c", GAPS, *given], capture_output=True, text=True, check=True).stdout)
        for given in (["sparing"], [])
    ]
    assert grown[0] < 8 <= grown[1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes glibc's allocator")
def test_freed_memory_is_reused_without_asking_the_system() -> None:
    # In a process of its own, because the setting cannot be undone.
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    first, second = map(int, run.stdout.split())
    assert second < first / 10


@pytest.mark.parametrize(
    ("arguments", "tuned"),
    [
        (["pretrain", "bert", "text.txt"], False),  # tunes it itself, once the text is read
        (["transfer", "sentiment"], True),
        (["compare"], True),
        (["encode", "run", "pretrain"], False),
        (["predict"], False),
        ([], False),
    ],
)
def test_commands_that_train_tune_it_before_anything_else(
    arguments: list[str], tuned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr(main, "tune_allocator", lambda: called.append("tuned"))
    monkeypatch.setattr(main, "app", lambda: called.append("command"))
    monkeypatch.setattr(sys, "argv", ["headstart", *arguments])
    main.run()
    assert called == (["tuned", "command"] if tuned else ["command"])


def test_every_command_that_trains_is_there() -> None:
    groups = {group.name for group in main.app.registered_groups}
    commands = {command.name for command in main.app.registered_commands}
    assert groups | commands >= allocator.TRAINING


def test_only_the_command_line_names_the_setting() -> None:
    source = Path(headstart.__file__).parent
    naming = {path.relative_to(source).parts[0] for path in source.rglob("*.py") if "mallopt" in path.read_text()}
    assert naming == {"cli"}
