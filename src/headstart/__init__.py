"""Headstart: transfer learning in NLP, from word vectors through ELMo to BERT, on a plain CPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError

if TYPE_CHECKING:
    from headstart.pretrain import pretrain
    from headstart.pretrained import Pretrained, load

__all__ = ["CheckpointError", "ConfigError", "DataError", "HeadstartError", "Pretrained", "load", "pretrain"]

# torch takes seconds to import: the verbs load it when they are first asked for.
_LAZY = {"pretrain": "headstart.pretrain", "Pretrained": "headstart.pretrained", "load": "headstart.pretrained"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value  # also hides the module of the same name behind its function
        return value
    raise AttributeError(f"module 'headstart' has no attribute '{name}'")
