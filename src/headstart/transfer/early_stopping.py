"""When a fit stops, and which of its weights are kept."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from headstart.model import Model
from headstart.progress import Progress
from headstart.tasks.base import Task
from headstart.training.coordination import told
from headstart.training.ranks import Ranks
from headstart.training.tensors import copy_state
from headstart.transfer.answering import ModelInput, answers_from, score_together

if TYPE_CHECKING:
    from headstart.transfer.fitting import FittingConfig


class EarlyStopping:
    """Evaluates on dev, keeps the best weights, and says when to stop."""

    def __init__(
        self, model: Model, task: Task[Any, Any], trained: dict[str, nn.Parameter], dev: ModelInput | None,
        config: FittingConfig, ranks: Ranks, name: str,
    ) -> None:  # fmt: skip
        """ranks: divide each evaluation; the first one decides. name: of the fit, among those of a job."""
        self.model, self.task, self.trained, self.dev, self.config = model, task, trained, dev, config
        self.ranks, self.name = ranks, name
        self.best: tuple[float, float] | None = None
        self.best_step = 0
        self.since_best = 0
        self.kept: dict[str, Tensor] = {}
        self.examples: list[int] = []
        if dev is not None:
            # A fixed choice spread over the whole file, which may list one class after the other.
            n = len(dev)
            self.examples = [int(i) for i in np.unique(np.linspace(0, n - 1, min(n, config.evaluate_examples)).round())]

    @property
    def should_stop(self) -> bool:
        return self.since_best >= self.config.patience

    def evaluate(self, step: int) -> Generator[Progress, None, dict[str, float] | None]:
        if self.dev is None:
            return None
        score, loss = yield from self._score_and_loss(self.dev, f"{self.name}/evaluation/{step}")
        # Small dev sets often give equal scores: the step with the lower loss is then the better one.
        if self.best is None or (score, -loss) > self.best:
            self.best, self.best_step, self.since_best = (score, -loss), step, 0
            self.kept = {name: p.detach().clone() for name, p in self.trained.items()}
        else:
            self.since_best += 1
        return {self.task.metric.name: score, "loss": loss}

    def _score_and_loss(self, dev: ModelInput, key: str) -> Generator[Progress, None, tuple[float, float]]:
        """In all processes the numbers of the first one: rounding must not lead them to different decisions."""
        scored = score_together(self.model, self.task, dev, self.examples, with_loss=True, ranks=self.ranks)
        if scored is None:
            score, loss = yield from told(self.ranks, key)
            return score, loss
        answers = answers_from(self.model, self.task, dev, scored)
        gold = [dev.examples[i] for i in self.examples]
        found = self.task.metric.of(self.task.all_counts(gold, answers)), scored.mean_loss
        self.ranks.publish(key, found)
        return found

    def restore(self) -> None:
        if self.kept:
            copy_state(self.trained, self.kept)
