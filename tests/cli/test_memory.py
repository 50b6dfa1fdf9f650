"""No more memory is one sentence with what to lower."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest
import torch

from headstart.cli import main, memory
from headstart.cli.memory import check_limit, out_of_memory
from headstart.errors import ConfigError

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


@pytest.mark.parametrize(
    "error",
    [ImportError("x.so: failed to map segment from shared object"), RuntimeError("could not create a primitive")],
)
def test_how_libraries_say_it(error: Exception) -> None:
    said = out_of_memory(error, ["encode"])
    assert said is not None
    assert "shorter lines, or a smaller model" in said


def test_a_limit_in_which_the_libraries_cannot_be_loaded_is_told_before_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(memory, "address_space", lambda: 12 << 20)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (512 << 20, resource.RLIM_INFINITY))
    with pytest.raises(ConfigError, match=r"take 524 MB more .* `headstart encode` needs about 1,000 MB .*ulimit -v"):
        check_limit(["encode", "bert-mini"])
    for light in (["--version"], ["encode", "--help"], []):
        check_limit(light)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1_100 << 20, resource.RLIM_INFINITY))
    check_limit(["encode", "bert-mini"])
    with pytest.raises(ConfigError, match=r"`headstart pretrain` needs about 1,400 MB"):
        check_limit(["pretrain", "bert"])
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    check_limit(["pretrain", "bert"])


def test_the_address_space_is_told_in_bytes() -> None:
    assert 100 << 20 < memory.address_space() < 1 << 46


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
