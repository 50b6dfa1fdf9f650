"""Weights into a run directory, and out into the files that other tools open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headstart.config import pick
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.static import Static
from headstart.errors import ConfigError
from headstart.pretrained import Pretrained, save_run, weights_of
from headstart.pretraining.card import imported_card
from headstart.progress import Notice, Progress
from headstart.transfer.loading import check_answers_are_softmax, load_task_model, plain_bert
from headstart.transfer.task_model import TaskModel, is_task_model
from headstart.weights.elmo_hdf5 import IN_ALLENNLP, write_elmo
from headstart.weights.huggingface import write_huggingface
from headstart.weights.new_folder import check_free
from headstart.weights.onnx.model import write_encoder_onnx, write_model_onnx
from headstart.weights.onnx.registry import ONNX_ENCODERS
from headstart.weights.sources import Source, open_source
from headstart.weights.vector_files import write_glove, write_word2vec
from headstart.weights.vectors import read_word_list


def import_run(
    source: Source, out: str | Path, *, words: Collection[str] | Path | None = None
) -> Generator[Progress, None, Pretrained]:
    """Open any source and keep it as the run directory `out`. words: of word vectors, keep these (or a file's) only."""
    out = Path(out)
    check_free(out)
    pretrained = yield from open_source(source, words=word_list(words))
    parts = ["encoder", *sorted(pretrained.heads)]
    record = {"imported": pretrained.name, "parts": parts, "headstart": version("headstart")}
    numbers = sum(tensor.numel() for tensor in weights_of(pretrained).values())
    card = imported_card(out.name, pretrained.kind, len(pretrained.tokenizer), numbers, record, pretrained.notices)
    save_run(pretrained, out, record, card)
    return pretrained


@dataclass(frozen=True, slots=True)
class Format:
    """A format of other tools: the encoders it can hold, what writes them, and what writes task models, if it can."""

    encoders: tuple[type[Encoder], ...]
    write: Callable[[Pretrained, Path], None]
    write_task_model: Callable[[TaskModel[Any, Any], Path], None] | None = None


def write_plain_bert(model: TaskModel[Any, Any], out: Path) -> None:
    write_huggingface(plain_bert(model), out)


def write_task_model_onnx(model: TaskModel[Any, Any], out: Path) -> None:
    check_answers_are_softmax(model)
    write_model_onnx(model.model, model.tokenizer, model.task.to_table()["labels"], out)


FORMATS = {
    "hf": Format((Bert,), write_huggingface, write_plain_bert),
    "elmo": Format((Elmo,), write_elmo),
    "word2vec": Format((Static,), lambda pretrained, out: write_word2vec(pretrained, out / "word2vec.txt")),
    "word2vec-binary": Format(
        (Static,), lambda pretrained, out: write_word2vec(pretrained, out / "word2vec.bin", binary=True)
    ),
    "glove": Format((Static,), lambda pretrained, out: write_glove(pretrained, out / "glove.txt")),
    "onnx": Format(tuple(ONNX_ENCODERS), write_encoder_onnx, write_task_model_onnx),
}


def export(
    source: Source, to: str, out: str | Path, *, words: Collection[str] | Path | None = None
) -> Generator[Progress | Notice, None, Path]:
    """Write an encoder or a task model into the folder `out`, as `hf`, `elmo`, `word2vec`, `word2vec-binary`, `glove`
    or `onnx` files. The folder must be empty or new.

    words: with `elmo`, also write the vectors that the character network gives these words (or a file's).
    """
    form, out = pick(FORMATS, to, "format"), Path(out)
    check_free(out)
    wanted = word_list(words)
    if wanted is not None and to != "elmo":
        raise ConfigError(f"Words are for --to elmo, whose files may hold their vectors; got --to {to}.")
    if not isinstance(source, tuple) and is_task_model(Path(source)):
        if form.write_task_model is None:
            possible = " or ".join(name for name, other in FORMATS.items() if other.write_task_model)
            raise ConfigError(f"{source}: is a task model, which can be exported as {possible}; got --to {to}.")
        form.write_task_model(load_task_model(source), out)
        return out
    pretrained = yield from open_source(source)
    if not isinstance(pretrained.encoder, form.encoders):
        names = [name for name, other in FORMATS.items() if isinstance(pretrained.encoder, other.encoders)]
        possible = f"can be exported as {', '.join(names)}" if names else "has no export format yet"
        raise ConfigError(f"{source}: holds {pretrained.kind}, which {possible}; got --to {to}.")
    if wanted is not None:
        write_elmo(pretrained, out, wanted)
    else:
        form.write(pretrained, out)
    if to == "elmo" and isinstance(pretrained.encoder, Elmo) and pretrained.encoder.config.tokens in IN_ALLENNLP:
        yield Notice(IN_ALLENNLP[pretrained.encoder.config.tokens])
    return out


def word_list(words: Collection[str] | Path | None) -> list[str] | None:
    if words is None:
        return None
    return read_word_list(words) if isinstance(words, Path) else list(words)
