"""Imports what the commands import, so that forked ones need not."""

from __future__ import annotations

import importlib
import pkgutil

import torch

import headstart

OTHERS = (
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "sklearn.linear_model",
    "gensim.models",
    "onnx",
    "h5py",
    "torch._dynamo",
)
LEFT_OUT = ("headstart.__main__", "headstart.text.worker", "headstart.weights.hub_process")
"""Modules that run something when they are imported."""


def import_everything() -> None:
    torch.set_num_threads(1)  # threads do not survive a fork
    for module in pkgutil.walk_packages(headstart.__path__, "headstart."):
        if module.name not in LEFT_OUT:
            importlib.import_module(module.name)
    for name in OTHERS:
        importlib.import_module(name)
