from __future__ import annotations

import sys

import pytest

from headstart.cli.together import DIVIDED, refuse_several, silent_unless
from headstart.errors import ConfigError
from headstart.training.launch import Launch

SECOND = Launch(rank=1, world=2, local_rank=1, joins=True)


def test_a_command_for_one_process_is_refused_in_several() -> None:
    with pytest.raises(ConfigError, match="`headstart predict` runs in one process, and torchrun started 2"):
        refuse_several(SECOND, ["predict", "model"])
    refuse_several(Launch(), ["predict", "model"])
    refuse_several(Launch(joins=True), ["predict", "model"])
    for arguments in ([], ["--help"], *([command] for command in DIVIDED)):
        refuse_several(SECOND, arguments)


def test_only_one_process_speaks_and_a_traceback_is_still_seen(capsys: pytest.CaptureFixture[str]) -> None:
    with silent_unless(True):
        print("once")

    def speaks_and_fails() -> None:
        with silent_unless(False):
            print("twice", file=sys.stderr)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        speaks_and_fails()
    print("and later", file=sys.stderr)
    assert capsys.readouterr() == ("once\n", "and later\n")
