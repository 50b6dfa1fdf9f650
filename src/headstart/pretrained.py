"""A pretrained encoder in use: the vectors of sentences, and the run directory it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.batches.rows import MARKS, TextRow, collate, sorted_batches, text_row
from headstart.config import Table, pick, resolve, settings_of
from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.carried import carried_states
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.memory import hand_back_freed_memory
from headstart.encoders.quantised import quantised
from headstart.encoders.representations import Representations, Tokens
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.heads.language_model import MaskedLMHead, NextWordHead
from headstart.text.building import OUT_ADVICE, building
from headstart.text.encoding import Encoding
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

FEWEST_UNITS, MOST_UNITS, BATCH_BYTES = 4_096, 16_384, 1 << 26
"""Units that are encoded together: the more, the less the cores wait for each other, as far as the layers take."""
BLOCK_SENTENCES, BLOCK_BYTES = 4_096, 1 << 27
"""A stream holds at most so many sentences, and so many bytes of their ids and vectors, or one sentence."""
BLOCKS_BETWEEN_TRIMS = 8
Vectors = NDArray[np.float32]
Sentence = str | Sequence[str]
"""A text, or its words where they are known already."""
Layers = Literal["all", "top"] | int | Sequence[int]


@dataclass(frozen=True, slots=True)
class Pretrained:
    """An encoder with its tokenizer. A sentence's vectors depend on that sentence alone."""

    kind: str
    encoder: nn.Module
    tokenizer: Tokenizer
    heads: Mapping[str, nn.Module] = field(default_factory=dict)
    """What was trained on top of it and came along: `headstart.heads.plain` has BERT's; ELMo's softmax is `head`."""
    labels: tuple[str, ...] = ()
    """Names of the classes of the heads classify and tag."""
    name: str = ""
    notices: tuple[str, ...] = ()
    """What its reader should be told: parts that the files lack, or have too much."""
    carried: dict[str, Any] = field(default_factory=dict, repr=False)
    """The LSTM's states between calls with `carry_state`, and nothing else ever."""

    def words(self, sentence: str) -> list[str]:
        """The words that `represent` gives a vector each."""
        encoding = self.tokenizer.encode(sentence)
        return [sentence[start:end] for start, end in word_bounds(encoding)]

    def represent(
        self, sentences: Sequence[Sentence], layers: Layers = "all", carry_state: bool = False
    ) -> list[Vectors]:
        """Per sentence, the vectors of some layers, by default all: (K, words, D).

        A sentence is a string, or a list of words that get a vector each. layers: "all", "top", a number or several.
        carry_state: as the original ELMo, let the first sentence go on where the first of the call before ended, and so
        on; for comparison with its published outputs only.
        """
        if carry_state:
            chosen = chosen_layers(layers, self.encoder)
            rows = [text_row(self.kind, self.tokenizer, sentence) for sentence in sentences]
            return [vectors[chosen] for vectors in self._carry_on(rows)]
        return list(self.stream(sentences, layers))

    def stream(self, sentences: Iterable[Sentence], layers: Layers = "all") -> Iterator[Vectors]:
        """What `represent` gives, one sentence after the other, in memory that does not grow with their number.

        Sentences are taken from the iterable as they are needed, some thousands ahead, so that those of like length can
        be encoded together.
        """
        rows = (text_row(self.kind, self.tokenizer, sentence) for sentence in sentences)
        return (vectors for _, ready in self.stream_rows(rows, layers) for vectors in ready)

    def stream_rows(self, rows: Iterable[TextRow], layers: Layers = "all") -> Iterator[tuple[int, Iterator[Vectors]]]:
        """After every batch, how many rows it had, and the vectors that are ready now, (K, words, D) in rows' order."""
        return self._encode_blocks(rows, chosen_layers(layers, self.encoder))

    def _encode_blocks(self, rows: Iterable[TextRow], chosen: list[int]) -> Iterator[tuple[int, Iterator[Vectors]]]:
        for number, block in enumerate(self._blocks(rows, len(chosen)), start=1):
            yield from self._encode_block(block, chosen)
            if number % BLOCKS_BETWEEN_TRIMS == 0:
                hand_back_freed_memory()

    def _blocks(self, rows: Iterable[TextRow], K: int) -> Iterator[list[TextRow]]:
        encoder: Any = self.encoder
        bytes_per_word = 4 * K * encoder.shape[1]
        block: list[TextRow] = []
        held = 0
        for row in rows:
            self.check_lengths([row])
            size = row.ids.nbytes + bytes_per_word * len(row.word_starts)
            if block and (len(block) == BLOCK_SENTENCES or held + size > BLOCK_BYTES):
                yield block
                block, held = [], 0
            block.append(row)
            held += size
        if block:
            yield block

    def _encode_block(self, rows: Sequence[TextRow], chosen: list[int]) -> Iterator[tuple[int, Iterator[Vectors]]]:
        encoder: Any = self.encoder
        lengths = [len(row.word_starts) for row in rows]
        ends = np.cumsum(lengths).tolist()
        # In one array: thousands of small ones that live as long as the block would leave the memory full of holes.
        held = np.empty((len(chosen), ends[-1], encoder.shape[1]), np.float32)
        worded = [i for i, n in enumerate(lengths) if n]
        for batch, found in self.encode([rows[i] for i in worded], chosen):
            layers, seen = found.cpu().numpy(), 0
            for i in (worded[number] for number in batch):
                held[:, ends[i] - lengths[i] : ends[i]] = layers[:, seen : seen + lengths[i]]
                seen += lengths[i]
            yield len(batch), iter(())
        ready = (held[:, end - n : end].copy() for n, end in zip(lengths, ends, strict=True))
        yield len(rows) - len(worded), ready

    def encode(
        self, rows: Sequence[TextRow], layers: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Rows of like length together: their numbers, and the representations of their words in turn, (K, words, D).

        layers: only these, by default all.
        """
        encoder: Any = self.encoder.eval()
        device = next(encoder.parameters()).device
        K, D = encoder.shape if layers is None else (len(layers), encoder.shape[1])
        units = getattr(encoder, "batch_units", min(MOST_UNITS, max(FEWEST_UNITS, BATCH_BYTES // max(1, 4 * K * D))))
        for numbers in sorted_batches([len(row.ids) for row in rows], units):
            batch = collate([rows[i] for i in numbers]).to(device)
            with torch.no_grad():
                tokens: Tokens = encoder.tokens(batch.ids, batch.mask, batch.segments, layers, batch.at_words)
                words = tokens.at(batch.word_starts)
            yield numbers, words

    def check_lengths(self, rows: Sequence[TextRow]) -> None:
        """A sentence that does not fit into the encoder is an error that tells its length."""
        room = room_of(self.encoder)
        longest = max((len(row.ids) for row in rows), default=0)
        if room is not None and longest > room + MARKS:
            raise DataError(
                f"A sentence has {longest} pieces with its marks, and this BERT reads {room + MARKS}. Split it."
            )

    def quantised(self) -> Pretrained:
        """The same in int8: quicker, nearly the same vectors, for use only. See `headstart.encoders.quantised`."""
        return replace(self, encoder=quantised(self.encoder))

    def _carry_on(self, rows: Sequence[TextRow]) -> list[Vectors]:
        if not isinstance(self.encoder, Elmo):
            raise ConfigError(f"carry_state is for ELMo, whose LSTM has a state to carry; this is a {self.kind}.")
        if not rows:
            return []
        self.encoder.eval()
        batch = collate(rows).to(next(self.encoder.parameters()).device)
        with torch.no_grad():
            states, self.carried["lstm"] = carried_states(self.encoder, batch.ids, batch.mask, self.carried.get("lstm"))
        R = Representations(torch.stack(states), batch.mask).at_words(batch.word_starts)
        return [R.layers[:, i, : len(row.word_starts)].cpu().numpy().copy() for i, row in enumerate(rows)]


def chosen_layers(layers: Layers, encoder: Any) -> list[int]:
    K = encoder.shape[0]
    named = {"all": list(range(K)), "top": [K - 1]}
    if isinstance(layers, str):
        return pick(named, layers, "choice of layers")
    wanted = [layers] if isinstance(layers, int) else list(layers)
    for layer in wanted:
        if not -K <= layer < K:
            raise ConfigError(f"There is no layer {layer}: this encoder has the layers 0 to {K - 1}.")
    return [layer % K for layer in wanted]


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
    """The encoder's shape, from the config.toml of a run."""
    if "encoder" not in table:
        return {"dim": table["objective"]["dim"]}
    settings: Table = table["encoder"]
    return settings


def load_run(path: Path) -> Pretrained:
    """The encoder of a run directory and its heads, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
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
    weights = read_tensors(run.weights)
    load_strictly(encoder, encoder_weights(kind, weights), run.weights)
    heads = read_heads(encoder, weights, run.weights)
    return Pretrained(kind, encoder, tokenizer, heads, tuple(table["data"].get("labels", ())), run.path.resolve().name)


def was_pretrained_here(path: Path) -> bool:
    """Whether a folder is a run that knows its text, and not one that was imported."""
    if not (path / "config.toml").is_file():
        return False
    return "sources" in RunDirectory(path).read_config().get("data", {})


def save_run(pretrained: Pretrained, out: Path, record: Mapping[str, Any], card: str) -> None:
    """Into a new run directory that `load_run` reads. record: what config.toml's [data] says besides."""
    encoder: Any = pretrained.encoder
    data = {"vocabulary": len(pretrained.tokenizer), "labels": list(pretrained.labels), **record}
    with building(out, OUT_ADVICE) as folder:
        run = RunDirectory(folder)
        pretrained.tokenizer.save(folder)
        run.write_weights(weights_of(pretrained))
        run.write_config({"kind": pretrained.kind, "encoder": settings_of(encoder.config), "data": data})
        run.write_card(card)


def weights_of(pretrained: Pretrained) -> dict[str, Tensor]:
    """All tensors, by the names they have in a run directory."""
    if pretrained.kind == "static":
        return dict(pretrained.encoder.state_dict())
    parts = {"encoder": pretrained.encoder, **pretrained.heads}
    return {f"{part}.{name}": tensor for part, module in parts.items() for name, tensor in module.state_dict().items()}


def read_heads(encoder: nn.Module, weights: Mapping[str, Tensor], where: Path) -> dict[str, nn.Module]:
    """The heads that a run's weights hold."""
    heads: dict[str, nn.Module] = {}
    for name in sorted({name.split(".")[0] for name in weights} - {"encoder"}):
        own = {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}
        if isinstance(encoder, Bert):
            heads[name] = bert_head(name, encoder, own)
        elif isinstance(encoder, Elmo):
            heads[name] = NextWordHead(encoder.config.projection, len(own["bias"]))
        else:
            continue  # what word vectors were trained against
        load_strictly(heads[name], own, where)
    return heads


def bert_head(name: str, encoder: Bert, weights: Mapping[str, Tensor]) -> nn.Module:
    """An untrained head of the shape that its weights have."""
    config = encoder.config
    if name == "masked":
        return MaskedLMHead(config.width, len(weights["bias"]), config.norm_eps, untied="decoder" in weights)
    return nn.Linear(config.width, len(weights["bias"]))


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
