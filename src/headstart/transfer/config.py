"""The settings of a transfer: how an encoder is carried over, the mix, the head, the fit."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import Field, create_model

from headstart.config import Section
from headstart.heads.recurrent import RecurrentConfig
from headstart.mix import MixConfig
from headstart.tasks.base import Task
from headstart.transfer.features import Precision
from headstart.transfer.fitting import FittingConfig

How = Literal["frozen", "finetune", "gradual", "scratch"]


class TransferConfig(Section):
    """How an encoder is carried over to a task."""

    how: How = "frozen"
    """frozen: the encoder's features; finetune, gradual: its parameters are trained on; scratch: all start random."""
    longest: int = Field(default=256, ge=1)
    """Tokens (words, or BERT's pieces) in one sequence. Classification reads the first and the last half of them of a
    longer text; tasks that answer for every word read overlapping windows."""
    stride: int | None = Field(default=None, ge=0)
    """Tokens that two neighbouring windows of a long text share; unset: a quarter of `longest`."""
    precision: Precision = "auto"
    """Cached features: float32, float16, or auto, which is float32 up to 2 GB."""
    mix: MixConfig = MixConfig()
    network: RecurrentConfig = RecurrentConfig()
    fitting: FittingConfig = FittingConfig()


@cache
def config_for(task: type[Task[Any, Any]]) -> type[TransferConfig]:
    """The settings of a transfer to this task: [network] has the keys of the task's own head."""
    return create_model("TransferConfig", __base__=TransferConfig, network=(task.Network, task.Network()))
