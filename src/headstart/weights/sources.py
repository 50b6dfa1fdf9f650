"""Opens pretrained weights, wherever they are: a run directory, files of other tools, the catalogue, the Hub."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator
from dataclasses import replace
from pathlib import Path

from headstart.checksums import check_sums
from headstart.config import cache_home, pick
from headstart.encoders.base import PRECISIONS
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import Pretrained, load_run
from headstart.progress import Progress, result_of
from headstart.weights.catalogue import TEXTS, catalogue, nearest_entry
from headstart.weights.elmo_hdf5 import find_elmo, read_elmo
from headstart.weights.fetching import fetch
from headstart.weights.hub import PREFIX as HUB
from headstart.weights.hub import fetch_hub
from headstart.weights.huggingface import is_huggingface, read_huggingface
from headstart.weights.vectors import looks_like_vectors, read_vectors

Source = str | Path | tuple[str | Path, ...]
"""What KINDS_OF_SOURCE lists. A tuple has the paths of ELMo's files."""
KINDS_OF_SOURCE = (
    "a run directory, a Hugging Face BERT folder, ELMo's options.json,weights.hdf5, a file of word vectors, "
    "hf:org/name or a name that `headstart get --list` shows"
)


def load(source: Source, *, words: Collection[str] | None = None, precision: str = "float32") -> Pretrained:
    """A pretrained encoder with its tokenizer and heads.

    source: a run directory, a Hugging Face BERT folder, a tuple of ELMo's two files, a file of word vectors (GloVe,
    word2vec), a name of the catalogue or hf:org/name; the last two are downloaded once. words: of word vectors, keep
    only these. precision: float32, or int8, in which a BERT is faster and gives nearly the same vectors.
    """
    pretrained = result_of(open_source(source, words=words, precision=precision))
    for notice in pretrained.notices:
        logging.getLogger("headstart").warning(notice)
    return pretrained


def open_source(
    source: Source,
    *,
    words: Collection[str] | None = None,
    cache: Path | None = None,
    precision: str = "float32",
) -> Generator[Progress, None, Pretrained]:
    """`load` as a generator of progress. cache: where downloads are kept."""
    convert = pick(PRECISIONS, precision, "precision")
    found = yield from local(source, cache or cache_home())
    pretrained = yield from open_files(found, words)
    if words is not None and pretrained.encoder.contextual:
        raise ConfigError(f"{source}: holds {pretrained.kind}, and only word vectors can be cut down to some words.")
    return replace(pretrained, name=name_of(source), encoder=convert(pretrained.encoder))


def name_of(source: Source) -> str:
    """A short name for tables: the last part of a path or of a repository, or the name in the catalogue."""
    last = source[-1] if isinstance(source, tuple) else source
    return Path(str(last).removeprefix(HUB)).resolve().name


def local(source: Source, home: Path) -> Generator[Progress, None, tuple[Path, ...]]:
    """The paths of a source, downloaded if need be. A path on disk goes before a name of the catalogue."""
    if isinstance(source, tuple):
        return tuple(Path(part) for part in source)
    text = str(source)
    if not text.strip():
        raise ConfigError(f"The source is empty; wanted {KINDS_OF_SOURCE}.")
    if text.startswith(HUB):
        return ((yield from fetch_hub(text, home)),)
    if Path(text).exists():
        return (Path(text),)
    if "," in text:
        return tuple(Path(part.strip()) for part in text.split(","))
    if text in catalogue():
        if catalogue()[text].kind == TEXTS:
            raise ConfigError(f"{text}: is labelled text, not an encoder; give it as --train.")
        return ((yield from fetch(text, home)),)
    raise CheckpointError(
        f"{text}: there is no such file or folder, nor such a name in the catalogue. {nearest_entry(text)}"
    )


def open_files(paths: tuple[Path, ...], words: Collection[str] | None) -> Generator[Progress, None, Pretrained]:
    for path in paths:
        if not path.exists():
            raise CheckpointError(f"{path}: there is no such file.")
        if path.is_file():
            check_sums(path.parent, foreign=True, only=[path.name])
    if len(paths) > 1:
        return read_elmo(*paths)
    path = paths[0]
    if path.is_file():
        return (yield from open_file(path, words))
    if not path.is_dir():
        raise CheckpointError(f"{path}: is neither a file nor a folder; wanted {KINDS_OF_SOURCE}.")
    if (path / "config.toml").is_file():
        return load_run(path)
    check_sums(path, foreign=True)
    if is_huggingface(path):
        return read_huggingface(path)
    elmo = find_elmo(path)
    if elmo is not None:
        return read_elmo(*elmo)
    vectors = [file for file in sorted(path.iterdir()) if file.is_file() and looks_like_vectors(file)]
    if len(vectors) == 1:
        return (yield from read_vectors(vectors[0], words))
    raise CheckpointError(f"{path}: nothing in this folder can be opened; wanted {KINDS_OF_SOURCE}.")


def open_file(path: Path, words: Collection[str] | None) -> Generator[Progress, None, Pretrained]:
    if path.suffix in (".hdf5", ".h5") or path.name == "options.json":
        raise CheckpointError(f"{path}: an ELMo is two files; give them as options.json,weights.hdf5.")
    if path.suffix in (".json", ".safetensors", ".toml") or path.name == "pytorch_model.bin":
        raise CheckpointError(f"{path}: is one file of a model; give the folder it is in.")
    return (yield from read_vectors(path, words))


def labelled_file(given: str | Path, home: Path | None = None) -> Generator[Progress, None, Path]:
    """The path of labelled examples, downloaded if `given` is a name of the catalogue."""
    name = str(given)
    if Path(given).exists() or name not in catalogue() or catalogue()[name].kind != TEXTS:
        return Path(given)
    folder = yield from fetch(name, home or cache_home())
    return folder / f"{name}.csv"
