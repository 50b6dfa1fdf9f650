"""Opening task models: runs of `transfer`, and BERTs from elsewhere that come with a head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from headstart.config import Section, Table, cache_home, overlay, pick, resolve, settings_of
from headstart.encoders.base import PRECISIONS
from headstart.errors import CheckpointError, ConfigError
from headstart.heads.coref import CorefHead, CorefHeadConfig
from headstart.heads.span import SpanHeadConfig
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.tasks import task_class
from headstart.tasks.base import Task, of_class
from headstart.tasks.classify import Classify
from headstart.tasks.pair import Pair
from headstart.tasks.qa import Qa
from headstart.tasks.tag import Tag
from headstart.training.seeding import freshly_initialised
from headstart.transfer.config import config_for
from headstart.transfer.task_files import is_task_model, load_own
from headstart.transfer.task_model import TaskModel, build_model
from headstart.weights.huggingface import CONFIG, RECORD, task_record
from headstart.weights.sources import Source, local, open_source

PLAIN: Mapping[type[Task[Any, Any]], str] = {Classify: "classify", Tag: "tag", Pair: "classify", Qa: "span"}
"""The tasks that other tools know, and the head of a BERT that each is solved with. Of two tasks with one head, the
first is meant where nothing tells."""
PLAIN_SETTINGS: Table = {"how": "finetune", "mix": {"kind": "last"}}
PLAIN_CLASSIFIER: Table = {"network": {"pool": "first"}}
"""BERT's own vector of the sequence is classified; a classifier that is fitted here reads the mean of the words."""


class TaskRecord(Section):
    """What config.json of an exported model tells about its task under the key `headstart`."""

    task: str | None = None
    """Its name, such as pair."""

    longest: int | None = Field(default=None, ge=1)
    """Tokens in one sequence, as `longest` of a transfer."""

    stride: int | None = Field(default=None, ge=0)
    """Tokens that two neighbouring windows of a long text share."""

    longest_answer: int | None = Field(default=None, ge=1)
    """Pieces of the longest answer to a question."""

    version: Literal["1.1", "2.0"] | None = None
    """Whether a question may have no answer (2.0)."""

    threshold: float | None = None
    """How much higher "no answer" must score than the best answer to be given."""


def load_task_model(path: Source, *, precision: str = "float32", task: str | None = None) -> TaskModel[Any, Any]:
    """A run of `transfer`, or a BERT from elsewhere with a head for texts, pairs, words or questions.

    precision: float32, or int8, in which a BERT is faster and gives nearly the same answers.
    task: what a model from elsewhere was trained for, where its files do not tell: one that classifies pairs of texts
    (pair, nli) has the same head as one that classifies texts.
    """
    convert = pick(PRECISIONS, precision, "precision")
    wanted = None if task is None else task_class(task)
    if isinstance(path, tuple) or not is_task_model(Path(path)):
        files = result_of(local(path, cache_home()))
        loaded = from_plain_bert(result_of(open_source(files)), str(path), wanted, read_record(files))
    else:
        loaded = load_own(Path(path))
        if wanted is not None and wanted.name != loaded.task.name:
            raise ConfigError(
                f"{path}: is a model for {loaded.task.title} ('{loaded.task.name}'); got the task '{task}'. Leave it "
                "out: a run tells its task itself."
            )
    for reader in loaded.model.each_reader:
        reader.encoder = convert(reader.encoder)
    return loaded


def read_record(files: tuple[Path, ...]) -> TaskRecord:
    """What the files of a source tell about its task."""
    where = files[-1] / CONFIG
    return resolve(TaskRecord, task_record(files[-1]), f"the key '{RECORD}' of {where}")


def from_plain_bert(
    pretrained: Pretrained, where: str, wanted: type[Task[Any, Any]] | None, record: TaskRecord
) -> TaskModel[Any, Any]:
    """A BERT with a plain head as a task model. wanted: the task that the caller named, if any."""
    if wanted is None and record.task is not None:
        wanted = task_class(record.task)
    kind = plain_task(pretrained, where, wanted)
    told = record.model_dump(exclude_none=True)
    settings = overlay(
        PLAIN_SETTINGS,
        kind.defaults("finetune", joins=True),
        PLAIN_CLASSIFIER if kind is Classify else {},
        {key: told[key] for key in ("longest", "stride") if key in told},
        {"network": {"longest_answer": told["longest_answer"]}} if kind is Qa and "longest_answer" in told else {},
    )
    # A model for SQuAD 2.0 answers every question too, if it is not asked whether there is an answer.
    unknown: Table = {"labels": list(pretrained.labels), "version": "1.1", "threshold": 0.0}
    task = kind.from_table(unknown | told)
    config = resolve(config_for(kind), settings)
    model = freshly_initialised(0, lambda: build_model([pretrained.encoder], task, config))
    output: Any = model.head.get_submodule("output")
    output.load_state_dict(pretrained.heads[PLAIN[kind]].state_dict())
    return TaskModel(task, (pretrained.tokenizer,), model, config).frozen()


def with_threshold(loaded: TaskModel[Any, Any], threshold: float, where: Path) -> TaskModel[Any, Any]:
    """A model for questions that gives "no answer" by this threshold.

    The files of a BERT from elsewhere do not tell whether it was trained on questions without answer, so that it
    answers every question unless the user says otherwise. A run tells it.
    """
    task = loaded.task
    if not isinstance(task, Qa):
        raise ConfigError(f"--no-answer-threshold is for question answering; {where} is a model for {task.title}.")
    if math.isnan(threshold):
        raise ConfigError("--no-answer-threshold must be a number; got nan.")
    if task.version == "1.1" and is_task_model(where):
        raise ConfigError(
            f"--no-answer-threshold: {where} was trained on questions that all have an answer (SQuAD 1.1), so it has "
            "not learned when to give none. Leave it out, or train on questions with and without answers."
        )
    return replace(loaded, task=replace(task, version="2.0", threshold=threshold))


def with_memory(loaded: TaskModel[Any, Any], memory: str, where: Path) -> TaskModel[Any, Any]:
    """A model for coreference whose head keeps to this bound, such as "2GB"."""
    head = loaded.model.head
    if not isinstance(head, CorefHead):
        raise ConfigError(f"--memory is for coreference; {where} is a model for {loaded.task.title}. Leave it out.")
    network = {**settings_of(loaded.config.network), "memory": memory}
    config = resolve(type(loaded.config), settings_of(loaded.config) | {"network": network}, "the options")
    head.config = of_class(CorefHeadConfig, config.network)
    return replace(loaded, config=config)


def plain_task(pretrained: Pretrained, where: str, wanted: type[Task[Any, Any]] | None) -> type[Task[Any, Any]]:
    """The task of a BERT's head: the one that is wanted, if the head fits it."""
    possible = [kind for kind, head in PLAIN.items() if head in pretrained.heads]
    if not possible:
        name = "classify" if wanted is None else wanted.name
        raise CheckpointError(
            f"{where}: is a pretrained encoder (kind '{pretrained.kind}') without a trained head. Train one on it "
            f"first: headstart transfer {name} --from {where} ..."
        )
    if wanted is None:
        return possible[0]
    if wanted not in possible:
        names = " or ".join(kind.name for kind in possible)
        raise ConfigError(f"{where}: its head is for the task {names}; got '{wanted.name}', {wanted.title}.")
    return wanted


def check_exportable(loaded: TaskModel[Any, Any]) -> None:
    """Refuse a task that other tools do not know, such as one derived from classification: they would take its scores
    for those of one label."""
    if type(loaded.task) not in PLAIN:
        *others, last = [kind.title for kind in PLAIN]
        raise ConfigError(
            f"A model for {loaded.task.title} cannot be exported: other tools do not know how its answers follow from "
            f"its scores. Only {', '.join(others)} and {last} can."
        )


def plain_bert(loaded: TaskModel[Any, Any]) -> Pretrained:
    """A task model as a BERT with a plain head, if that is what it is."""
    check_exportable(loaded)
    head = loaded.model.head
    if not (loaded.encoder.pools and head.is_plain and loaded.model.only_reader.takes_top_layer):
        instead = "Fit" if isinstance(loaded.task, Tag) else "Export it --to onnx, or fit"
        pool = " --pool first" if isinstance(loaded.task, Classify) else ""
        raise ConfigError(
            "This model's head is not the plain one that Hugging Face's BERT has: a linear layer on BERT's own vector "
            f"of the sequence, or on each piece. {instead} one from a BERT with --how finetune{pool}."
        )
    return Pretrained(
        loaded.encoder,
        loaded.tokenizer,
        {PLAIN[type(loaded.task)]: head.get_submodule("output")},
        tuple(loaded.task.class_names),
    )


def record_of(loaded: TaskModel[Any, Any]) -> Table:
    """What the files of an exported model tell about its task, beside the names of its classes."""
    config, network = loaded.config, loaded.config.network
    record = TaskRecord(
        task=loaded.task.name,
        longest=config.longest,
        stride=config.stride,
        longest_answer=network.longest_answer if isinstance(network, SpanHeadConfig) else None,
        **{key: value for key, value in loaded.task.to_table().items() if key in TaskRecord.model_fields},
    )
    return record.model_dump(exclude_none=True)
