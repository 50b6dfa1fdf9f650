"""`headstart evaluate` and `headstart predict`: task models put to work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.asking import CHARACTERS_AT_ONCE
from headstart.cli.options import LABELLED, UNLABELLED, Longest, Memory, Stride, input_settings, reader_options
from headstart.cli.weights import watched
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.tasks.base import Page, Task, Writer
    from headstart.transfer.task_model import TaskModel

PREDICTED_AT_ONCE = 256
SQUAD = "squad"
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a task model.")]
Precision = Annotated[str, typer.Option("--precision", help="float32, or int8 (BERT only: faster, nearly the same).")]
ReadAs = Annotated[
    str | None,
    typer.Option("--task", help="A BERT classifier from elsewhere: classify, or pair (nli) if it reads pairs."),
]
NoAnswerThreshold = Annotated[
    float | None,
    typer.Option(
        "--no-answer-threshold",
        help='qa: give "no answer" if it scores higher than the best answer by more than this. Default: that of the '
        "run; a BERT from elsewhere always answers.",
    ),
]
Predictions = Annotated[
    Path | None,
    typer.Option("--predictions", metavar="FILE", help="qa: also write predictions.json, as SQuAD's scorers read it."),
]


@reader_options(LABELLED)
def evaluate(
    run: RunArgument,
    *,
    data: Annotated[Path, typer.Option("--data", metavar="F", help="Labelled examples.")],
    task: ReadAs = None,
    longest: Longest = None,
    stride: Stride = None,
    memory: Memory = None,
    no_answer_threshold: NoAnswerThreshold = None,
    precision: Precision = "float32",
    predictions: Predictions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Give the figures as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the figures only.")] = False,
    reading: dict[str, Any],
) -> None:
    """Score a task model on labelled examples."""
    from headstart.report.wording import percent
    from headstart.transfer.evaluate import evaluate_model

    loaded = open_model(run, task, precision, {"longest": longest, "stride": stride}, no_answer_threshold, memory)
    examples = input_settings(type(loaded.task), reading)
    pages = [] if predictions is None else [PredictionsFile(loaded.task, predictions)]
    done = watched(evaluate_model(loaded, data, examples, run), quiet)
    for page in pages:
        page.add(done.pairs)
        page.save()
    for notice in [] if quiet else loaded.task.notices(done.path, examples):
        tell(notice)
    found = done.scores()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    scores = ", ".join(f"{title} {percent(found[name])}" for name, title in done.task.score_titles().items())
    typer.echo(f"{found['examples']:,} {loaded.task.many}: {scores}")
    for line in done.task.describe(found):
        typer.echo(line)
    if found["truncated"]:
        typer.echo(f"{loaded.task.cut_note(found['truncated'], loaded.together)}.")


@reader_options(UNLABELLED)
def predict(
    run: RunArgument,
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="F",
            help="Lines, .jsonl, .csv, .tsv, .parquet, CoNLL columns, SQuAD's .json; - is stdin, the default. "
            "pair: lines have a tab between the two texts. coref: a text file is one document.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option("--context", metavar="F", help="qa: a text to ask about. Without --question, lines of stdin ask."),
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option("--question", help="qa: a question about --context; may be repeated.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="classify, pair: tsv, json, csv. tag, srl, coref: conll, json, view. qa: tsv, json, squad, view.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --to json.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="tag, srl, coref: also write a page to look at.")
    ] = None,
    predictions: Predictions = None,
    task: ReadAs = None,
    longest: Longest = None,
    stride: Stride = None,
    memory: Memory = None,
    no_answer_threshold: NoAnswerThreshold = None,
    precision: Precision = "float32",
    reading: dict[str, Any],
) -> None:
    """Answer for every text of a file, in its order; a blank line gets an empty answer."""
    from headstart.cli.asking import STANDARD_INPUT, asked, check_task, check_ways
    from headstart.config import pick

    check_ways(source, context, question or ())
    loaded = open_model(run, task, precision, {"longest": longest, "stride": stride}, no_answer_threshold, memory)
    kind = loaded.task
    check_task(kind, run, source, context)
    config = input_settings(type(kind), reading)
    writer = pick(kind.writers(), "json" if as_json else to or kind.default_format(sys.stdout.isatty()), "format")(kind)
    pages: list[Page[Any, Any]] = [] if html is None else [kind.page(html)]
    if predictions is not None:
        pages.append(PredictionsFile(kind, predictions))
    if context is None:
        chunks = in_chunks(kind.read_inputs(source or STANDARD_INPUT, config), kind.key)
    else:
        chunks = asked(context, question or ())
    truncated = answer_all(loaded, chunks, writer, pages)
    if truncated:
        typer.echo(f"headstart: {kind.cut_note(truncated, loaded.together)}.", err=True)


def open_model(
    run: Path,
    task: str | None,
    precision: str,
    lengths: dict[str, int | None],
    threshold: float | None,
    memory: str | None,
) -> TaskModel[Any, Any]:
    """A task model, with other lengths of its sequences and windows, another threshold, and another bound of memory,
    where they are given."""
    from headstart.config import resolve, settings_of
    from headstart.transfer.loading import load_task_model, with_memory, with_threshold

    loaded = load_task_model(run, precision=precision, task=task)
    if threshold is not None:
        loaded = with_threshold(loaded, threshold, run)
    if memory is not None:
        loaded = with_memory(loaded, memory, run)
    given = {name: value for name, value in lengths.items() if value is not None}
    if not given:
        return loaded
    return replace(loaded, config=resolve(type(loaded.config), settings_of(loaded.config) | given, "the options"))


def answer_all(
    loaded: TaskModel[Any, Any],
    chunks: Iterator[list[Any]],
    writer: Writer[Any, Any],
    pages: Sequence[Page[Any, Any]],
) -> int:
    """Write the answers as they come; the number of examples that were truncated."""
    truncated = 0
    told: str | None = None
    write(writer.begin())
    for examples in chunks:
        note = loaded.task.memory_note(loaded.model.head, examples)
        if note is not None and note != told:
            tell(note)
            told = note
        found = loaded.answers(examples)
        pairs = list(zip(examples, found.answers, strict=True))
        write(writer.lines(pairs))
        for page in pages:
            page.add(pairs)
        truncated += found.truncated
    write(writer.end())
    for page in pages:
        page.save()
    return truncated


class PredictionsFile:
    """SQuAD's predictions.json, written when all answers are there. A `Page`."""

    def __init__(self, task: Task[Any, Any], path: Path) -> None:
        from headstart.errors import ConfigError

        formats = task.writers()
        if SQUAD not in formats:
            raise ConfigError(
                f"--predictions is for question answering; {task.title} gives predict --to {', '.join(formats)}."
            )
        if path.is_dir():
            raise ConfigError(f"--predictions {path}: is a folder; give the name of a file.")
        self.path = path
        self.writer = formats[SQUAD](task)
        self.parts = [self.writer.begin()]

    def add(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.parts.append(self.writer.lines(pairs))

    def save(self) -> None:
        from headstart.atomic import write_text

        write_text(self.path, "".join([*self.parts, self.writer.end()]))


def tell(note: str) -> None:
    typer.echo(f"headstart: {note}", err=True)


def write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def in_chunks(examples: Iterator[Any], text_of: Callable[[Any], str]) -> Iterator[list[Any]]:
    """Examples to be answered together: fewer of long ones, so that answers come soon and take little memory.

    What stands before a line that cannot be read is answered before that is told.
    """
    chunk: list[Any] = []
    characters = 0
    try:
        for example in examples:
            chunk.append(example)
            characters += len(text_of(example))
            if len(chunk) == PREDICTED_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
                yield chunk
                chunk, characters = [], 0
    except HeadstartError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
