from __future__ import annotations

import subprocess
import sys

import pytest

HOLES = """
import random
from headstart.cli.allocator import tune_allocator
from headstart.training.freed_memory import release_freed

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

assert tune_allocator()
before = resident()
held = [bytearray(b"x") * (1 << 20) for _ in range(200)]
del held[::2]  # the others keep the allocator from giving back the end of its heap
held = [held[-1]]
full = resident()
assert release_freed()
print(before, full, resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc's allocator")
def test_what_was_freed_goes_back_to_the_system() -> None:
    run = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    before, full, after = map(int, run.stdout.split())
    assert full - before > 150_000
    assert after - before < 20_000
