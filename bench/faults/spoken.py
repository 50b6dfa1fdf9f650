"""Standard output that takes no more, as on a full disk: every verb that speaks ends in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb

GROUP = "standard output"
FULL = "/dev/full"


def run(inputs: Inputs, setting: Setting) -> Iterator[Outcome]:
    folder, home = setting.folder, setting.folder / "home"
    model = folder / "model"
    fitted = run_verb(JOBS["transfer"].command(inputs, model), home, folder)
    if fitted.code != 0:
        raise RuntimeError(f"transfer: {fitted}")
    for number in setting.numbers(GROUP, len(SPEAKING), 2):
        verb = list(SPEAKING)[number]
        usual, shown = (
            run_verb([verb, *SPEAKING[verb](inputs, model, folder / f"{verb}-{out}")], home, folder, prepare)
            for out, prepare in (("usual", None), ("full", on_a_full_disk))
        )
        how, wrong = shown.judged()
        if usual.code != 0:
            how, wrong = "invalid", f"with room, too: {usual.errors[-300:]}"
        elif how != "sentence":
            wrong = wrong or "what it says was lost without a word"
        yield Outcome("refused", GROUP, number, how, f"{verb}: {wrong}" if wrong else "")


def on_a_full_disk() -> None:
    os.dup2(os.open(FULL, os.O_WRONLY), 1)


def job(inputs: Inputs, out: Path, name: str) -> list[str]:
    """The arguments of a job, without its verb."""
    return JOBS[name].command(inputs, out)[1:]


SPEAKING: dict[str, Callable[[Inputs, Path, Path], list[str]]] = {
    "predict": lambda inputs, model, _: [str(model), "--in", str(inputs.text)],
    "evaluate": lambda inputs, model, _: [str(model), "--data", str(inputs.train)],
    "fill": lambda inputs, *_: [str(inputs.run), "the [MASK] likes the film ."],
    "next": lambda *_: ["elmo-mini", "the cat"],
    "score": lambda inputs, *_: [str(inputs.run), "--in", str(inputs.text)],
    "neighbours": lambda inputs, *_: [str(inputs.vectors), "film"],
    "attend": lambda inputs, *_: [str(inputs.run), "the cat likes the film ."],
    "layers": lambda _, model, __: [str(model)],
    "get": lambda *_: ["--list"],
    "import": lambda inputs, _, out: [str(inputs.run), "--out", str(out)],
    "export": lambda inputs, _, out: [str(inputs.run), "--to", "hf", "--out", str(out)],
    "transfer": lambda inputs, _, out: [part for part in job(inputs, out, "transfer") if part != "--quiet"],
    "compare": lambda inputs, _, out: [part for part in job(inputs, out, "compare") if part != "--quiet"],
    "--version": lambda *_: [],
    "--help": lambda *_: [],
}
"""Each verb with its arguments, given the inputs, a task model and a place for results."""
