"""How this process was started: alone, or by torchrun as one of several. Reads the environment; never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headstart.errors import ConfigError

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Set by torchrun for every process. With some of them missing, the process was started in another way."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The place of a process among those that were started together."""

    rank: int = 0
    world: int = 1
    """How many processes there are, on all machines."""
    local_rank: int = 0
    """Its number on its own machine, from 0."""
    machine: int = 0
    """The number of that machine."""
    machines: int = 1
    """How many machines there are."""
    joins: bool = False
    """Whether there is a launcher through which processes find each other."""
    local_world: int = 1
    """How many processes its machine has."""

    @property
    def is_first(self) -> bool:
        return self.rank == 0


def launch_of(environment: Mapping[str, str]) -> Launch:
    if not all(environment.get(name) for name in NEEDED):
        return Launch()

    def number(name: str, default: str | None = None) -> int:
        text = environment.get(name, default) or ""
        if not text.isdecimal():
            raise ConfigError(
                f"The environment variable {name} must be a whole number, as torchrun sets it; got '{text}'. Unset "
                "it, or start with torchrun."
            )
        return int(text)

    rank, world = number("RANK"), number("WORLD_SIZE")
    if rank >= world:
        raise ConfigError(f"The environment variable RANK must be below WORLD_SIZE; got {rank} of {world}.")
    return Launch(
        rank,
        world,
        local_rank=number("LOCAL_RANK", str(rank)),
        machine=number("GROUP_RANK", "0"),
        machines=number("GROUP_WORLD_SIZE", "1"),
        joins=True,
        local_world=number("LOCAL_WORLD_SIZE", "1"),
    )
