"""Weights into a run directory, and out into the files that other tools open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headstart.config import pick
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.registry import ENCODERS
from headstart.encoders.static import Static
from headstart.errors import ConfigError
from headstart.pretrained import Pretrained, save_run
from headstart.pretraining.card import import_record, imported_card
from headstart.pretraining.compact import PRECISION, write_compact
from headstart.progress import Notice, Progress
from headstart.transfer.loading import check_exportable, load_task_model, plain_bert, record_of
from headstart.transfer.task_files import is_task_model
from headstart.transfer.task_model import TaskModel
from headstart.weights.elmo_hdf5 import IN_ALLENNLP, write_elmo
from headstart.weights.huggingface import write_huggingface
from headstart.weights.new_folder import check_free, new_folder
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
    record = import_record(pretrained)
    save_run(pretrained, out, record, imported_card(out.name, pretrained, record))
    return pretrained


@dataclass(frozen=True, slots=True)
class Options:
    """What only some formats take; None where it was not given."""

    words: list[str] | None
    precision: str | None
    held_out: list[str] | None

    def given(self) -> list[str]:
        return [name for name, value in asdict(self).items() if value is not None]


@dataclass(frozen=True, slots=True)
class Exported:
    """An encoder to write. run: the run directory that it comes from, if it comes from one."""

    pretrained: Pretrained
    run: Path | None
    options: Options


Writer = Callable[[Exported, Path], Generator[Progress | Notice, None, None]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files: the encoders it can hold, what writes them, and what writes task models, if it can."""

    encoders: tuple[type[Encoder], ...]
    write: Writer
    write_task_model: Callable[[TaskModel[Any, Any], Path], None] | None = None
    options: tuple[str, ...] = ()
    """Of `Options`, those that it takes."""


def at_once(write: Callable[[Pretrained, Path], None]) -> Writer:
    """A writer that needs no options and has no progress to report."""

    def writer(given: Exported, out: Path) -> Generator[Progress | Notice, None, None]:
        yield from ()
        write(given.pretrained, out)

    return writer


def in_new_folder(write: Callable[[Pretrained, Path], None], name: str) -> Writer:
    """A writer of one file, which lies in its folder beside its checksum."""

    def write_folder(pretrained: Pretrained, out: Path) -> None:
        with new_folder(out) as folder:
            write(pretrained, folder / name)

    return at_once(write_folder)


def write_elmo_files(given: Exported, out: Path) -> Generator[Progress | Notice, None, None]:
    write_elmo(given.pretrained, out, given.options.words)
    encoder = given.pretrained.encoder
    if isinstance(encoder, Elmo) and encoder.config.tokens in IN_ALLENNLP:
        yield Notice(IN_ALLENNLP[encoder.config.tokens])


def write_compact_run(given: Exported, out: Path) -> Generator[Progress, None, None]:
    options = given.options
    yield from write_compact(
        given.pretrained, given.run, out, precision=options.precision or PRECISION, held_out=options.held_out
    )


def write_plain_bert(model: TaskModel[Any, Any], out: Path) -> None:
    write_huggingface(plain_bert(model), out, record_of(model))


def write_task_model_onnx(model: TaskModel[Any, Any], out: Path) -> None:
    check_exportable(model)
    write_model_onnx(model.model, model.tokenizer, model.task.class_names, out, record_of(model))


FORMATS = {
    "compact": Format(tuple(ENCODERS.values()), write_compact_run, options=("precision", "held_out")),
    "hf": Format((Bert,), at_once(write_huggingface), write_plain_bert),
    "elmo": Format((Elmo,), write_elmo_files, options=("words",)),
    "word2vec": Format((Static,), in_new_folder(write_word2vec, "word2vec.txt")),
    "word2vec-binary": Format((Static,), in_new_folder(partial(write_word2vec, binary=True), "word2vec.bin")),
    "glove": Format((Static,), in_new_folder(write_glove, "glove.txt")),
    "onnx": Format(tuple(ONNX_ENCODERS), at_once(write_encoder_onnx), write_task_model_onnx),
}


def export(
    source: Source,
    to: str,
    out: str | Path,
    *,
    words: Collection[str] | Path | None = None,
    precision: str | None = None,
    held_out: Sequence[str] | None = None,
) -> Generator[Progress | Notice, None, Path]:
    """Write an encoder or a task model into the folder `out`, as `hf`, `elmo`, `word2vec`, `word2vec-binary`, `glove`
    or `onnx` files, or as a `compact` run. The folder must be empty or new.

    words: with `elmo`, also write the vectors that the character network gives these words (or a file's).
    precision: with `compact`, that of the matrices: int8 (default) or float16. held_out: with `compact`, text on which
    the run's perplexity is measured before and after, for its card.
    """
    form, out = pick(FORMATS, to, "format"), Path(out)
    check_free(out)
    options = Options(word_list(words), precision, None if held_out is None else list(held_out))
    for name in options.given():
        if name not in form.options:
            takers = " or ".join(other for other, entry in FORMATS.items() if name in entry.options)
            raise ConfigError(f"--{name.replace('_', '-')} is for --to {takers}; got --to {to}. Leave it out.")
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
    yield from form.write(Exported(pretrained, run_of(source), options), out)
    return out


def run_of(source: Source) -> Path | None:
    is_run = not isinstance(source, tuple) and (Path(source) / "config.toml").is_file()
    return Path(str(source)) if is_run else None


def word_list(words: Collection[str] | Path | None) -> list[str] | None:
    if words is None:
        return None
    return read_word_list(words) if isinstance(words, Path) else list(words)
