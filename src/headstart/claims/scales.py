"""How large the experiments are. Every claim takes its sizes from here, and from nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from headstart.claims.layouts import Role

How = Literal["scratch", "frozen", "finetune"]
"""What a fit does with its encoder."""
Fitting = Mapping[How, Mapping[str, int | float]]
"""Settings of fits ([fitting] of a transfer) that differ from the defaults, by how an encoder is used."""


@dataclass(frozen=True, slots=True)
class FitSizes:
    """How much of a task is learned, and how."""

    labels: tuple[int, ...]
    """Numbers of labelled examples to train on, ascending."""
    dev: int
    """Dev examples, at most."""
    fitting: Fitting


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of all claims."""

    name: str
    labels: tuple[int, ...]
    """Numbers of labelled examples to train on, ascending."""
    seeds: int
    dev: int
    """Dev examples, at most."""
    fitting: Fitting
    steps: int
    """Of each short pretraining."""
    text_words: int
    """Words of unlabelled text, at most."""
    valid_words: int
    """Words of held-out text, at most."""
    domain_words: int
    """Words of a task's own text that encoders are brought to, at most."""
    cuts: tuple[int, ...]
    """Parts of the text that are compared with all of it: 16 for a sixteenth. Ascending, from 1."""
    pieces: int | None
    """In the vocabulary of a short BERT; None: as many as the text has."""
    six_tasks: Mapping[Role, FitSizes]
    """Of the claim about six tasks: examples of one task may cost a hundred times as much as those of another."""
    probe_words: int = 20_000
    """Words that a probe learns, at most, and a quarter as many texts."""

    @property
    def fits(self) -> FitSizes:
        """Of the claims that have one size for all tasks."""
        return FitSizes(self.labels, self.dev, self.fitting)


def few(labels: int, dev: int, steps: Mapping[How, int], batch: int = 16) -> FitSizes:
    """So many labelled examples, learned in so many steps. batch: of a fine-tuned encoder."""
    fixed = {"epochs": 0.1, "evaluations": 2}  # epochs so few that `min_steps` decides
    fitting: dict[How, dict[str, int | float]] = {how: {**fixed, "min_steps": count} for how, count in steps.items()}
    fitting["finetune"]["batch"] = batch
    return FitSizes((labels,), dev, fitting)


FEW_LOOKS = {"evaluations": 5, "evaluate_examples": 500}
"""On dev during a fit: more would take as long as the fit."""
THOUSAND = FitSizes((1000,), 1000, {how: {"evaluations": 5} for how in get_args(How)})
"""Tasks keep their own number of steps, which was chosen with about so many examples."""
SHORT: tuple[Role, ...] = ("questions", "inference", "roles", "ner", "sst5")
"""Tasks whose examples are sentences or paragraphs, and not whole documents."""
SCALES = {
    "full": Scale(
        name="full",
        labels=(50, 200, 1000),
        seeds=3,
        dev=1000,
        fitting={"scratch": FEW_LOOKS, "frozen": FEW_LOOKS, "finetune": {**FEW_LOOKS, "min_steps": 100}},
        steps=3000,
        text_words=3_000_000,
        valid_words=40_000,
        domain_words=400_000,
        cuts=(1, 2, 4, 8, 16),
        pieces=8000,
        six_tasks={**dict.fromkeys(SHORT, THOUSAND), "chains": replace(THOUSAND, labels=(40,), dev=30)},
    ),
    "quick": Scale(
        name="quick",
        labels=(50, 200),
        seeds=2,
        dev=300,
        fitting={
            # With 80 steps, scratch has not begun to find entities, and everything would look good beside it.
            "scratch": {"min_steps": 240, "evaluations": 12},
            "frozen": {"min_steps": 80, "evaluations": 4},
            "finetune": {"min_steps": 80, "epochs": 3.0, "evaluations": 3, "batch": 16},
        },
        steps=300,
        text_words=300_000,
        valid_words=8_000,
        domain_words=40_000,
        cuts=(1, 4, 16),
        pieces=4000,
        six_tasks={
            # Few steps where they take long; elsewhere scratch has more than the others, as above.
            "questions": few(200, 120, {"scratch": 80, "frozen": 80, "finetune": 24}),
            "inference": few(200, 300, {"scratch": 240, "frozen": 80, "finetune": 50}),
            "roles": few(200, 150, {"scratch": 240, "frozen": 240, "finetune": 80}, batch=8),
            "chains": few(8, 6, {"scratch": 80, "frozen": 80, "finetune": 24}, batch=1),
            "ner": few(200, 300, {"scratch": 240, "frozen": 80, "finetune": 50}),
            "sst5": few(200, 300, {"scratch": 240, "frozen": 80, "finetune": 50}),
        },
        probe_words=4000,
    ),
}
