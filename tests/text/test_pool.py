import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart.errors import DataError
from headstart.text import pool
from headstart.text.frames import Frame
from headstart.text.jobs import Job, counted, counting
from headstart.text.pool import run_here, run_in_workers

COUNT = Frame({"work": "count", "lowercase": False})


def jobs(n: int) -> list[Job]:
    return [Job([f"word{i} and more"] * (n - i), np.ones(n - i, dtype=bool), i) for i in range(n)]


def test_results_come_in_order_and_equal_those_made_here():
    here = [(job.read, counted(frame)) for job, frame in run_here(counting(False), jobs(15))]
    there = [(job.read, counted(frame)) for job, frame in run_in_workers(COUNT, jobs(15), 2)]
    assert here == there


def test_jobs_are_not_read_far_ahead():
    taken = 0

    def endless():
        nonlocal taken
        for job in jobs(40):
            taken += 1
            yield job

    results = run_in_workers(COUNT, endless(), 2)
    next(results)
    assert taken <= 2 * pool.WAITING_PER_WORKER
    results.close()


def test_no_process_outlives_the_results(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(pool.subprocess, "Popen", lambda *args, **kw: started.append(popen(*args, **kw)) or started[-1])
    results = run_in_workers(COUNT, jobs(20), 2)
    next(results)
    results.close()
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_a_worker_that_dies_is_one_clear_error(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(pool.subprocess, "Popen", lambda *args, **kw: started.append(popen(*args, **kw)) or started[-1])
    results = run_in_workers(COUNT, jobs(30), 2)
    next(results)
    for process in started:
        process.kill()
    with pytest.raises(DataError, match=r"worker process .* ended early .*one worker"):
        list(results)


def test_what_a_broken_worker_said_last_is_passed_on():
    with pytest.raises(DataError, match="exit code 1: KeyError: 'lowercase'"):
        list(run_in_workers(Frame({"work": "count"}), jobs(1), 1))


def test_an_error_of_ours_arrives_as_its_sentence(tmp_path):
    order = {"work": "tokenise", "tokenizer": str(tmp_path), "lines_are_sentences": False, "max_sentence": None}
    with pytest.raises(DataError, match="no tokenizer is there"):
        list(run_in_workers(Frame(order), jobs(1), 1))


def test_a_plain_script_may_use_workers(tmp_path):
    """No `if __name__ == "__main__"` is needed, and modules beside the script do not reach the workers."""
    (tmp_path / "tokenizers.py").write_text("raise RuntimeError('the wrong module')")
    (tmp_path / "script.py").write_text(
        "import sys\nsys.path.pop(0)\n"
        "import numpy as np\n"
        "from headstart.text.pool import run_in_workers\n"
        "from headstart.text.frames import Frame\n"
        "from headstart.text.jobs import Job, counted\n"
        "order = Frame({'work': 'count', 'lowercase': True})\n"
        "jobs = [Job(['A b a'], np.array([True]), 0)]\n"
        "print([counted(frame) for _, frame in run_in_workers(order, jobs, 1)])\n"
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[{'a': 2, 'b': 1}]", "")
    assert Path(tmp_path / "script.py").exists()
