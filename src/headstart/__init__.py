"""Headstart: transfer learning in NLP, from word vectors through ELMo to BERT, on a plain CPU."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import types
from typing import TYPE_CHECKING, Any

from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError

if TYPE_CHECKING:
    from headstart.claims.reproduce import reproduce
    from headstart.comparison.compare import compare
    from headstart.estimator import CorefResolver, PairClassifier, QuestionAnswerer, RoleLabeler, Tagger, TextClassifier
    from headstart.exporting import export, import_run
    from headstart.inspection.encode import encode
    from headstart.inspection.opened import load
    from headstart.pretrained import Pretrained
    from headstart.pretraining.pretrain import pretrain
    from headstart.transfer.classifier import Classifier, load_classifier
    from headstart.transfer.evaluate import evaluate
    from headstart.transfer.loading import load_task_model
    from headstart.transfer.task_model import TaskModel
    from headstart.transfer.transfer import transfer

__all__ = [
    "CheckpointError",
    "Classifier",
    "ConfigError",
    "CorefResolver",
    "DataError",
    "HeadstartError",
    "PairClassifier",
    "Pretrained",
    "QuestionAnswerer",
    "RoleLabeler",
    "Tagger",
    "TaskModel",
    "TextClassifier",
    "compare",
    "encode",
    "evaluate",
    "export",
    "import_run",
    "load",
    "load_classifier",
    "load_task_model",
    "pretrain",
    "reproduce",
    "transfer",
]

# torch takes seconds to import: the verbs load it when they are first asked for.
_LAZY = {
    "Classifier": "headstart.transfer.classifier",
    "CorefResolver": "headstart.estimator",
    "PairClassifier": "headstart.estimator",
    "Pretrained": "headstart.pretrained",
    "QuestionAnswerer": "headstart.estimator",
    "RoleLabeler": "headstart.estimator",
    "Tagger": "headstart.estimator",
    "TaskModel": "headstart.transfer.task_model",
    "TextClassifier": "headstart.estimator",
    "compare": "headstart.comparison.compare",
    "encode": "headstart.inspection.encode",
    "evaluate": "headstart.transfer.evaluate",
    "export": "headstart.exporting",
    "import_run": "headstart.exporting",
    "load": "headstart.inspection.opened",
    "load_classifier": "headstart.transfer.classifier",
    "load_task_model": "headstart.transfer.loading",
    "pretrain": "headstart.pretraining.pretrain",
    "reproduce": "headstart.claims.reproduce",
    "transfer": "headstart.transfer.transfer",
}


def __dir__() -> list[str]:
    """The public names, for completion in notebooks: they are not loaded yet."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("headstart")
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
