"""A task model in a run directory: written whole, and read back strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.checksums import write_sums
from headstart.config import Table, resolve, settings_of
from headstart.encoders.registry import build_encoder
from headstart.errors import CheckpointError
from headstart.model import Model
from headstart.pretrained import built_to_fit, check_table
from headstart.tasks import task_class
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.seeding import freshly_initialised
from headstart.training.tensors import read_tensors
from headstart.transfer.config import config_for
from headstart.transfer.task_model import TaskModel, build_model

KIND = "task"
ONLY_READER, HEAD = "readers.0.", "head."
"""What the names of a model's tensors begin with. In the file of a model with one encoder the first is left out."""
TASK_KEYS: dict[str, type] = {"trained": bool}
SOURCE_KEYS: dict[str, type] = {"encoder_kind": str, "vocabulary": int, "encoder": dict}
BEFORE_TASKS = "classifier"
"""The kind that classifiers had before there were other tasks."""


def save_task_model(made: TaskModel[Any, Any], path: Path, record: Mapping[str, Any]) -> None:
    """Into a run directory: tokenizers, weights, then config.toml, which makes them count, and the checksums.

    record: [result]. Files that are there already, such as a card, are among the checksums.
    """
    run, weights = RunDirectory(path), made.model.state_dict()
    path.mkdir(parents=True, exist_ok=True)
    sources = [
        {"encoder_kind": encoder.kind, "vocabulary": len(tokenizer), "encoder": settings_of(encoder.config)}
        for encoder, tokenizer in zip(made.model.encoders, made.tokenizers, strict=True)
    ]
    table: Table = {"kind": KIND, "task": made.task.name}
    if len(sources) == 1:
        made.tokenizers[0].save(path)
        weights = {name.removeprefix(ONLY_READER): tensor for name, tensor in weights.items()}
        table |= sources[0]
    else:
        for number, tokenizer in enumerate(made.tokenizers):
            folder = path / source_folder(number)
            folder.mkdir(exist_ok=True)
            tokenizer.save(folder)
        table["sources"] = sources
    run.write_weights(weights)
    run.write_config(
        {
            **table,
            **made.task.to_table(),
            "trained": made.trained,
            "transfer": settings_of(made.config),
            "result": dict(record),
        }
    )
    write_sums(path)


def source_folder(number: int) -> str:
    """Where the tokenizer of one of several encoders is kept in a run."""
    return f"source{number}"


def is_task_model(path: Path) -> bool:
    """Whether a folder is a run that `transfer` wrote."""
    return (path / "config.toml").is_file() and RunDirectory(path).read_config().get("kind") in (KIND, BEFORE_TASKS)


def load_own(path: Path) -> TaskModel[Any, Any]:
    """A task model that was saved here, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
    table = run.read_config()
    where = run.path / "config.toml"
    check_table({"task": "classify", "transfer": {}} | table, {"task": str, "transfer": dict}, where)
    kind = task_class(table.get("task", "classify"))
    check_table(table, {**kind.saved_keys, **TASK_KEYS}, where)
    task = kind.from_table(table)
    settings = resolve(config_for(kind), table.get("transfer", {}), str(where))
    several = "sources" in table
    sources: list[Table] = table["sources"] if several else [table]
    folders = [run.path / source_folder(number) if several else run.path for number in range(len(sources))]
    tokenizers = tuple([tokenizer_of(source, folder, where) for source, folder in zip(sources, folders, strict=True)])
    pairs = list(zip(sources, tokenizers, strict=True))
    weights = read_tensors(run.weights)
    if not several:
        weights = {name if name.startswith(HEAD) else ONLY_READER + name: value for name, value in weights.items()}

    def build() -> Model:
        encoders = [build_encoder(one["encoder_kind"], one["encoder"], len(tokenizer)) for one, tokenizer in pairs]
        return build_model(encoders, task, settings)

    # The random start is overwritten at once; drawing it must not move anybody else's random numbers.
    model = built_to_fit(lambda: freshly_initialised(0, build), weights, run.weights)
    loaded = TaskModel(task, tokenizers, model, settings).frozen()
    return replace(loaded, trained=bool(table["trained"]))


def tokenizer_of(source: Table, folder: Path, where: Path) -> Tokenizer:
    check_table(source, SOURCE_KEYS, where)
    tokenizer = load_tokenizer(folder)
    if len(tokenizer) != source["vocabulary"]:
        raise CheckpointError(
            f"{folder}: the tokenizer has {len(tokenizer):,} entries, the weights expect {source['vocabulary']:,}."
        )
    return tokenizer
