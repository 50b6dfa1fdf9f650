from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headstart.atomic import write_atomically, write_text
from headstart.errors import CheckpointError
from headstart.training.tensors import write_tensors


def test_text_is_written_whole_and_its_folder_made(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "CARD.md", "Zürich 日本\n")
    assert (tmp_path / "new" / "CARD.md").read_text(encoding="utf-8") == "Zürich 日本\n"


def test_weights_can_be_read_by_whoever_may_read_the_other_files_of_a_run(tmp_path: Path) -> None:
    write_text(tmp_path / "CARD.md", "text")
    write_tensors(tmp_path / "weights.safetensors", {"x": torch.zeros(2)})
    assert (tmp_path / "weights.safetensors").stat().st_mode == (tmp_path / "CARD.md").stat().st_mode


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "old")

    def fails(partial: Path) -> None:
        partial.write_text("half of the n")
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="No space left on device"):
        write_atomically(tmp_path / "x", fails)
    assert (tmp_path / "x").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        write_text(tmp_path / "file" / "x", "text")


def test_the_caller_says_what_the_user_can_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError) as neutral:
        write_text(tmp_path / "file" / "x", "text")
    assert "--resume" not in str(neutral.value)
    with pytest.raises(CheckpointError, match=r"cannot be written \(.*\)\. Buy a disk\."):
        write_text(tmp_path / "file" / "x", "text", "Buy a disk.")
