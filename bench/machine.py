"""What the figures were measured on: the machine, the libraries, and the fastest matrix product it is capable of.

    python -m bench.machine --out FILE.json [--quick]

The ceiling is measured in the same way before and after the works, since neighbours on one processor slow it down.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from headstart.training.machine import processor

SIDES, QUICK_SIDES = (1024, 1536, 2048), (1024,)
TRIES = 4
PACKAGES = (
    "headstart",
    "torch",
    "numpy",
    "tokenizers",
    "gensim",
    "scikit-learn",
    "transformers",
    "accelerate",
    "sentence-transformers",
    "onnx",
    "onnxruntime",
    "allennlp",
)


def description() -> dict[str, object]:
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "libraries": libraries(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
    }


def libraries() -> list[str]:
    """Those that multiply matrices or run threads, with their versions."""
    found = [
        f"{library['internal_api']} {library.get('version') or ''} ({library['num_threads']} threads)"
        for library in threadpool_info()
    ]
    if torch.backends.mkl.is_available():
        found.append("mkl, in torch")
    return sorted(found)


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def ceiling(sides: Sequence[int]) -> dict[str, float]:
    """Operations per second of the best float32 product of square matrices on all cores, by who multiplies."""
    ways = {"torch": with_torch, "numpy": with_numpy, "numpy, a product per core": with_numpy_on_each_core}
    return {name: max(rate_of(side) for side in sides for _ in range(TRIES)) for name, rate_of in ways.items()}


def with_torch(side: int) -> float:
    a, b = torch.rand(side, side), torch.rand(side, side)
    out = torch.empty(side, side)
    return rate(1, side, lambda: torch.mm(a, b, out=out))


def with_numpy(side: int) -> float:
    a, b = (np.random.default_rng(0).random((side, side), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    return rate(1, side, lambda: np.matmul(a, b, out=out))


def with_numpy_on_each_core(side: int) -> float:
    cores = torch.get_num_threads()
    a, b = (np.random.default_rng(0).random((side, side), dtype=np.float32) for _ in range(2))
    outs = [np.empty_like(a) for _ in range(cores)]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(cores) as team:
        return rate(cores, side, lambda: list(team.map(lambda out: np.matmul(a, b, out=out), outs)))


def rate(products: int, side: int, multiply: Callable[[], object]) -> float:
    multiply()
    began = time.perf_counter()
    multiply()
    return products * 2 * side**3 / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.machine", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    by_library = ceiling(QUICK_SIDES if given.quick else SIDES)
    found = {"ceiling": max(by_library.values()), "ceiling_by_library": by_library, "machine": description()}
    given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
