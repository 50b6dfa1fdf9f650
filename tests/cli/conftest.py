from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headstart.cli.main import app
from headstart.errors import HeadstartError


class CommandLine:
    """`headstart` in this process, which spares importing torch for each command."""

    def __call__(self, *arguments: str | Path, input: str = "") -> Result:
        """What a command gives that succeeds."""
        done = self.ended(*arguments, input=input)
        if done.exception is not None:
            raise done.exception
        assert done.exit_code == 0
        return done

    def refusal(self, *arguments: str | Path, input: str = "") -> str:
        """The one sentence that a command ends with."""
        done = self.ended(*arguments, input=input)
        assert isinstance(done.exception, HeadstartError), (done.exception, done.stdout, done.stderr)
        assert done.stdout == ""
        assert "\n" not in str(done.exception)
        return str(done.exception)

    def ended(self, *arguments: str | Path, input: str = "") -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)


@pytest.fixture(scope="session")
def cli() -> CommandLine:
    return CommandLine()
