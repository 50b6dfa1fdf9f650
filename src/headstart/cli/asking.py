"""`headstart predict RUN --context FILE`: questions about one text, from --question, a pipe or a terminal."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from headstart.errors import ConfigError, DataError

if TYPE_CHECKING:
    from headstart.tasks.base import Task
    from headstart.tasks.questions import Question

PROMPT = "question> "
QUESTION_ANSWERING = "qa"
STANDARD_INPUT = "-"
QUESTIONS_AT_ONCE = 256
CHARACTERS_AT_ONCE = 1_000_000
"""Of contexts in one batch of questions: all windows of a batch are in memory together."""


def check_ways(source: str | None, context: str | None, questions: Sequence[str]) -> None:
    """Refuse --in, --context and --question where they contradict each other, before a model is opened."""
    if questions and context is None:
        raise ConfigError("--question needs the text that it is about: add --context FILE.")
    if context is not None and source is not None:
        raise ConfigError("--in and --context are two ways to give questions; leave one of them out.")
    if context == STANDARD_INPUT and not questions:
        raise ConfigError("--context - takes the text from standard input; give the questions with --question.")


def check_task(task: Task[Any, Any], run: Path, source: str | None, context: str | None) -> None:
    """Refuse a context for another task, and question answering on a terminal that names neither file nor context."""
    if context is not None and task.name != QUESTION_ANSWERING:
        raise ConfigError(
            f"--context and --question are for question answering, and {run} is a model for {task.title}. Give its "
            f"input with --in."
        )
    if task.name == QUESTION_ANSWERING and source is None and context is None and sys.stdin.isatty():
        raise ConfigError(
            'There is no question. Give --context FILE and --question "..."; --context FILE alone, to ask here; or '
            "--in FILE with SQuAD's .json or JSON lines."
        )


def asked(context: str, questions: Sequence[str]) -> Iterator[list[Question]]:
    """Questions about one file, in groups to be answered together; from a terminal, each by itself."""
    from headstart.tasks.qa_inputs import questions_about, read_context
    from headstart.text.lines import StandardInput

    path = Path(context).expanduser()
    text = read_context(path)
    name = "standard input" if context == STANDARD_INPUT else str(path)
    if questions:
        found, at_once = questions_about(text, questions, name), QUESTIONS_AT_ONCE
    elif sys.stdin.isatty():
        typer.echo(f"{name}: {len(text.split()):,} words. Ask about them; an empty line ends.", err=True)
        found, at_once = questions_about(text, typed_lines(), name), 1
    else:
        lines = (line.strip() for line in StandardInput().lines())
        found, at_once = questions_about(text, lines, name, blank=True), QUESTIONS_AT_ONCE
    most = max(1, min(at_once, CHARACTERS_AT_ONCE // len(text)))
    while group := list(itertools.islice(found, most)):
        yield group


def typed_lines() -> Iterator[str]:
    """Lines from the terminal until an empty one, or Ctrl-D."""
    try:
        while line := typed_line():
            yield line
    except KeyboardInterrupt:
        typer.echo(err=True)  # the cursor is behind the prompt
        raise


def typed_line() -> str:
    """One line, without the spaces around it; empty at the end of the input."""
    try:
        if sys.stdout.isatty():
            with suppress(ImportError):
                import readline  # noqa: F401  # gives `input` a history and the arrow keys
            return input(PROMPT).strip()
        # `input` would write the prompt to stdout, which is a file or a pipe.
        sys.stderr.write(PROMPT)
        sys.stderr.flush()
        line = sys.stdin.readline()
    except EOFError:
        line = ""
    except UnicodeDecodeError as error:
        raise DataError("standard input: not UTF-8. Set the terminal to UTF-8, and ask again.") from error
    if not line:
        typer.echo(err=True)
    return line.strip()
