"""The processes that train one run together, or a process alone, behind one interface.

Tensors travel by torch's process group (gloo between CPUs, NCCL between GPUs); short messages and requests to stop by
the launcher's key-value store, which can be polled while a process waits.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from headstart.errors import CheckpointError, EndedElsewhereError, LostProcessError
from headstart.training.launch import Launch
from headstart.training.shared_arrays import SharedArray, shared_array

MEETING_SECONDS = 600.0
"""For all processes to start, those of slow machines too."""
COLLECTIVE_SECONDS = 900.0
"""For one exchange of tensors: a link that is gone for seconds is waited for, a machine that is gone is not. The first
process may be writing a checkpoint meanwhile."""
POLL_SECONDS = 0.05
ENDED, STOP, PROBLEM = "ended", "stop", "problem"
SOURCE_LINE = re.compile(r"^\[[^]]*:\d+\] ")
"""gloo's messages begin with where in its source they were raised."""


class Ranks(Protocol):
    """What a process needs to know of the others. All of them begin `sum_` and `share_` in the same order."""

    launch: Launch

    def array(self, numbers: int, like: Tensor) -> Tensor:
        """An array of the tensor's type and device, (numbers,), that `start_sum` may be quicker with."""
        ...

    def start_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Begin what `sum_` does; the returned function waits until it is done. Not to be touched in between.

        An array of `array` is not to be written before another exchange.
        """
        ...

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, the same bits in all of them."""
        ...

    def share_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of the first process."""
        ...

    def exchange(self, mine: bytes, among: Sequence[int], receivers: Collection[int]) -> list[bytes]:
        """Give bytes to the processes `receivers`; one of them gets those of all processes `among`, in that order.

        All of `among` call this in the same order; the receivers are among them. Other processes take no part.
        """
        ...

    def publish(self, key: str, value: Any) -> None:
        """Show the others a value that JSON can hold."""
        ...

    def published(self, key: str) -> Any:
        """A value that some process has published, None before that."""
        ...

    def claim(self, key: str) -> bool:
        """Whether this process is the first one that asks for it."""
        ...

    def ended(self) -> bool:
        """Whether the first process has; EndedElsewhereError if it was an error that ended it."""
        ...

    def should_stop(self, asked: bool) -> bool:
        """Whether the first process should stop, because it or another one was asked to; False in the others."""
        ...

    def started_here(self, run: str) -> bool:
        """Whether this same launch has started the run, before it restarted its processes."""
        ...

    def start_here(self, run: str) -> None:
        """Remember that for a restart."""
        ...


class Alone:
    """A process without others."""

    launch = Launch()

    def array(self, numbers: int, like: Tensor) -> Tensor:
        return like.new_empty(numbers)

    def start_sum(self, tensor: Tensor) -> Callable[[], None]:
        return lambda: None

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        pass

    def share_(self, tensors: Sequence[Tensor]) -> None:
        pass

    def exchange(self, mine: bytes, among: Sequence[int], receivers: Collection[int]) -> list[bytes]:
        return [mine]

    def publish(self, key: str, value: Any) -> None:
        pass

    def published(self, key: str) -> Any:
        return None

    def claim(self, key: str) -> bool:
        return True

    def ended(self) -> bool:
        return False

    def should_stop(self, asked: bool) -> bool:
        return asked

    def started_here(self, run: str) -> bool:
        return False

    def start_here(self, run: str) -> None:
        pass


class Together:
    """One of several processes. store: this launch's; attempt: its current start of the processes."""

    def __init__(self, launch: Launch, store: Store, attempt: str) -> None:
        self.launch = launch
        self.lasting = PrefixStore("headstart", store)
        self.store = PrefixStore(attempt, self.lasting)
        self.attempt = attempt
        self.shared: dict[int, SharedArray] = {}
        """By the address of this process's array."""

    def array(self, numbers: int, like: Tensor) -> Tensor:
        if self.launch.machines > 1 or like.device.type != "cpu":
            return like.new_empty(numbers)
        name = f"headstart-{self.attempt}-{len(self.shared)}"
        arrays = shared_array(numbers, like, name, self.launch.rank, self.launch.world, self._all)
        if arrays is None:
            return like.new_empty(numbers)
        found = SharedArray(arrays, self.launch.rank, partial(self._all, True))
        self.shared[found.mine.data_ptr()] = found
        return found.mine

    def _all(self, could: bool) -> bool:
        """Whether all processes could; returns in none before all have called it."""
        with watched():
            found = torch.tensor(int(could))
            dist.all_reduce(found, dist.ReduceOp.MIN)
            return bool(found)

    def start_sum(self, tensor: Tensor) -> Callable[[], None]:
        shared = self.shared.get(tensor.data_ptr())
        if shared is not None:
            return shared.sum_
        with watched():
            work = dist.all_reduce(tensor, async_op=True)

        def wait() -> None:
            with watched():
                work.wait()

        return wait

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        for wait in [self.start_sum(tensor) for tensor in tensors]:
            wait()

    def share_(self, tensors: Sequence[Tensor]) -> None:
        with watched():
            for work in [dist.broadcast(tensor, src=0, async_op=True) for tensor in tensors]:
                work.wait()

    def exchange(self, mine: bytes, among: Sequence[int], receivers: Collection[int]) -> list[bytes]:
        me = self.launch.rank
        targets = [rank for rank in receivers if rank != me]
        sources = [rank for rank in among if rank != me and me in receivers]
        sizes = {rank: torch.zeros(1, dtype=torch.int64) for rank in sources}
        send_and_receive(torch.tensor([len(mine)]), targets, sizes)
        contents = {rank: torch.empty(int(size), dtype=torch.uint8) for rank, size in sizes.items()}
        send_and_receive(torch.frombuffer(bytearray(mine), dtype=torch.uint8) if mine else None, targets, contents)
        return [mine if rank == me else contents[rank].numpy().tobytes() for rank in among] if me in receivers else []

    def publish(self, key: str, value: Any) -> None:
        with watched():
            self.store.set(key, json.dumps(value))

    def published(self, key: str) -> Any:
        with watched():
            return json.loads(self.store.get(key)) if self.store.check([key]) else None

    def claim(self, key: str) -> bool:
        with watched():
            return self.store.add(f"claims of {key}", 1) == 1

    def ended(self) -> bool:
        failed = self.published(ENDED)
        if failed:
            raise EndedElsewhereError("The first process has ended, and has said why.")
        return failed is not None

    def should_stop(self, asked: bool) -> bool:
        if self.launch.is_first:
            return asked or self.published(STOP) is not None
        if asked:
            self.publish(STOP, self.launch.rank)
        return False

    def started_here(self, run: str) -> bool:
        with watched():
            return self.lasting.check([f"started {run}"])

    def start_here(self, run: str) -> None:
        with watched():
            self.lasting.set(f"started {run}", "")


def send_and_receive(mine: Tensor | None, targets: Sequence[int], theirs: Mapping[int, Tensor]) -> None:
    """Send a tensor to other processes, and fill those that come from others. Nothing is sent of empty ones."""
    with watched():
        works = [] if mine is None else [dist.isend(mine, rank) for rank in targets]
        works += [dist.irecv(tensor, rank) for rank, tensor in theirs.items() if tensor.numel()]
        for work in works:
            if work is not None:  # torch's type for a process outside the group
                work.wait()


@contextmanager
def watched() -> Iterator[None]:
    """Whatever torch raises when a process or the launcher cannot be reached, as one sentence."""
    try:
        yield
    except RuntimeError as error:  # gloo raises no narrower one
        reason = SOURCE_LINE.sub("", str(error).partition("\n")[0])
        raise LostProcessError(
            f"Another process of this run has ended, or cannot be reached ({reason}). Nothing that was saved is lost: "
            "torchrun --max-restarts starts the processes again, and pretraining also goes on with --resume."
        ) from error


@contextmanager
def computing_together() -> Iterator[None]:
    """The same around a model that exchanges tensors while it computes: other errors of torch stay what they are."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or SOURCE_LINE.match(str(error)):
            with watched():
                raise
        raise


def agree(ranks: Ranks, problem: str | None) -> bool:
    """Whether no process has a problem; the first one raises the one that was told first, as a CheckpointError.

    All processes call it at the same point.
    """
    if problem is not None:
        ranks.publish(PROBLEM, problem)
    count = torch.tensor([0.0 if problem is None else 1.0])
    ranks.sum_([count])
    if float(count) and ranks.launch.is_first:
        raise CheckpointError(str(ranks.published(PROBLEM) or problem))
    return not float(count)


@contextmanager
def joined(launch: Launch) -> Iterator[Ranks]:
    """Meet the processes that were started with this one; the others notice when the first one leaves."""
    if not launch.joins:
        yield Alone()
        return
    with watched():
        store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=MEETING_SECONDS)))
        attempt = meet(launch, PrefixStore("headstart", store))
        if torch.cuda.is_available():
            torch.cuda.set_device(launch.local_rank)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            # torchrun keeps its store when it restarts processes: without a name of their own, the new ones would read
            # the addresses of the old ones.
            store=PrefixStore(attempt, store),
            rank=launch.rank,
            world_size=launch.world,
            timeout=timedelta(seconds=COLLECTIVE_SECONDS),
        )
    ranks = Together(launch, store, attempt)
    failed = True
    try:
        yield ranks
        failed = False
    finally:
        if launch.is_first:
            with suppress(LostProcessError):
                ranks.publish(ENDED, failed)
        dist.destroy_process_group()


def meet(launch: Launch, store: Store, seconds: float = MEETING_SECONDS) -> str:
    """A name for this start of the processes that they all agree on; returns in all of them, or in none.

    The first process draws it. Another one may read that of an earlier start, so it shows a number that the first one
    has to repeat: a process that is gone cannot.
    """
    deadline = time.monotonic() + seconds
    if launch.is_first:
        attempt = uuid.uuid4().hex
        store.set("attempt", attempt)
        for rank in range(1, launch.world):
            store.set(f"{attempt}/seen/{rank}", wait_for(store, f"{attempt}/here/{rank}", deadline))
        return attempt
    mine = uuid.uuid4().hex
    while True:
        attempt = wait_for(store, "attempt", deadline)
        store.set(f"{attempt}/here/{launch.rank}", mine)
        time.sleep(POLL_SECONDS)
        if store.check([f"{attempt}/seen/{launch.rank}"]) and read(store, f"{attempt}/seen/{launch.rank}") == mine:
            return attempt
        if time.monotonic() > deadline:
            raise absent(seconds)


def wait_for(store: Store, key: str, deadline: float) -> str:
    while not store.check([key]):
        if time.monotonic() > deadline:
            raise absent(MEETING_SECONDS)
        time.sleep(POLL_SECONDS)
    return read(store, key)


def read(store: Store, key: str) -> str:
    text: bytes = store.get(key)
    return text.decode()


def absent(seconds: float) -> LostProcessError:
    return LostProcessError(
        f"After {seconds:.0f} s some of the processes that torchrun started have not come. See what they or their "
        "machines have reported."
    )
