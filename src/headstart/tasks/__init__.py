"""The tasks. A new task is one file with a subclass of `Task`, and one entry here.

The table names modules rather than importing them: heads need torch, and `headstart --help` lists the tasks without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstart.config import pick

if TYPE_CHECKING:
    from headstart.tasks.base import Task

TASKS = {
    "classify": "headstart.tasks.classify:Classify",
    "tag": "headstart.tasks.tag:Tag",
    "pair": "headstart.tasks.pair:Pair",
    "qa": "headstart.tasks.qa:Qa",
    "srl": "headstart.tasks.srl:Srl",
    "coref": "headstart.tasks.coref:Coref",
}
ALIASES = {"sentiment": "classify", "ner": "tag", "nli": "pair"}
"""Everyday names of tasks."""


def task_class(name: str) -> type[Task[Any, Any]]:
    """The task with this name or alias."""
    named = TASKS | {alias: TASKS[task] for alias, task in ALIASES.items()}
    module, _, attribute = pick(named, name, "task").partition(":")
    found: type[Task[Any, Any]] = getattr(import_module(module), attribute)
    return found
