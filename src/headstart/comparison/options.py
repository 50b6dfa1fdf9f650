"""Messages of pretraining and fitting name the options of their own commands; here they name those of `compare`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TypeVar

from headstart.comparison.events import RowPretraining
from headstart.errors import HeadstartError
from headstart.progress import Notice

EventT = TypeVar("EventT")
ResultT = TypeVar("ResultT")
RENAMED = {
    "; name some with --held-out": "",
    "go on with --resume": "give the same command again",
    "--field": "--set pretrain.text.field=NAME",
    "--dim": "--set pretrain.static.objective.dim",
    "--size": "--set pretrain.static.size",
    "--set optimizer.": "--set pretrain.{kind}.optimizer.",
    "--set fitting.": "--set transfer.fitting.",
}


def option_of_compare(text: str, kind: str) -> str:
    """kind: of the encoder that is being pretrained."""
    for name, renamed in RENAMED.items():
        text = text.replace(name, renamed.format(kind=kind))
    return text


def with_options_of_compare(job: Generator[EventT, None, ResultT]) -> Generator[EventT | Notice, None, ResultT]:
    """The same events and result; notices and errors name options that `compare` has."""
    kind = "KIND"
    with closing(job):
        while True:
            try:
                event = next(job)
            except StopIteration as end:
                result: ResultT = end.value
                return result
            except HeadstartError as error:
                raise type(error)(option_of_compare(str(error), kind)) from error
            if isinstance(event, RowPretraining):
                kind = event.kind
            yield Notice(option_of_compare(event.text, kind)) if isinstance(event, Notice) else event
