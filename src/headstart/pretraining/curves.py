"""Training curves for TensorBoard, where it is installed. log.jsonl always has the same numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headstart.pretraining.loop import Step


class Curves:
    """Draws a step's numbers, or nothing without a writer."""

    def __init__(self, writer: Any | None) -> None:
        self.writer = writer

    def add(self, step: Step) -> None:
        if self.writer is None:
            return
        self._draw("train", {"loss": step.result.loss, **step.result.parts}, step.number)
        self._draw("speed", {"units_per_second": step.units_per_second, "rate": step.rate}, step.number)
        self._draw("held_out", step.evaluation or {}, step.number)

    def _draw(self, group: str, values: Mapping[str, float], number: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(f"{group}/{name}", value, number)  # type: ignore[union-attr]


@contextmanager
def open_curves(folder: Path, steps_done: int) -> Iterator[Curves]:
    """Curves in `folder`/tensorboard, without what an earlier, killed process drew past `steps_done`."""
    if importlib.util.find_spec("tensorboard") is None:
        yield Curves(None)
        return
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"), purge_step=steps_done + 1)
    try:
        yield Curves(writer)
    finally:
        writer.close()
