"""The progress of a job: a bar with rate and time left on a terminal, plain lines in a log, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress as rich_progress
from rich.console import Console

from headstart.pretraining.events import Finished, Planned
from headstart.pretraining.loop import Step
from headstart.pretraining.pretrain import Event as PretrainEvent
from headstart.progress import BYTES, Notice, Progress
from headstart.report.wording import duration, percent, score
from headstart.transfer.fitting import FitStep
from headstart.transfer.transfer import SeedDone, TransferEvent

Event = PretrainEvent | TransferEvent
SECONDS_BETWEEN_LINES = 10.0
MEASURED_STEPS = 5


def show_nothing(event: Event) -> None:
    pass


@contextmanager
def display(quiet: bool) -> Iterator[Callable[[Event], None]]:
    """A function that shows the events of a run as they come."""
    if quiet:
        yield show_nothing
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        with rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TextColumn("{task.fields[figures]}"),
            rich_progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            # On a terminal, lines that are printed meanwhile go above the bar; those for a file must stay in it.
            redirect_stdout=sys.stdout.isatty(),
        ) as bars:
            yield Bars(console, bars)
    else:
        yield Lines(console)


class Lines:
    """Plain lines: results at once, progress every ten seconds and at the end of each stage that was shown."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.unit = "tokens"
        self.last = 0.0
        self.best = float("inf")
        self.first_step: int | None = None
        self.stage = ""
        self.stage_began = 0.0
        self.shown = False
        """Whether the current stage has a line already; then its last line is shown too."""
        self.pending: str | None = None
        """The newest line of the current stage, if it was not shown."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.say(event.text)
        elif isinstance(event, Planned):
            self.unit = event.unit
            self.end_stage()
            self.say(plan_text(event))
        elif isinstance(event, Finished):
            self.end_stage()
            self.say(finished_text(event))
        elif isinstance(event, Step):
            self.step(event)
        elif isinstance(event, FitStep):
            self.fit_step(event)
        elif isinstance(event, SeedDone):
            self.end_stage()
            self.say(seed_text(event))
        elif isinstance(event, Progress):
            self.reading(event)

    def heading(self, text: str) -> None:
        """Another run begins."""
        self.end_stage()
        self.say(f"\n== {text} ==")
        self.best, self.first_step = float("inf"), None

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def step(self, step: Step) -> None:
        if self.first_step is None:
            self.first_step = step.number
        if step.number == self.first_step + MEASURED_STEPS - 1:
            self.say(
                f"Measured over {MEASURED_STEPS} steps: {step.units_per_second:,.0f} {self.unit}/s, "
                f"about {duration(step.seconds_left)} left."
            )
        if step.evaluation is not None:
            self.best = min(self.best, step.evaluation["perplexity"])
            self.say(f"step {step.number:,}: held out {scores_text(step.evaluation)}; best so far {self.best:,.2f}")
        self.progress(step)

    def progress(self, step: Step) -> None:
        self.move("training", step.progress, f"step {step.number:,}", figures(step, self.unit))

    def fit_step(self, step: FitStep) -> None:
        self.move("fitting", step.progress, f"fitting: step {step.number:,}", fit_figures(step))

    def reading(self, reading: Progress) -> None:
        self.start_stage(reading.stage)
        share = reading.done / reading.total if reading.total else None
        self.move(reading.stage, share, reading.stage, reading_figures(reading, time.monotonic() - self.stage_began))

    def move(self, stage: str, share: float | None, label: str, figures: str) -> None:
        """How far a stage is. share: of its work, None where the end is not known."""
        self.start_stage(stage)
        self.pending = f"{label}{'' if share is None else f' ({100 * share:.0f} %)'}: {figures}"
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_LINES:
            self.last, self.shown = now, True
            self.say(self.pending)
            self.pending = None

    def start_stage(self, stage: str) -> None:
        if stage != self.stage:
            self.end_stage()
            # Counted from the start of the stage: a rate over its first instant would mean nothing.
            self.stage, self.stage_began = stage, time.monotonic()
            self.last = self.stage_began

    def end_stage(self) -> None:
        """A log that shows a stage at 19 % also shows where it ended."""
        if self.shown and self.pending is not None:
            self.say(self.pending)
        self.stage, self.shown, self.pending = "", False, None


class Bars(Lines):
    """The same lines above one moving bar per stage."""

    def __init__(self, console: Console, bars: rich_progress.Progress) -> None:
        super().__init__(console)
        self.bars = bars
        self.bar = ""
        self.task: rich_progress.TaskID | None = None

    def move(self, stage: str, share: float | None, label: str, figures: str) -> None:
        self.start_stage(stage)
        if self.task is None or self.bar != stage:
            if self.task is not None:
                self.bars.remove_task(self.task)
            self.task = self.bars.add_task(stage, total=1.0, figures="")
            self.bar = stage
        self.bars.update(self.task, completed=share or 0.0, figures=figures)


def reading_figures(reading: Progress, seconds: float) -> str:
    """The rate in the stage's own unit, and the time left; of a wait, which has no unit, how long it is."""
    if not reading.unit:
        return f"{duration(seconds)} so far"
    rate = reading.done / seconds if seconds > 0 else 0.0
    pace = f"{rate / 1e6:.1f} MB/s" if reading.unit == BYTES else f"{rate:,.0f} {reading.unit}/s"
    if not reading.total:
        return f"{pace}, {reading.done:,} so far"
    left = seconds * (reading.total - reading.done) / reading.done if reading.done else 0.0
    return f"{pace}, {duration(left)} left"


def figures(step: Step, unit: str) -> str:
    return f"loss {step.result.loss:.3f}, {step.units_per_second:,.0f} {unit}/s, {duration(step.seconds_left)} left"


def fit_figures(step: FitStep) -> str:
    rate = f"{step.per_second:,.1f} steps/s"
    return f"loss {step.loss:.3f}, {rate}, {duration(step.seconds_left)} left at most"


def seed_text(done: SeedDone) -> str:
    fitted = done.fitted
    task = fitted.model.task
    flag = f"; it COLLAPSED: every {task.one} gets the same answer" if fitted.collapsed else ""
    return (
        f"seed {done.seed}: dev {task.metric.title} {percent(fitted.score)}, step {fitted.best_step:,} of "
        f"{fitted.steps:,}, {duration(fitted.seconds)}{flag}"
    )


def scores_text(scores: dict[str, float]) -> str:
    shown = {name: value for name, value in scores.items() if name != "units"}
    return ", ".join(f"{name.replace('_', ' ')} {score(name, value)}" for name, value in shown.items())


def plan_text(plan: Planned) -> str:
    name = f"{plan.kind} {plan.size}" if plan.size else plan.kind
    if plan.steps is None:
        length = f"{duration(plan.budget or 0)} in all"
    else:
        length = f"{plan.steps:,} steps ({plan.steps / plan.steps_per_epoch:,.1f} passes over the text)"
    lines = [
        f"{name}: {plan.parameters:,} parameters, vocabulary {plan.vocabulary:,}; {length}"
        + (f", from step {plan.resumed_at:,}" if plan.resumed_at else ""),
        f"text: {plan.documents:,} documents, {plan.units:,} tokens; held out {plan.valid_units:,} tokens",
        f"needs about {size_text(plan.memory_bytes)} of memory and {size_text(plan.disk_bytes)} of disk; "
        f"{plan.device}, {workers_text(plan)}; writing {plan.out}",
    ]
    if plan.first_scores:
        lines.append(f"before training: held out {scores_text(plan.first_scores)}")
    return "\n".join(lines)


def workers_text(plan: Planned) -> str:
    threads = f"{plan.threads} threads"
    return threads if plan.processes == 1 else f"{plan.processes} processes with {threads} each"


def finished_text(finished: Finished) -> str:
    what = f"held out {scores_text(finished.scores)}" if finished.scores else "nothing was held out"
    short = "".join(f"Note: {shortfall}\n" for shortfall in finished.shortfalls)
    return (
        f"Done in {duration(finished.elapsed)}, {finished.steps:,} steps: {what}.\n{short}"
        f"{finished.out}: weights of step {finished.kept_step:,}; see {finished.out / 'CARD.md'}"
    )


def size_text(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
