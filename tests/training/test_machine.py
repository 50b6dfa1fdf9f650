from __future__ import annotations

import os
from pathlib import Path

import pytest

from headstart.training import machine as module


def test_the_processor_and_the_cores_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nmodel name\t: Abacus 3000: fast\n\nprocessor\t: 1\nmodel name\t: other\n")
    monkeypatch.setattr(module, "PROCESSORS", described)
    cores = len(os.sched_getaffinity(0))
    assert module.machine() == f"Abacus 3000: fast, {cores} core{'s' if cores > 1 else ''}"
    monkeypatch.setattr(module, "PROCESSORS", tmp_path / "none")
    assert module.processor()
