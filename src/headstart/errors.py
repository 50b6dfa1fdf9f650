"""Errors that a user can cause. The command line prints them as one sentence and exits with 2; others are bugs.

An error about an argument or about data is also a ValueError, as callers used to scikit-learn expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

LONGEST = 1_500
"""Characters of a message; a longer one quotes what a file holds, and loses its middle."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting to change. A job knows its settings; how they are given depends on the command that runs the job."""

    sentence: str
    """What to do, with {} for the option."""
    setting: str
    """Key and value, such as fitting.learning_rate=1e-3."""
    option: str | None = None
    """The option for this setting, where the job's own command has one; None: --set."""

    def __str__(self) -> str:
        return self.sentence.format(self.option or f"--set {self.setting}")


def one_line(problem: str) -> str:
    """A message as one printable line: names and values in it come from files, which may hold control characters."""
    spaced = " ".join(problem.splitlines())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in spaced)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} ... {shown[-LONGEST // 2 :]}"


class HeadstartError(Exception):
    """One sentence: what is wrong, where, what was found, what was expected, and what to do.

    Where another value of a setting would help, the last part is a `Remedy`.
    """

    def __init__(self, problem: str, remedy: Remedy | None = None) -> None:
        problem = one_line(problem)
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return self.problem if self.remedy is None else f"{self.problem} {self.remedy}"


class ConfigError(HeadstartError, ValueError):
    """A setting that does not exist, has a bad value, or contradicts another."""


class BudgetError(ConfigError):
    """The time budget ran out before training could start; a larger one would do."""


class DataError(HeadstartError, ValueError):
    """A text or data file that cannot be used as it is."""


class CheckpointError(HeadstartError):
    """A run directory, or its saved state, that cannot be read, written or resumed."""


class LostProcessError(HeadstartError):
    """Another process of the same run, or its machine, is gone. Nobody's mistake: the command line exits with 1."""


class EndedElsewhereError(HeadstartError):
    """The process that speaks for a run has reported why it ended; the others end without a word."""


class StoppedElsewhereError(HeadstartError):
    """The first process was asked to stop, which is no mistake: the others end with it."""


@contextmanager
def settings_renamed(rename: Callable[[str], str]) -> Iterator[None]:
    """For a job inside another: remedies name its settings as the outer job takes them."""
    try:
        yield
    except HeadstartError as error:
        if error.remedy is None:
            raise
        remedy = replace(error.remedy, setting=rename(error.remedy.setting), option=None)
        raise type(error)(error.problem, remedy) from error
