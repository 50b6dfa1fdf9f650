"""A pretrained encoder in use: load a run, and read the vectors of sentences from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.batches.task import MARKS, TextRow, collate, sorted_batches, text_row
from headstart.config import Table, pick, resolve
from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.representations import Representations
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, DataError
from headstart.text.encoding import Encoding
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

BATCH_UNITS = 2_048
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pretrained:
    """An encoder with its tokenizer. A sentence's vectors depend on that sentence alone."""

    kind: str
    encoder: nn.Module
    tokenizer: Tokenizer

    def words(self, sentence: str) -> list[str]:
        """The words that `represent` gives a vector each."""
        encoding = self.tokenizer.encode(sentence)
        return [sentence[start:end] for start, end in word_bounds(encoding)]

    def represent(self, sentences: Sequence[str]) -> list[Vectors]:
        """Per sentence, the vectors of all layers: (K, words, D)."""
        rows = [text_row(self.kind, self.tokenizer, sentence) for sentence in sentences]
        room = room_of(self.encoder)
        longest = max((len(row.ids) for row in rows), default=0)
        if room is not None and longest > room + MARKS:
            raise DataError(
                f"A sentence has {longest} pieces with its marks, and this BERT reads {room + MARKS}. Split it."
            )
        found: list[Vectors] = [np.empty((0, 0, 0), np.float32)] * len(sentences)
        for batch, R in self.encode(rows):
            for row, i in enumerate(batch):
                found[i] = R.layers[:, row, : len(rows[i].word_starts)].cpu().numpy().copy()
        return found

    def encode(self, rows: Sequence[TextRow]) -> Iterator[tuple[list[int], Representations]]:
        """Batches of rows of like length with their representations at words; the numbers say which rows they are."""
        self.encoder.eval()
        device = next(self.encoder.parameters()).device
        for numbers in sorted_batches([len(row.ids) for row in rows], BATCH_UNITS):
            batch = collate([rows[i] for i in numbers]).to(device)
            with torch.no_grad():
                R: Representations = self.encoder(batch.ids, batch.mask, batch.segments)
            yield numbers, R.at_words(batch.word_starts)


def room_of(encoder: nn.Module) -> int | None:
    """Units that fit into one sequence besides its marks; None: any number."""
    positions = getattr(encoder.config, "positions", None)
    return None if positions is None else int(positions) - MARKS


def word_bounds(encoding: Encoding) -> Iterator[tuple[int, int]]:
    """(first character, last) of each word of an encoding."""
    words, spans = encoding.words, encoding.spans
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    ends = np.append(starts[1:], len(words)) - 1
    yield from ((int(spans[a, 0]), int(spans[b, 1])) for a, b in zip(starts, ends, strict=True))


def build_encoder(kind: str, settings: Table, vocabulary: int) -> nn.Module:
    """An encoder of this shape, with its random start; weights come after."""
    return pick(ENCODERS, kind, "encoder")(settings, vocabulary)


ENCODERS: dict[str, Callable[[Table, int], nn.Module]] = {
    "static": lambda settings, vocabulary: Static(resolve(StaticConfig, settings), vocabulary),
    "elmo": lambda settings, vocabulary: Elmo(resolve(ElmoConfig, settings)),
    "bert": lambda settings, vocabulary: Bert(resolve(BertConfig, settings), vocabulary),
}


def encoder_settings(table: Table) -> Table:
    """The encoder's shape, from the config.toml of a pretraining run."""
    if table["kind"] == "static":
        return {"dim": table["objective"]["dim"]}
    settings: Table = table["encoder"]
    return settings


def load(path: str | Path) -> Pretrained:
    """The encoder of a run directory, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(Path(path))
    table = run.read_config()
    if "data" not in table:
        what = "is a classifier, which `headstart predict` reads" if "labels" in table else "was not written by a run"
        raise CheckpointError(f"{run.path}: {what}; wanted the folder of a pretrained encoder.")
    tokenizer = load_tokenizer(run.path)
    if len(tokenizer) != table["data"]["vocabulary"]:
        raise CheckpointError(
            f"{run.path}: the tokenizer has {len(tokenizer):,} entries, the weights expect "
            f"{table['data']['vocabulary']:,}."
        )
    kind = table["kind"]
    encoder = build_encoder(kind, encoder_settings(table), len(tokenizer))
    load_strictly(encoder, encoder_weights(kind, read_tensors(run.weights)), run.weights)
    return Pretrained(kind, encoder, tokenizer)


def encoder_weights(kind: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's own part of what pretraining saved."""
    if kind == "static":
        return {"vectors": weights["vectors"]}
    return {name.removeprefix("encoder."): value for name, value in weights.items() if name.startswith("encoder.")}


def load_strictly(encoder: nn.Module, weights: dict[str, Tensor], where: Path) -> None:
    own = encoder.state_dict()
    for name in sorted(own.keys() | weights.keys()):
        if name not in weights or name not in own:
            raise CheckpointError(f"{where}: does not fit its config.toml: '{name}' is on one side only.")
        if own[name].shape != weights[name].shape:
            raise CheckpointError(
                f"{where}: does not fit its config.toml: '{name}' has shape {tuple(weights[name].shape)}, "
                f"wanted {tuple(own[name].shape)}."
            )
    encoder.load_state_dict(weights)
