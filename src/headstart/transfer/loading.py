"""Opening task models: runs of `transfer`, and BERTs from elsewhere that come with a head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headstart.config import Table, pick, resolve
from headstart.encoders.base import PRECISIONS
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.tasks.base import Task
from headstart.tasks.classify import Classify
from headstart.tasks.tag import Tag
from headstart.training.seeding import freshly_initialised
from headstart.transfer.config import config_for
from headstart.transfer.task_model import TaskModel, build_model, is_task_model, load_own
from headstart.weights.sources import Source, open_source

# One linear layer on BERT's own vector of the sequence, or on each word's first piece: the heads that other tools know.
PLAIN_CLASSIFIER: Table = {"how": "finetune", "mix": {"kind": "last"}, "network": {"cell": "none", "pool": "first"}}
PLAIN_TAGGER: Table = {
    "how": "finetune",
    "mix": {"kind": "last"},
    "network": {"cell": "none", "decoder": "constrained"},
}


def load_task_model(path: Source, *, precision: str = "float32") -> TaskModel[Any, Any]:
    """A run of `transfer`, or a Hugging Face folder of a BERT with a head for texts or for words.

    precision: float32, or int8, in which a BERT is faster and gives nearly the same answers.
    """
    convert = pick(PRECISIONS, precision, "precision")
    if isinstance(path, tuple) or not is_task_model(Path(path)):
        loaded = from_plain_bert(result_of(open_source(path)), str(path))
    else:
        loaded = load_own(Path(path))
    for reader in loaded.model.each_reader:
        reader.encoder = convert(reader.encoder)
    return loaded


def from_plain_bert(pretrained: Pretrained, where: str) -> TaskModel[Any, Any]:
    """A BERT with a plain head as a task model."""
    kinds: dict[str, tuple[type[Task[Any, Any]], Table]] = {
        "classify": (Classify, PLAIN_CLASSIFIER),
        "tag": (Tag, PLAIN_TAGGER),
    }
    name = next((name for name in kinds if name in pretrained.heads), None)
    if name is None:
        raise CheckpointError(
            f"{where}: is a pretrained encoder (kind '{pretrained.kind}') without a trained head. Train one on it "
            f"first: headstart transfer classify --from {where} ..."
        )
    kind, table = kinds[name]
    settings = resolve(config_for(kind), table)
    task = kind.from_table({"labels": list(pretrained.labels)})
    model = freshly_initialised(0, lambda: build_model([pretrained.encoder], task, settings))
    output: Any = model.head.get_submodule("output")
    output.load_state_dict(pretrained.heads[name].state_dict())
    return TaskModel(task, (pretrained.tokenizer,), model, settings).frozen()


def check_answers_are_softmax(loaded: TaskModel[Any, Any]) -> None:
    """Refuse a task that is derived from classification: other tools would read its scores as those of one label."""
    if isinstance(loaded.task, Classify) and type(loaded.task) is not Classify:
        raise ConfigError(
            f"A model for {loaded.task.title} cannot be exported: other tools would give each text one label, by a "
            f"softmax. Only {Classify.title} and {Tag.title} can."
        )


def plain_bert(loaded: TaskModel[Any, Any]) -> Pretrained:
    """A task model as a BERT with a plain head, if that is what it is."""
    check_answers_are_softmax(loaded)
    head = loaded.model.head
    if not (loaded.encoder.pools and head.is_plain and loaded.model.only_reader.takes_top_layer):
        raise ConfigError(
            "This model's head is not the plain one that Hugging Face's BERT has: a linear layer on BERT's own vector "
            "of the text, or on each word. Export it --to onnx, or fit one with --how finetune (and, for "
            "classification, --pool first)."
        )
    return Pretrained(
        loaded.encoder,
        loaded.tokenizer,
        {loaded.task.name: head.get_submodule("output")},
        tuple(loaded.task.to_table()["labels"]),
    )
