import subprocess
import sys

import pytest

PAGES_TAKEN = """
import resource
from headstart.encoders.memory import keep_freed_memory

def faults(megabytes=64):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * (megabytes << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_freed_memory()
first, second = faults(), faults()
print(first, second)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes glibc's allocator")
def test_freed_memory_is_used_again_without_asking_the_system() -> None:
    # In a process of its own, because the setting cannot be taken back.
    run = subprocess.run([sys.executable, "-c", PAGES_TAKEN], capture_output=True, text=True, check=True)
    first, second = map(int, run.stdout.split())
    assert second < first / 10
