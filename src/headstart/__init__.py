"""Headstart: transfer learning in NLP, from word vectors through ELMo to BERT, on a plain CPU."""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError

if TYPE_CHECKING:
    from headstart.classifier import Classifier, load_classifier
    from headstart.compare import compare
    from headstart.encode import encode
    from headstart.estimator import TextClassifier
    from headstart.evaluate import evaluate
    from headstart.exporting import export, import_run
    from headstart.pretrain import pretrain
    from headstart.pretrained import Pretrained
    from headstart.sources import load
    from headstart.transfer import transfer

__all__ = [
    "CheckpointError",
    "Classifier",
    "ConfigError",
    "DataError",
    "HeadstartError",
    "Pretrained",
    "TextClassifier",
    "compare",
    "encode",
    "evaluate",
    "export",
    "import_run",
    "load",
    "load_classifier",
    "pretrain",
    "transfer",
]

# torch takes seconds to import: the verbs load it when they are first asked for.
_LAZY = {
    "Classifier": "headstart.classifier",
    "Pretrained": "headstart.pretrained",
    "TextClassifier": "headstart.estimator",
    "compare": "headstart.compare",
    "encode": "headstart.encode",
    "evaluate": "headstart.evaluate",
    "export": "headstart.exporting",
    "import_run": "headstart.exporting",
    "load": "headstart.sources",
    "load_classifier": "headstart.classifier",
    "pretrain": "headstart.pretrain",
    "transfer": "headstart.transfer",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'headstart' has no attribute '{name}'")


class _Package(types.ModuleType):
    """Importing a verb's module would put it where the verb belongs: such names stay the verb's."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
