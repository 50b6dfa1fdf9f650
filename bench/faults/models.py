"""Tiny models in every format that is read: untrained, because damage does not ask for their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import headstart
from bench.faults.samples import TEXTS
from headstart.encoders.registry import ENCODERS
from headstart.heads.language_model import MaskedLMHead
from headstart.pretrained import Pretrained, save_run
from headstart.progress import result_of
from headstart.text.building import cache_entry
from headstart.text.shards import ShardWriter
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer, build_wordpiece
from headstart.text.words import split_words
from headstart.weights.elmo_hdf5 import write_elmo
from headstart.weights.huggingface import write_huggingface

SETTINGS: dict[str, dict[str, Any]] = {
    "static": {"dim": 6},
    "elmo": {"cell": 6, "projection": 4, "filters": [[1, 4], [2, 4]], "char_width": 3, "highway": 1},
    "bert": {"layers": 2, "width": 8, "heads": 2, "inner": 12, "positions": 64},
}


def words() -> list[str]:
    return sorted({word for text in TEXTS for word in split_words(text)})


def tokenizer_for(kind: str) -> WordTokenizer | WordPieceTokenizer:
    if kind == "bert":
        letters = sorted({letter for word in words() for letter in word.lower()})
        whole = sorted({word.lower() for word in words()} - set(letters))
        return build_wordpiece([*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *whole], True)
    counter = WordCounter()
    counter.add(dict.fromkeys(words(), 3))
    return WordTokenizer(counter.vocabulary(None, 1))


def tiny(kind: str, **changed: Any) -> Pretrained:
    """changed: settings of the encoder."""
    torch.manual_seed(0)
    tokenizer, settings = tokenizer_for(kind), SETTINGS[kind] | changed
    encoder = ENCODERS[kind].build(settings, len(tokenizer)).eval()
    heads: dict[str, Any] = {}
    if kind == "bert":
        heads = {"masked": MaskedLMHead(settings["width"], len(tokenizer), 1e-12, untied=False)}
    return Pretrained(encoder, tokenizer, heads, name=kind)


def as_run(kind: str, folder: Path) -> None:
    save_run(tiny(kind), folder, {}, "A test.\n")


def as_compact(folder: Path) -> None:
    run = folder.with_name("run-of-bert")
    as_run("bert", run)
    result_of(headstart.export(run, "compact", folder))


def as_pickled(folder: Path) -> None:
    """pytorch_model.bin in place of safetensors."""
    from safetensors.torch import load_file

    write_huggingface(tiny("bert"), folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def as_elmo(folder: Path) -> None:
    write_elmo(tiny("elmo"), folder, words())


def as_task_model(folder: Path) -> None:
    """A classifier of texts, fitted for one epoch, with its results.json and pictures."""
    train = folder.with_name("train.jsonl")
    train.write_bytes(b"".join(b'{"text": "%d film", "label": "%s"}\n' % (n, (b"a", b"b")[n % 2]) for n in range(20)))
    settings = {"fitting": {"epochs": 1}}
    list(headstart.transfer(train=train, out=folder, seeds=1, settings=settings))


def as_shards(folder: Path) -> None:
    """Tokenised text as the cache keeps it."""
    tokenizer = tokenizer_for("static")
    folder.rmdir()
    with cache_entry(folder) as entry, ShardWriter(entry / "train", len(tokenizer)) as writer:
        for text in (*TEXTS, "A word that is not known ."):
            writer.add(tokenizer.encode_sentences([text, text]), True)


def as_onnx(folder: Path) -> None:
    run = folder.with_name("run-of-static")
    as_run("static", run)
    result_of(headstart.export(run, "onnx", folder))


def as_huggingface(folder: Path, **changed: Any) -> None:
    write_huggingface(tiny("bert", **changed), folder)


def without_tokenizer_json(folder: Path) -> None:
    as_huggingface(folder)
    (folder / "tokenizer.json").unlink()
