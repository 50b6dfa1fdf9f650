"""No more memory is one sentence with what to lower."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from headstart.cli import main
from headstart.cli.memory import out_of_memory

TOO_MANY = 1 << 50


def test_what_was_needed_and_what_to_lower() -> None:
    with pytest.raises(RuntimeError) as by_torch:
        torch.empty(TOO_MANY)
    assert out_of_memory(by_torch.value, ["pretrain", "bert"]) == (
        "There is not enough memory: 4,503,599,627 MB more were needed. Close other programs, or give a smaller "
        "--size, or a smaller --set training.batch."
    )
    with pytest.raises(MemoryError) as by_numpy:
        np.empty(TOO_MANY)
    assert out_of_memory(by_numpy.value, ["transfer"]) == (
        "There is not enough memory: 8.00 PiB more were needed. Close other programs, or give fewer --labels, a "
        "smaller --set fitting.batch, or --how frozen."
    )
    assert out_of_memory(MemoryError(), []) == (
        "There is not enough memory. Close other programs, or give a smaller file or model."
    )


def test_other_errors_are_none_of_memory() -> None:
    assert out_of_memory(RuntimeError("shapes differ"), ["transfer"]) is None


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("a bug")])
def test_a_command_without_memory_ends_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    monkeypatch.setattr(sys, "argv", ["headstart", "encode"])
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError, match="a bug"):
            main.run()
        return
    with pytest.raises(SystemExit) as end:
        main.run()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "headstart: There is not enough memory. Close other programs, or give shorter lines, or a smaller model.\n"
    )
