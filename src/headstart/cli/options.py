"""The options that several commands have, and how they become settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headstart.config import Section
    from headstart.tasks.base import Task as AnyTask

TASKS = (
    "classify (also called sentiment): one label per text, any number of labels. "
    "tag (also called ner): one tag per word, such as named entities or parts of speech."
)
SOURCES = "A run, a Hugging Face BERT folder, options.json,weights.hdf5, word vectors, hf:org/name or a catalogue name."

Task = Annotated[str, typer.Argument(metavar="TASK", help=TASKS)]
SourceArgument = Annotated[str, typer.Argument(metavar="SRC", help=SOURCES)]
TextField = Annotated[str | None, typer.Option("--text-field", help="Column with the text. Default: text.")]
LabelField = Annotated[str | None, typer.Option("--label-field", help="Column with the label. Default: label.")]
LabelsAs = Annotated[int | None, typer.Option("--labels-as", help="SST trees: 5 labels, or 2 without the neutral.")]
Separator = Annotated[str | None, typer.Option("--separator", help="csv: what separates columns. Default: found out.")]
Column = Annotated[
    int | None, typer.Option("--column", help="CoNLL files: the column with the tag, from 0, or -1 for the last.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as fitting.epochs=5.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show the result only.")]


def labelled_input(
    task: type[AnyTask[Any, Any]],
    text_field: str | None,
    label_field: str | None,
    labels_as: int | None,
    separator: str | None,
    column: int | None,
) -> Section:
    """The settings of the readers of labelled files."""
    given = {
        "text_field": text_field,
        "label_field": label_field,
        "labels_as": labels_as,
        "separator": separator,
        "column": column,
    }
    return input_settings(task, given)


def input_settings(task: type[AnyTask[Any, Any]], given: dict[str, Any]) -> Section:
    """The settings of a task's readers from the options that were given; one that is for another task is an error."""
    from headstart.config import resolve
    from headstart.errors import ConfigError

    table = {name: value for name, value in given.items() if value is not None}
    for name in table:
        if name not in task.Input.model_fields:
            raise ConfigError(f"--{name.replace('_', '-')} is not for {task.title}. Leave it out.")
    return resolve(task.Input, table, "the options")


def settings_given(flags: dict[str, Any], settings: list[str] | None) -> dict[str, Any]:
    """Flags that were given, then --set, as one nested table."""
    from headstart.config import overlay, settings_table

    given = {key: value for key, value in flags.items() if value is not None}
    return overlay(settings_table(given), settings_table(settings or []))
