from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from headstart.encoders.kernels.memory import Arena, Lease, Scratch


def test_an_arena_reuses_an_array_that_was_given_back() -> None:
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


def test_buffers_of_inference_mode_serve_outside_of_it() -> None:
    arena, scratch, like = Arena(), Scratch(), torch.zeros(())
    with torch.inference_mode():
        buffers = [arena.take("gates", 4, 5, like), scratch.take("gates", 4, 5)]
        arena.give("gates", buffers[0])
    for before, again in zip(buffers, [arena.take("gates", 4, 5, like), scratch.take("gates", 4, 5)], strict=True):
        assert again.data_ptr() == before.data_ptr()
        again.zero_()
    with torch.no_grad():
        arena.take("gates", 4, 5, like).zero_()


def test_a_second_take_of_the_same_name_overwrites_the_first() -> None:
    scratch = Scratch()
    first = scratch.take("gates", 4, 5)
    assert scratch.take("gates", 2, 3).data_ptr() == first.data_ptr()
    assert scratch.take("cells", 4, 5).data_ptr() != first.data_ptr()
    assert scratch.take("gates", 6, 5).shape == (6, 5)


HOLES = """
import random
from headstart.cli.allocator import tune_allocator
from headstart.encoders.kernels.memory import release_freed_memory

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

assert tune_allocator()
before = resident()
held = [bytearray(b"x") * (1 << 20) for _ in range(200)]
del held[::2]  # the others keep the allocator from giving back the end of its heap
held = [held[-1]]
full = resident()
release_freed_memory()
print(before, full, resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc's allocator")
def test_what_was_freed_goes_back_to_the_system() -> None:
    run = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    before, full, after = map(int, run.stdout.split())
    assert full - before > 150_000
    assert after - before < 20_000
