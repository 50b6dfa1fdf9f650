"""The command line in one of several processes that torchrun started: the first one speaks, and for all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO

from headstart.errors import ConfigError
from headstart.training.launch import Launch

DIVIDED = frozenset({"pretrain", "transfer", "compare", "encode"})
"""Commands that several processes can share."""
GRACE_SECONDS = 10.0


def refuse_several(launch: Launch, arguments: Sequence[str]) -> None:
    """A command that is made for one process must not write its files from several."""
    command = next(iter(arguments), "--help")
    if launch.world > 1 and command not in DIVIDED and not command.startswith("-"):
        raise ConfigError(
            f"`headstart {command}` runs in one process, and torchrun started {launch.world}. Start it without "
            "torchrun."
        )


@contextmanager
def silent_unless(speaks: bool) -> Iterator[None]:
    """All processes parse the same arguments; what there is to say about them is said once. Tracebacks come later."""
    if speaks:
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = StringIO(), StringIO()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def leave(launch: Launch, code: int | str | None) -> None:
    """Exit.

    torchrun ends all processes when the first of them fails: the one that speaks must not be cut short. It also calls a
    process failed that is aborted after its work, as was seen once: threads of torch that exchange tensors may still
    want the interpreter while it is taken down, so it is left standing.
    """
    if code and not launch.is_first:
        time.sleep(GRACE_SECONDS)
    if not launch.joins:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))
