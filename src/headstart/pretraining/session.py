"""One process working on a run: from its newest checkpoint to the end or to a stop, with everything saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from headstart.checksums import remove_sums, write_sums
from headstart.errors import BudgetError, Remedy
from headstart.pretraining.curves import Curves, open_curves
from headstart.pretraining.events import Finished, Planned
from headstart.pretraining.following import Leader
from headstart.pretraining.loop import Clock, Plan, Step, StepPlan, TimePlan, TrainingConfig, train
from headstart.progress import Notice
from headstart.report.wording import duration
from headstart.training.run import CheckpointNote, RunDirectory
from headstart.training.tensors import read_tensors, write_tensors

LAST_EVALUATION_SHARE = 0.08
"""Of a time budget: the last evaluation takes no more, reading less of the held-out text if it must."""
SAVING_SHARE = 0.05
"""Of the time: checkpoints that are slow to write are written less often."""
LEAST_TRAINING_SHARE = 0.1
"""Of a time budget: with less than this left for training, the run is refused."""
SHORT_TRAINING_SHARE = 0.5
"""Of a time budget: with less than this left for training, the run says so at its end."""
BUSY_SHARE = 0.5
"""Of the cores' time while it trained: a run that got less says so."""
LITTLE = 0.01
"""Passes over the text below which next to nothing is learned."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run before its first step."""

    kind: str
    size: str | None
    vocabulary: int
    documents: int
    units: int
    valid_units: int
    shard_bytes: int
    processes: int = 1
    """That share the training."""


class Session:
    """Runs the loop over a learner, and keeps log, checkpoints, weights and card up to date in a locked run."""

    def __init__(
        self,
        run: RunDirectory,
        learner: Leader,
        config: TrainingConfig,
        clock: Clock,
        facts: Facts,
        write_card: Callable[[Finished, bool], None],
    ) -> None:
        """write_card: called after every save, with the results so far and whether the run is complete."""
        self.run, self.config, self.clock, self.facts = run, config, clock, facts
        self.learner = learner
        self.write_card = write_card
        self.progress = CheckpointNote()
        self.scores: dict[str, float] = {}
        self.saved_at = time.monotonic()
        self.saving_took = 0.0
        self.evaluated_per_second: float | None = None
        self.usage = CoreUsage()

    def go(self) -> Generator[Notice | Planned | Step | Finished, None, None]:
        yield from self._restore()
        first, took = self._first_evaluation()
        plan = self._plan(first, took)
        yield self._planned(plan, first)
        self.usage = CoreUsage()
        with open_curves(self.run.path, self.progress.steps) as curves:
            try:
                for step in self._steps(plan):
                    self._record(step, curves)
                    yield step
            except GeneratorExit:
                self._stop()
                raise
        if self.config.budget is None and self.facts.valid_units > self.config.evaluate_units:
            yield Notice(f"Measuring all {self.facts.valid_units:,} held-out units.")
        yield self._finish()

    def _restore(self) -> Generator[Notice, None, None]:
        self.progress, state, broken = self.run.restore()
        remove_sums(self.run.path)
        yield from map(Notice, broken)
        if state is not None:
            self.learner.restore(state)
            yield Notice(f"Going on from step {self.progress.steps:,}.")
        self.run.rewind_log(self.progress.log_bytes)
        self.clock.spent_before = self.progress.elapsed

    def _first_evaluation(self) -> tuple[dict[str, float], float]:
        """Held-out scores before training, and the seconds they took: a time budget must leave room for the last."""
        if self.progress.steps and self.config.budget is None:
            return {}, 0.0
        began = time.monotonic()
        scores = self.learner.evaluate(self.config.evaluate_units)
        if scores and not self.progress.steps:
            self.run.log({"step": 0, "elapsed": round(self.clock.elapsed(), 2), "evaluation": scores})
        return scores, time.monotonic() - began

    def _plan(self, first: dict[str, float], evaluation_took: float) -> Plan:
        if self.config.budget is None:
            steps = self.config.steps
            if steps is None:
                steps = max(1, round((self.config.epochs or 1) * self.learner.steps_per_epoch()))
            return StepPlan(steps)
        budget = self.config.budget
        last_took = evaluation_took
        if "units" in first:
            self.evaluated_per_second = first["units"] / max(evaluation_took, 1e-3)
            whole_took = self.facts.valid_units / self.evaluated_per_second
            last_took = max(evaluation_took, min(LAST_EVALUATION_SHARE * budget, whole_took))
        deadline = budget - last_took - evaluation_took - 1.0
        if not self.progress.steps:
            self.progress = replace(self.progress, began=self.clock.elapsed())
            if deadline - self.progress.began < LEAST_TRAINING_SHARE * budget:
                raise BudgetError(
                    f"A budget of {budget:.0f} s leaves no time to train: {self.progress.began:.0f} s went into "
                    f"reading the text and {last_took + evaluation_took:.0f} s are needed for the last evaluation.",
                    Remedy(
                        "Give more, such as {}; the text is kept as ids, so the next run starts at once.",
                        f"training.budget={2 * budget:.0f}",
                        f"--budget {2 * budget:.0f}s",
                    ),
                )
        return TimePlan(self.clock, self.progress.began, deadline)

    def _planned(self, plan: Plan, first: dict[str, float]) -> Planned:
        facts = self.facts
        return Planned(
            kind=facts.kind,
            size=facts.size,
            vocabulary=facts.vocabulary,
            documents=facts.documents,
            units=facts.units,
            valid_units=facts.valid_units,
            out=self.run.path,
            unit=self.learner.unit,
            parameters=self.learner.parameter_count(),
            steps=plan.total if isinstance(plan, StepPlan) else None,
            steps_per_epoch=self.learner.steps_per_epoch(),
            budget=self.config.budget,
            memory_bytes=self.learner.memory_bytes(),
            disk_bytes=2 * self.learner.state_bytes() + 2 * self.learner.weight_bytes() + facts.shard_bytes,
            device=str(self.learner.device),
            threads=torch.get_num_threads(),
            processes=self.facts.processes,
            resumed_at=self.progress.steps,
            first_scores=first,
        )

    def _steps(self, plan: Plan) -> Generator[Step, None, None]:
        best = self.progress.best if self.progress.best is not None else float("inf")
        yield from train(self.learner, plan, self.config, self.clock, steps_done=self.progress.steps, best=best)

    def _record(self, step: Step, curves: Curves) -> None:
        self.progress = replace(
            self.progress,
            steps=step.number,
            elapsed=step.elapsed,
            units=self.progress.units + step.result.units,
        )
        self.run.log(log_line(step))
        curves.add(step)
        if step.evaluation is not None:
            self.scores = step.evaluation
        if step.is_best and step.evaluation is not None:
            best_step = step.number if self.learner.keeps_best else 0
            if best_step:
                write_tensors(self.run.best, self.learner.weights())
            self.progress = replace(self.progress, best=step.evaluation["perplexity"], best_step=best_step)
        if time.monotonic() - self.saved_at >= max(self.config.save_seconds, self.saving_took / SAVING_SHARE):
            self._save()

    def _save(self) -> None:
        began = time.monotonic()
        self.progress = replace(self.progress, log_bytes=self.run.log_bytes())
        self.learner.save(self.run, self.progress)
        self.write_card(self._finished(self.scores, self.progress.steps), False)
        self.saved_at = time.monotonic()
        self.saving_took = self.saved_at - began

    def _stop(self) -> None:
        """The caller left between two steps: the weights so far become usable, and the run can be resumed."""
        self._save()
        self.run.write_weights(self.learner.weights())
        write_sums(self.run.path)

    def _finish(self) -> Finished:
        trained_share = self.usage.share()
        self._save()
        kept = self.progress.best_step or self.progress.steps
        if kept != self.progress.steps:
            self.learner.load_weights(read_tensors(self.run.best))
        scores = self.learner.evaluate(self._last_evaluation_units())
        self.run.write_weights(self.learner.weights())
        finished = replace(self._finished(scores, kept), shortfalls=tuple(self._shortfalls(trained_share)))
        self.run.log(
            {
                "final": scores,
                "kept_step": kept,
                "elapsed": round(finished.elapsed, 2),
                "shortfalls": list(finished.shortfalls),
            }
        )
        self.run.sync_log()
        self.write_card(finished, True)
        write_sums(self.run.path)
        return finished

    def _shortfalls(self, core_share: float) -> Iterator[str]:
        """What kept the run from its training, in the sentences of `Finished`."""
        budget, began = self.config.budget, self.progress.began
        if budget is not None and budget - began < SHORT_TRAINING_SHARE * budget:
            yield (
                f"Reading the text took {duration(began)} of the {duration(budget)}. It is kept as ids: the same run "
                "would now train for longer."
            )
        if core_share < BUSY_SHARE and self.facts.processes == 1:  # several wait for each other
            yield (
                f"Other work took most of this machine: the run got {100 * core_share:.0f} % of the time of its "
                f"{torch.get_num_threads()} cores."
            )
        epochs = self.progress.steps / max(1, self.learner.steps_per_epoch())
        if epochs < LITTLE:
            yield f"It read {100 * epochs:.2g} % of the text once, and has hardly learned anything."

    def _last_evaluation_units(self) -> int | None:
        """All held-out text or, under a time budget, as much as there is time for; at least as much as on the way."""
        if self.config.budget is None or self.evaluated_per_second is None:
            return None
        seconds = self.config.budget - self.clock.elapsed() - 1.0
        return max(self.config.evaluate_units, int(0.9 * seconds * self.evaluated_per_second))

    def _finished(self, scores: dict[str, float], kept: int) -> Finished:
        return Finished(self.run.path, self.progress.steps, self.progress.units, self.clock.elapsed(), scores, kept)


class CoreUsage:
    """How much of the cores' time this process gets, from now on."""

    def __init__(self) -> None:
        self.began, self.cpu_began = time.monotonic(), time.process_time()

    def share(self) -> float:
        """1.0 if it is too early to say."""
        seconds = time.monotonic() - self.began
        if seconds < 1.0:
            return 1.0
        return (time.process_time() - self.cpu_began) / (seconds * torch.get_num_threads())


def log_line(step: Step) -> dict[str, Any]:
    line: dict[str, Any] = {
        "step": step.number,
        "loss": step.result.loss,
        **step.result.parts,
        "rate": step.rate,
        "units": step.result.units,
        "units_per_second": round(step.units_per_second, 1),
        "elapsed": round(step.elapsed, 2),
    }
    return line | ({"evaluation": step.evaluation, "best": step.is_best} if step.evaluation else {})
