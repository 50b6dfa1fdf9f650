import subprocess
import sys

import pytest
import torch

from headstart.encoders.kernels.memory import Arena, Lease

PAGES_TAKEN = """
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes glibc's allocator")
def test_freed_memory_is_used_again_without_asking_the_system() -> None:
    # In a process of its own, because the setting cannot be taken back.
    run = subprocess.run([sys.executable, "-c", PAGES_TAKEN], capture_output=True, text=True, check=True)
    first, second = map(int, run.stdout.split())
    assert second < first / 10


def test_an_arena_gives_an_array_again_that_was_given_back() -> None:
    arena, like = Arena(), torch.zeros(())
    first = arena.take("gates", 4, 5, like)
    second = arena.take("gates", 4, 5, like)
    assert first.shape == (4, 5)
    assert first.data_ptr() != second.data_ptr()
    arena.give("gates", first)
    smaller = arena.take("gates", 3, 5, like)
    assert smaller.data_ptr() == first.data_ptr()
    arena.give("gates", smaller)
    assert arena.take("gates", 4, 5, like).data_ptr() == first.data_ptr(), "the smaller use forgot the whole"
    assert arena.take("gates", 2, 2, torch.zeros((), dtype=torch.float64)).dtype == torch.float64


def test_a_larger_array_is_made_where_the_free_one_is_too_small() -> None:
    arena, like = Arena(), torch.zeros(())
    arena.give("c", arena.take("c", 2, 2, like))
    assert arena.take("c", 3, 3, like).shape == (3, 3)


def test_a_lease_ends_with_the_object() -> None:
    arena = Arena()
    lease = Lease(arena, {"m": arena.take("m", 2, 3, torch.zeros(()))})
    address = lease.arrays["m"].data_ptr()
    assert not arena.free["m torch.float32 cpu"]
    del lease
    assert [array.data_ptr() for array in arena.free["m torch.float32 cpu"]] == [address]
