"""How many texts a frozen encoder reads for the pairs and questions of a file, where each distinct text is read once.

    python -m bench.encoder_runs --data DATA [--model minilm]

Premises stand in several pairs, contexts in several questions. `standing` are the texts as they stand in the file,
`distinct` is what the features of `transfer` read, `evaluate` what `evaluate` and `predict` read, who start anew when
the vectors of so much text would take too much memory. No encoder is run here; `counted` counts those that are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.samples import snli_dev, snli_train, squad_dev, squad_train
from bench.works import SNLI_DEV, SNLI_TRAIN, SQUAD_DEV, SQUAD_TRAIN
from headstart.batches.rows import AnyText
from headstart.encoders.base import Encoder
from headstart.tasks.base import Task
from headstart.tasks.pair import Pair
from headstart.tasks.qa import Qa
from headstart.training.seeding import freshly_initialised
from headstart.transfer.fit import untrained
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.task_model import TaskModel

FILES: dict[str, tuple[type[Task[Any, Any]], Callable[[Path], list[Any]]]] = {
    SNLI_TRAIN: (Pair, snli_train),
    SNLI_DEV: (Pair, snli_dev),
    SQUAD_TRAIN: (Qa, squad_train),
    SQUAD_DEV: (Qa, squad_dev),
}


@dataclass(slots=True)
class Runs:
    """Texts that an encoder read, windows of long ones counted each, and their tokens with the special ones."""

    texts: int = 0
    tokens: int = 0


@contextmanager
def counted(encoder: Encoder) -> Iterator[Runs]:
    """What this encoder reads by its inference path."""
    runs, infer = Runs(), encoder.infer

    def counting(ids: Any, mask: Any, *more: Any, **named: Any) -> Any:
        runs.texts += len(mask)
        runs.tokens += int(mask.sum())
        return infer(ids, mask, *more, **named)

    encoder.infer = counting  # type: ignore[method-assign]
    try:
        yield runs
    finally:
        del encoder.infer


def frozen_model(start: Start, task: Task[Any, Any]) -> TaskModel[Any, Any]:
    """What `transfer --how frozen` begins with; it takes as long as after the fit."""
    config = settings_for(type(task), start, "frozen")
    return freshly_initialised(0, partial(untrained, start, config, task, [])).frozen()


def planned(model: TaskModel[Any, Any], examples: Sequence[Any]) -> dict[str, Runs]:
    """The runs of the three ways to read these examples."""
    lengths: dict[AnyText, int] = {}

    def runs_of(texts: Iterable[AnyText]) -> Runs:
        runs = Runs()
        for text in texts:
            if text not in lengths:
                lengths[text] = len(model._row(model.encoder, model.tokenizer, text).ids)
            runs.texts += 1
            runs.tokens += lengths[text]
        return runs

    def texts_of(chunk: Sequence[Any]) -> list[AnyText]:
        passages = [passage for example in chunk for passage in model.task.passages(example, model)]
        return [text for passage in passages for text in model.given_to_encoders(passage)[0]]

    every = texts_of(examples)
    by_chunk = [text for chunk in model._chunks(list(examples)) for text in dict.fromkeys(texts_of(chunk))]
    return {"standing": runs_of(every), "distinct": runs_of(dict.fromkeys(every)), "evaluate": runs_of(by_chunk)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.encoder_runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {', '.join(FILES)}")
    parser.add_argument("--model", default="minilm")
    given = parser.parse_args(arguments)
    start = open_start(given.model)
    for file, (kind, read) in FILES.items():
        examples = read(given.data)
        task = kind.learn(examples)
        plan = planned(frozen_model(start, task), examples)
        told = "; ".join(f"{name} {runs.texts:,} texts, {runs.tokens:,} tokens" for name, runs in plan.items())
        saved = plan["standing"].tokens / plan["evaluate"].tokens
        print(f"{file}: {len(examples):,} {task.many}: {told}; {saved:.2f} times fewer tokens in evaluate", flush=True)


if __name__ == "__main__":
    main()
