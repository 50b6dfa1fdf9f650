"""Which processes of this machine have died: those that came, did not say that they leave, and are no longer there."""

from __future__ import annotations

import os

from headstart.errors import LostProcessError
from headstart.training.ranks import Ranks


def arrive(ranks: Ranks) -> None:
    ranks.publish(came(ranks.launch.rank), [ranks.launch.machine, os.getpid()])


def leave(ranks: Ranks) -> None:
    ranks.publish(left(ranks.launch.rank), True)


def raise_lost(ranks: Ranks) -> None:
    """Of a process on another machine only its launcher knows, which ends all."""
    launch = ranks.launch
    for rank in range(launch.world):
        machine, process = ranks.published(came(rank)) or (None, 0)
        if machine == launch.machine and not is_running(process) and ranks.published(left(rank)) is None:
            raise LostProcessError(
                f"Process {rank} has ended without a word: it was killed, or has failed. Nothing that was saved is "
                "lost: torchrun --max-restarts starts the processes again, or the same command goes on."
            )


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def came(rank: int) -> str:
    return f"came/{rank}"


def left(rank: int) -> str:
    return f"left/{rank}"
