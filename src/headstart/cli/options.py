"""The options that several commands have, and how they become settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headstart.config import Section
    from headstart.tasks.base import Task as AnyTask

TASKS = (
    "classify (also called sentiment): one label per text, any number of labels. "
    "tag (also called ner): one tag per word, such as named entities or parts of speech. "
    "pair (also called nli): one label per pair of texts, such as entailment or paraphrase. "
    "qa: the part of a text that answers a question. "
    "srl: semantic roles, who did what to whom for each predicate. "
    "coref: which words of a document refer to the same entity."
)
SOURCES = "A run, a Hugging Face BERT folder, options.json,weights.hdf5, word vectors, hf:org/name or a catalogue name."

Task = Annotated[str, typer.Argument(metavar="TASK", help=TASKS)]
SourceArgument = Annotated[str, typer.Argument(metavar="SRC", help=SOURCES)]
Longest = Annotated[
    int | None, typer.Option("--longest", help="Tokens in one sequence: words, or pieces of words where BERT reads.")
]
Stride = Annotated[
    int | None,
    typer.Option("--stride", help="Tokens that neighbouring windows of a long text share (tag, qa, srl, coref)."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as fitting.epochs=5.")
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="coref: what the chains of a document may take, such as 2GB."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show the result only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Give the result as JSON.")]
Among = Annotated[
    list[str] | None, typer.Option("--among", metavar="TEXT", help="Text whose sentences are searched; several times.")
]
OneLayer = Annotated[int | None, typer.Option("--layer", help="Number of the layer, from 0. Default: the top.")]
TextField = Annotated[str | None, typer.Option("--field", help="Tables: the column with the text.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Also write a picture, as .svg, .png or .pdf.")
]

READER_OPTIONS: dict[str, Any] = {
    "text_field": Annotated[
        str | None, typer.Option("--text-field", help="Column with the text; pair: with the first one. Default: text.")
    ],
    "second_field": Annotated[
        str | None, typer.Option("--second-field", help="pair: column with the second text. Default: sentence2.")
    ],
    "label_field": Annotated[str | None, typer.Option("--label-field", help="Column with the label. Default: label.")],
    "labels_as": Annotated[
        int | None, typer.Option("--labels-as", help="SST trees: 5 labels, or 2 without the neutral.")
    ],
    "separator": Annotated[
        str | None, typer.Option("--separator", help="csv: what separates columns. Default: found out.")
    ],
    "column": Annotated[
        int | None, typer.Option("--column", help="CoNLL files: the column with the tag, from 0, or -1 for the last.")
    ],
    "input_as": Annotated[
        str | None, typer.Option("--input-as", help="tag, srl, coref: read text, columns, or words (JSON lines).")
    ],
    "one_per_line": Annotated[
        bool | None, typer.Option("--one-per-line", help="coref: each line of plain text is a document by itself.")
    ],
    "context_field": Annotated[
        str | None, typer.Option("--context-field", help="qa, JSON lines: key with the text. Default: context.")
    ],
    "question_field": Annotated[
        str | None, typer.Option("--question-field", help="qa, JSON lines: key with the question. Default: question.")
    ],
    "answers_field": Annotated[
        str | None, typer.Option("--answers-field", help="qa, JSON lines: key with the answers. Default: answers.")
    ],
    "skip_bad": Annotated[
        bool | None,
        typer.Option("--skip-bad", help="qa: leave out, and count, questions whose answer is not in their context."),
    ],
}
"""The options of the tasks' readers, by the name of their setting. Each is for the tasks whose `Input` has it."""
LABELLED = tuple(name for name in READER_OPTIONS if name not in ("input_as", "one_per_line"))
UNLABELLED = ("text_field", "second_field", "separator", "input_as", "one_per_line", "context_field", "question_field")
"""For files with and without labels."""

Command = Callable[..., None]


def reader_options(names: tuple[str, ...]) -> Callable[[Command], Command]:
    """Give a command these of READER_OPTIONS; it gets their values in one dict, its parameter `reading`.

    typer makes the options from a function's signature, so the function that it sees has a signature of its own.
    """

    def add(command: Command) -> Command:
        def run(**given: Any) -> None:
            reading = {name: given.pop(name) for name in names}
            command(**given, reading=reading)

        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "reading"]
        by_name = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(name, by_name, default=None, annotation=READER_OPTIONS[name]) for name in names]
        run.__signature__ = inspect.Signature([*(p.replace(kind=by_name) for p in own), *added])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return add


def input_settings(task: type[AnyTask[Any, Any]], reading: Mapping[str, Any]) -> Section:
    """The settings of a task's readers from the options that were given; one that is for another task is an error."""
    from headstart.config import resolve
    from headstart.errors import ConfigError

    table = {name: value for name, value in reading.items() if value is not None}
    for name in table:
        if name not in task.Input.model_fields:
            raise ConfigError(f"--{name.replace('_', '-')} is not for {task.title}. Leave it out.")
    return resolve(task.Input, table, "the options")


def settings_given(flags: dict[str, Any], settings: list[str] | None) -> dict[str, Any]:
    """Flags that were given, then --set, as one nested table."""
    from headstart.config import overlay, settings_table

    given = {key: value for key, value in flags.items() if value is not None}
    return overlay(settings_table(given), settings_table(settings or []))
