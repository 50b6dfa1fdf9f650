"""When the bench of `encode` by several processes calls two results the same."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("bench", reason="bench/ is importable from the repository's folder only")

from bench.scale.encoding import Job


def test_results_are_the_same_if_all_their_files_are(tmp_path: Path) -> None:
    job = Job("bert-mini", tmp_path / "text.txt", tmp_path, ".npy", [])
    for name, second in {"one-0": b"12", "same": b"12", "changed": b"13"}.items():
        job.out(name).parent.mkdir()
        job.out(name).write_bytes(b"vectors")
        (job.out(name).parent / "vectors.lengths.npy").write_bytes(second)
    (tmp_path / "less").mkdir()
    job.out("less").write_bytes(b"vectors")
    assert [job.is_same(job.out(name)) for name in ("one-0", "same", "changed", "less")] == [True, True, False, False]
