"""A pretrained encoder in use: load a run, and read the vectors of sentences from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.config import pick, resolve
from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.representations import Representations
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, DataError
from headstart.text.characters import characters_of
from headstart.text.encoding import Encoding
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

BATCH_SENTENCES = 32
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
        encodings = [self.tokenizer.encode(sentence) for sentence in sentences]
        order = sorted(range(len(sentences)), key=lambda i: len(encodings[i].ids))
        found: list[Vectors] = [np.empty((0, 0, 0), np.float32)] * len(sentences)
        self.encoder.eval()
        with torch.inference_mode():
            for first in range(0, len(order), BATCH_SENTENCES):
                rows = order[first : first + BATCH_SENTENCES]
                R = INPUTS[self.kind](self, [encodings[i] for i in rows])
                for row, i in enumerate(rows):
                    n = int(R.mask[row].sum())
                    found[i] = R.layers[:, row, :n].cpu().numpy().copy()
        return found


def word_bounds(encoding: Encoding) -> Iterator[tuple[int, int]]:
    """(first character, last) of each word of an encoding."""
    words, spans = encoding.words, encoding.spans
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    ends = np.append(starts[1:], len(words)) - 1
    yield from ((int(spans[a, 0]), int(spans[b, 1])) for a, b in zip(starts, ends, strict=True))


def padded(rows: list[NDArray[Any]], like: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """Rows of different length as one (B, T, ...) tensor of ids, and its mask."""
    T = max(1, max(len(row) for row in rows))
    ids = np.zeros((len(rows), T, *like), dtype=np.int64)
    mask = np.zeros((len(rows), T), dtype=bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)


def through_static(pretrained: Pretrained, encodings: list[Encoding]) -> Representations:
    R: Representations = pretrained.encoder(*padded([encoding.ids for encoding in encodings]))
    return R


def through_elmo(pretrained: Pretrained, encodings: list[Encoding]) -> Representations:
    """Characters with the sentence marks around them; the marks' own vectors are dropped."""
    rows = [np.stack([characters_of(word) for word in ["<S>", *e.units, "</S>"]]) for e in encodings]
    R: Representations = pretrained.encoder(*padded(rows, rows[0].shape[1:]))
    return Representations(R.layers[:, :, 1:-1], R.mask[:, 2:])


def through_bert(pretrained: Pretrained, encodings: list[Encoding]) -> Representations:
    """[CLS] pieces [SEP]; a word's vector is that of its first piece."""
    encoder = pretrained.encoder
    pieces: Any = pretrained.tokenizer
    cls, sep = pieces.id("[CLS]"), pieces.id("[SEP]")
    rows = [np.concatenate([[cls], encoding.ids, [sep]]) for encoding in encodings]
    longest, room = max(len(row) for row in rows), int(encoder.config.positions)  # type: ignore[union-attr,arg-type]
    if longest > room:
        raise DataError(f"A sentence has {longest} pieces with its marks, and this BERT reads {room}. Split it.")
    R: Representations = encoder(*padded(rows))
    starts = [1 + np.flatnonzero(np.diff(encoding.words, prepend=-1)) for encoding in encodings]
    first_piece, is_word = padded(starts)
    return R.at_words(first_piece.masked_fill(~is_word, -1))


INPUTS: dict[str, Callable[[Pretrained, list[Encoding]], Representations]] = {
    "static": through_static,
    "elmo": through_elmo,
    "bert": through_bert,
}


def build_static(table: dict[str, Any], vocabulary: int) -> nn.Module:
    return Static(StaticConfig(dim=table["objective"]["dim"]), vocabulary)


def build_elmo(table: dict[str, Any], vocabulary: int) -> nn.Module:
    return Elmo(resolve(ElmoConfig, table["encoder"]))


def build_bert(table: dict[str, Any], vocabulary: int) -> nn.Module:
    return Bert(resolve(BertConfig, table["encoder"]), vocabulary)


BUILDERS: dict[str, Callable[[dict[str, Any], int], nn.Module]] = {
    "static": build_static,
    "elmo": build_elmo,
    "bert": build_bert,
}


def load(path: str | Path) -> Pretrained:
    """The encoder of a run directory, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(Path(path))
    table = run.read_config()
    tokenizer = load_tokenizer(run.path)
    if len(tokenizer) != table["data"]["vocabulary"]:
        raise CheckpointError(
            f"{run.path}: the tokenizer has {len(tokenizer):,} entries, the weights expect "
            f"{table['data']['vocabulary']:,}."
        )
    kind = table["kind"]
    encoder = pick(BUILDERS, kind, "encoder")(table, len(tokenizer))
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
