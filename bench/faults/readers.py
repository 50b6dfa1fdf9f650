"""Every reader of files, with a valid file for it: what it reads, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import headstart
from bench.faults import models
from bench.faults.samples import FILES
from headstart.claims.results import result_from_json
from headstart.errors import HeadstartError
from headstart.pretrained import Pretrained, load_run
from headstart.progress import result_of
from headstart.report.results_json import read_cell, read_comparison
from headstart.serving.runs import Shelf
from headstart.tasks import task_class
from headstart.tasks.coref_reading import read_documents
from headstart.text.documents import TextConfig, read_blocks
from headstart.text.lines import Lines
from headstart.text.sentences import sentence_spans
from headstart.text.tokenise import open_corpora
from headstart.training.run import CheckpointNote, RunDirectory
from headstart.transfer.loading import load_task_model
from headstart.weights.sources import open_source
from headstart.weights.vector_files import write_glove, write_word2vec
from headstart.weights.vectors import read_word_list

Read = Callable[[Path], object]
COMPARISON = Path(__file__).parents[2] / "tests/data/previous_version/comparison"


@dataclass(frozen=True, slots=True)
class Reader:
    """make: fills a folder with valid files; file: the one that is damaged; read: what reads it, given its path."""

    make: Callable[[Path], object]
    file: str
    read: Read
    quick: bool = field(default=False)
    """Whether it is among the few that the quick run damages."""


def texts(path: Path) -> None:
    """As pretraining reads text, and as encode does."""
    for block in read_blocks([path], TextConfig()):
        sentence_spans(block.text, False)
    list(Lines(path, None))


def examples(task: str, path: Path) -> None:
    kind = task_class(task)
    config = kind.Input()
    found = kind.read(path, config)
    kind.learn(found).check(found, "themselves")
    kind.notices(path, config)
    for example in found:
        json.dumps([kind.key(example), kind.gold(example), kind.line(example)])


def encoder(path: Path) -> None:
    used(headstart.load(path.parent))


def vectors(path: Path) -> None:
    used(result_of(open_source(path)))


def used(pretrained: Pretrained) -> None:
    list(pretrained.represent(["Nobody likes the old garden .", "Das Café 他走了"]))


def run_of_its_own(path: Path) -> None:
    used(load_run(path.parent))


def task_model(path: Path) -> None:
    loaded = load_task_model(path.parent)
    list(loaded.predict(["a film", "1 film"])) if hasattr(loaded, "predict") else None


def shards(path: Path) -> None:
    """As pretraining takes tokenised text from the cache: what is damaged is removed, and made anew."""
    corpora = open_corpora(path.parents[1], reused=True)
    if corpora is None:
        return
    found = corpora.train
    for index in range(found.n_documents):
        found.document(index)
    found.unit_counts()
    for id in range(found.vocabulary_size, found.vocabulary_size + 2):
        found.extra(id)


def checkpoint(path: Path) -> None:
    RunDirectory(path.parents[1]).restore()


def make_checkpoint(folder: Path) -> None:
    import torch

    run = RunDirectory.create(folder)
    for steps in (1, 2):
        run.save(CheckpointNote(steps=steps), {"weight": torch.ones(3, 4), "bias": torch.zeros(4)})


def comparison(name: str, folder: Path) -> None:
    (folder / Path(name).name).write_bytes((COMPARISON / name).read_bytes())


def cell(path: Path) -> None:
    gold = json.loads((COMPARISON / "gold.json").read_text(encoding="utf-8"))
    read_cell(path.read_text(encoding="utf-8", errors="replace"), gold)
    result_from_json(path.read_text(encoding="utf-8", errors="replace"))


def shelf(path: Path) -> None:
    opened = Shelf(path.parent)
    for facts in opened.runs():
        opened.curve(facts["name"])


def make_shelf(folder: Path) -> None:
    lines = [{"step": step, "loss": 2.5 / step, "valid": {"perplexity": 9.5}} for step in range(1, 9)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"final": {"loss": 1.0}}]))
    (folder / "config.toml").write_text('kind = "bert"\n', encoding="utf-8")


def refused(path: Path) -> str:
    """Files that nothing here reads: told in a sentence, whatever is in them."""
    try:
        encoder(path)
    except HeadstartError as error:
        return str(error)
    raise ValueError("was opened")


def sample(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(FILES[name]())


def text_reader(name: str, quick: bool = False) -> Reader:
    return Reader(sample(name), name, texts, quick)


def task_reader(task: str, name: str, quick: bool = False) -> Reader:
    return Reader(sample(name), name, partial(examples, task), quick)


READERS: dict[str, Reader] = {
    **{name: text_reader(name, name == "text.jsonl") for name in FILES if name.startswith("text.")},
    "labelled.csv": task_reader("classify", "labelled.csv", quick=True),
    "labelled.jsonl": task_reader("classify", "labelled.jsonl"),
    "labelled.parquet": task_reader("classify", "labelled.parquet"),
    "reviews.tgz": task_reader("classify", "reviews.tgz"),
    "trees.txt": task_reader("classify", "trees.txt", quick=True),
    "tagged.conll": task_reader("tag", "tagged.conll", quick=True),
    "tagged.conllu": task_reader("tag", "tagged.conllu"),
    "tagged.jsonl": task_reader("tag", "tagged.jsonl"),
    "pairs.tsv": task_reader("pair", "pairs.tsv"),
    "pairs.jsonl": task_reader("pair", "pairs.jsonl"),
    "squad.json": task_reader("qa", "squad.json", quick=True),
    "squad.json.gz": task_reader("qa", "squad.json.gz"),
    "questions.jsonl": task_reader("qa", "questions.jsonl"),
    "roles.gold_conll": task_reader("srl", "roles.gold_conll"),
    "roles.jsonl": task_reader("srl", "roles.jsonl"),
    "coref.conll": task_reader("coref", "coref.conll"),
    "coref.jsonl": task_reader("coref", "coref.jsonl"),
    "gap.tsv": Reader(sample("gap.tsv"), "gap.tsv", read_documents),
    "glove.txt": Reader(lambda folder: write_glove(models.tiny("static"), folder / "glove.txt"), "glove.txt", vectors),
    "word2vec.txt": Reader(
        lambda folder: write_word2vec(models.tiny("static"), folder / "word2vec.txt"), "word2vec.txt", vectors
    ),
    "word2vec.bin": Reader(
        lambda folder: write_word2vec(models.tiny("static"), folder / "word2vec.bin", binary=True),
        "word2vec.bin",
        vectors,
        quick=True,
    ),
    "words.txt": Reader(
        lambda folder: (folder / "words.txt").write_text("\n".join(models.words())), "words.txt", read_word_list
    ),
    "elmo options.json": Reader(models.as_elmo, "options.json", encoder, quick=True),
    "elmo weights.hdf5": Reader(models.as_elmo, "weights.hdf5", encoder, quick=True),
    "elmo token_embeddings.hdf5": Reader(models.as_elmo, "token_embeddings.hdf5", encoder),
    "elmo vocab.txt": Reader(models.as_elmo, "vocab.txt", encoder),
    "hf config.json": Reader(models.as_huggingface, "config.json", encoder),
    "hf model.safetensors": Reader(models.as_huggingface, "model.safetensors", encoder, quick=True),
    "hf tokenizer.json": Reader(models.as_huggingface, "tokenizer.json", encoder, quick=True),
    "hf tokenizer_config.json": Reader(models.without_tokenizer_json, "tokenizer_config.json", encoder),
    "hf vocab.txt": Reader(models.without_tokenizer_json, "vocab.txt", encoder),
    "hf pytorch_model.bin": Reader(models.as_pickled, "pytorch_model.bin", encoder),
    "run config.toml, static": Reader(partial(models.as_run, "static"), "config.toml", run_of_its_own, quick=True),
    "run config.toml, elmo": Reader(partial(models.as_run, "elmo"), "config.toml", run_of_its_own),
    "run config.toml, bert": Reader(partial(models.as_run, "bert"), "config.toml", run_of_its_own),
    "run weights.safetensors": Reader(partial(models.as_run, "bert"), "weights.safetensors", run_of_its_own),
    "run weights.safetensors, compact": Reader(models.as_compact, "weights.safetensors", run_of_its_own),
    "run words.tsv": Reader(partial(models.as_run, "static"), "words.tsv", run_of_its_own),
    "task model config.toml": Reader(models.as_task_model, "config.toml", task_model),
    "task model weights.safetensors": Reader(models.as_task_model, "weights.safetensors", task_model),
    "checkpoint note": Reader(make_checkpoint, "state/step-000000002.json", checkpoint),
    "checkpoint tensors": Reader(make_checkpoint, "state/step-000000002.safetensors", checkpoint),
    "comparison results.json": Reader(partial(comparison, "results.json"), "results.json", read_comparison, quick=True),
    "comparison cell": Reader(partial(comparison, "cells/scratch--4--0.json"), "scratch--4--0.json", cell),
    "log.jsonl": Reader(make_shelf, "log.jsonl", shelf),
    "shards index.json": Reader(models.as_shards, "train/index.json", shards),
    "shards ids": Reader(models.as_shards, "train/00000.ids", shards),
    "shards sentences": Reader(models.as_shards, "train/00000.sentences", shards),
    "shards extra_ends": Reader(models.as_shards, "train/00000.extra_ends", shards),
    "onnx": Reader(models.as_onnx, "model.onnx", refused),
}
