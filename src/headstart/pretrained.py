"""A pretrained encoder with its tokenizer: the vectors of sentences, and the run directory it is saved in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.batches.rows import Joined, TextRow, collate, sorted_batches, text_row
from headstart.checksums import write_sums
from headstart.config import Table, pick, settings_of
from headstart.encoders.base import Encoder
from headstart.encoders.kernels.memory import release_freed_memory
from headstart.encoders.registry import ENCODERS, build_encoder
from headstart.encoders.representations import Representations
from headstart.encoders.stateful import LstmState
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.heads.plain import HEADS
from headstart.report.html_table import html_table
from headstart.text.building import OUT_ADVICE, building
from headstart.text.encoding import Encoding
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

FEWEST_TOKENS, MOST_TOKENS, BATCH_BYTES = 4_096, 16_384, 1 << 26
"""Tokens per batch, by default: larger batches keep all cores busy, as long as a batch's layers stay below 64 MB."""
BLOCK_SENTENCES, BLOCK_BYTES = 4_096, 1 << 27
"""A stream holds at most so many sentences at a time, and so many bytes of their ids and vectors."""
BLOCKS_BETWEEN_TRIMS = 8
COMPACTED = "compact"
"""The key of [data] in config.toml with the precision of a compact run."""
ABILITIES = {
    "masked": "fills in hidden pieces",
    "head": "predicts the next word",
    "next": "tells whether one sentence follows another",
    "classify": "labels texts",
    "tag": "labels words",
    "span": "finds answers in a text",
}
"""What each head of `headstart.heads.plain.HEADS` is for."""
ModuleT = TypeVar("ModuleT", bound=nn.Module)
Vectors = NDArray[np.float32]
Sentence = str | Sequence[str] | Joined
"""A text, its words where they are known already, or a pair of texts."""
Layers = Literal["all", "top"] | int | Sequence[int]


@dataclass(frozen=True, slots=True)
class Pretrained:
    """An encoder with its tokenizer. A sentence's vectors depend on that sentence alone."""

    encoder: Encoder
    tokenizer: Tokenizer
    heads: Mapping[str, nn.Module] = field(default_factory=dict)
    """The heads that were trained with it and came along, by the names of `headstart.heads.plain.HEADS`."""
    labels: tuple[str, ...] = ()
    """Names of the classes of the heads classify and tag."""
    name: str = ""
    notices: tuple[str, ...] = ()
    """For the user to read: tensors that its files lacked, or had too many of."""
    carried: dict[str, LstmState] = field(default_factory=dict)
    """The LSTM's state between calls with `carry_state`; nothing else changes from call to call."""

    @property
    def kind(self) -> str:
        return self.encoder.kind

    def __repr__(self) -> str:
        K, D = self.encoder.shape
        shape = f"{K} layer{'s' if K > 1 else ''} of {D}"
        heads = f", heads {', '.join(self.heads)}" if self.heads else ""
        name = f"{self.name}: " if self.name else ""
        return f"<Pretrained {name}{self.encoder.title}, {shape}, vocabulary {len(self.tokenizer):,}{heads}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and what it can do."""
        K, D = self.encoder.shape
        facts = {
            "encoder": self.encoder.title,
            "layers": f"{K} of {D}",
            "vocabulary": f"{len(self.tokenizer):,} {self.encoder.units}",
            "heads": ", ".join(self.heads) or "none",
            "can": "; ".join(self.abilities()),
        }
        return html_table([self.name or self.kind, ""], facts.items())

    def abilities(self) -> list[str]:
        """What can be asked of it, in words."""
        vectors = "vectors of words in context" if self.encoder.contextual else "a vector for each word"
        return [vectors, *(what for head, what in ABILITIES.items() if head in self.heads)]

    def words(self, sentence: str) -> list[str]:
        """The words of a sentence, each of which has a vector in `represent`."""
        encoding = self.tokenizer.encode(sentence)
        return [sentence[start:end] for start, end in word_bounds(encoding)]

    def represent(
        self, sentences: Sequence[Sentence], layers: Layers = "all", carry_state: bool = False
    ) -> list[Vectors]:
        """Per sentence, the vectors of its words in some layers, by default all: (K, words, D).

        A sentence is a string, or a list of words with a vector each. layers: "all", "top", a number or several.
        carry_state: start the LSTM where the sentence of the same number ended in the call before, as the original ELMo
        does; for comparison with its published outputs only.
        """
        if carry_state:
            chosen = chosen_layers(layers, self.encoder)
            return [vectors[chosen] for vectors in self._carry_on(list(self._rows(sentences)))]
        return list(self.stream(sentences, layers))

    def stream(self, sentences: Iterable[Sentence], layers: Layers = "all") -> Iterator[Vectors]:
        """The vectors of `represent`, sentence by sentence, in memory that does not grow with their number.

        Sentences are taken from the iterable as they are needed, some thousands ahead, so that those of similar length
        can be encoded together.
        """
        encoded = self.stream_rows(self._rows(sentences), layers)
        return (vectors for _, ready in encoded for vectors in ready)

    def _rows(self, sentences: Iterable[Sentence]) -> Iterator[TextRow]:
        if isinstance(sentences, str | bytes):
            raise DataError("A list of sentences is wanted, one string was given. Put it in a list.")
        if not isinstance(sentences, Iterable):
            raise DataError(f"A list of sentences is wanted; got {sentences!r:.80}.")
        return (self._row(number, sentence) for number, sentence in enumerate(sentences, start=1))

    def _row(self, number: int, sentence: Sentence) -> TextRow:
        if not is_sentence(sentence):
            raise DataError(f"Sentence {number} is {sentence!r:.80}; wanted a string, or a list of words.")
        return text_row(self.encoder, self.tokenizer, sentence)

    def stream_rows(self, rows: Iterable[TextRow], layers: Layers = "all") -> Iterator[tuple[int, Iterator[Vectors]]]:
        """After every batch, the number of its rows and the vectors that are ready, (K, words, D), in order."""
        return self._encode_blocks(rows, chosen_layers(layers, self.encoder))

    def _encode_blocks(self, rows: Iterable[TextRow], chosen: list[int]) -> Iterator[tuple[int, Iterator[Vectors]]]:
        for number, block in enumerate(self._blocks(rows, len(chosen)), start=1):
            yield from self._encode_block(block, chosen)
            if number % BLOCKS_BETWEEN_TRIMS == 0:
                release_freed_memory()

    def _blocks(self, rows: Iterable[TextRow], K: int) -> Iterator[list[TextRow]]:
        bytes_per_word = 4 * K * self.encoder.shape[1]
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
        lengths = [len(row.word_starts) for row in rows]
        ends = np.cumsum(lengths).tolist()
        # One array for the block: thousands of small ones that live as long would fragment the memory.
        held = np.empty((len(chosen), ends[-1], self.encoder.shape[1]), np.float32)
        with_words = [i for i, n in enumerate(lengths) if n]
        for batch, found in self.encode_rows([rows[i] for i in with_words], chosen):
            layers, seen = found.cpu().numpy(), 0
            for i in (with_words[number] for number in batch):
                held[:, ends[i] - lengths[i] : ends[i]] = layers[:, seen : seen + lengths[i]]
                seen += lengths[i]
            yield len(batch), iter(())
        ready = (held[:, end - n : end].copy() for n, end in zip(lengths, ends, strict=True))
        yield len(rows) - len(with_words), ready

    def encode_rows(
        self, rows: Sequence[TextRow], layers: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Batches of similar length: the rows' numbers, and the vectors of their words, row by row, (K, words, D).

        layers: only these, by default all.
        """
        encoder = self.encoder.eval()
        device = next(encoder.parameters()).device
        K, D = encoder.shape if layers is None else (len(layers), encoder.shape[1])
        by_default = min(MOST_TOKENS, max(FEWEST_TOKENS, BATCH_BYTES // max(1, 4 * K * D)))
        for numbers in sorted_batches([len(row.ids) for row in rows], encoder.batch_tokens or by_default):
            batch = collate([rows[i] for i in numbers]).to(device)
            with torch.no_grad():
                tokens = encoder.infer(batch.ids, batch.mask, batch.segments, layers, batch.at_words)
                words = tokens.at(batch.word_starts)
            yield numbers, words

    def check_lengths(self, rows: Sequence[TextRow]) -> None:
        """A sentence that does not fit into the encoder is a DataError that says how long it is."""
        room = self.encoder.longest
        longest = max((len(row.ids) for row in rows), default=0)
        if room is not None and longest > room:
            raise DataError(
                f"A sentence has {longest} pieces with its marks, and this {self.encoder.title} reads {room}. Split it."
            )

    def quantised(self) -> Self:
        """The same for inference in int8: faster, with nearly the same vectors. See `encoders.kernels.int8`."""
        return replace(self, encoder=self.encoder.quantised())

    def _carry_on(self, rows: Sequence[TextRow]) -> list[Vectors]:
        if not rows:
            return []
        self.encoder.eval()
        batch = collate(rows).to(next(self.encoder.parameters()).device)
        states, self.carried["lstm"] = self.encoder.infer_from(self.carried.get("lstm"), batch.ids, batch.mask)
        R = Representations(torch.stack(states), batch.mask).at_words(batch.word_starts)
        return [R.layers[:, i, : len(row.word_starts)].cpu().numpy().copy() for i, row in enumerate(rows)]


def is_sentence(value: object) -> bool:
    """Whether a value that a caller gave is a `Sentence`."""
    if isinstance(value, str | Joined):
        return True
    return isinstance(value, Sequence | np.ndarray) and all(isinstance(word, str) for word in value)


def chosen_layers(layers: Layers, encoder: Encoder) -> list[int]:
    """The numbers of the layers that were asked for, counted from 0."""
    K = encoder.shape[0]
    named = {"all": list(range(K)), "top": [K - 1]}
    if isinstance(layers, str):
        return pick(named, layers, "choice of layers")
    wanted = [layers] if isinstance(layers, int) else list(layers)
    for layer in wanted:
        if not -K <= layer < K:
            raise ConfigError(f"There is no layer {layer}: this encoder has the layers 0 to {K - 1}.")
    return [layer % K for layer in wanted]


def word_bounds(encoding: Encoding) -> Iterator[tuple[int, int]]:
    """Where each word of an encoding begins and ends in its text."""
    words, spans = encoding.words, encoding.spans
    if not len(words):
        return
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    ends = np.append(starts[1:], len(words)) - 1
    yield from ((int(spans[a, 0]), int(spans[b, 1])) for a, b in zip(starts, ends, strict=True))


def load_run(path: Path) -> Pretrained:
    """The encoder of a run directory and its heads, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
    table = run.read_config()
    if "data" not in table:
        what = "is a task model, which `headstart predict` reads" if "labels" in table else "was not written by a run"
        raise CheckpointError(f"{run.path}: {what}; wanted the folder of a pretrained encoder.")
    where = run.path / "config.toml"
    check_table(table, {"data": dict}, where)
    data: Table = table["data"]
    check_table(data, {"vocabulary": int, "labels": list} if "labels" in data else {"vocabulary": int}, where)
    tokenizer = load_tokenizer(run.path)
    if len(tokenizer) != data["vocabulary"]:
        raise CheckpointError(
            f"{run.path}: the tokenizer has {len(tokenizer):,} entries, the weights expect {data['vocabulary']:,}."
        )
    kind = str(table.get("kind"))
    settings = pick(ENCODERS, kind, "encoder").settings_in_run(table, where)
    weights = read_tensors(run.weights)
    own = ENCODERS[kind].weights_in_run(weights)
    encoder = built_to_fit(lambda: build_encoder(kind, settings, len(tokenizer)), own, run.weights)
    # Heads are built with random weights too, which are overwritten at once.
    with torch.random.fork_rng([]):
        heads = read_heads(encoder, weights, run.weights)
    return Pretrained(encoder, tokenizer, heads, tuple(map(str, data.get("labels", ()))), run.path.resolve().name)


def check_table(table: Table, wanted: Mapping[str, type], where: Path) -> None:
    """Refuse a table of config.toml that lacks what a run writes there."""
    for key, kind in wanted.items():
        if not isinstance(table.get(key), kind):
            raise CheckpointError(f"{where}: '{key}' is missing or not a {kind.__name__}; it was not written by a run.")


def was_pretrained_here(path: Path) -> bool:
    """Whether a folder is a run with a record of its text: not an imported one, nor a compact copy from elsewhere."""
    if not (path / "config.toml").is_file():
        return False
    data = RunDirectory(path).read_config().get("data")
    return isinstance(data, dict) and "sources" in data and COMPACTED not in data


def save_run(pretrained: Pretrained, out: Path, record: Mapping[str, Any], card: str) -> None:
    """Into a new run directory that `load_run` reads. record: further entries of [data] in config.toml."""
    with building(out, OUT_ADVICE) as folder:
        run = RunDirectory(folder)
        pretrained.tokenizer.save(folder)
        run.write_weights(weights_of(pretrained))
        run.write_config(run_table(pretrained, record))
        run.write_card(card)
        write_sums(folder, OUT_ADVICE)


def run_table(pretrained: Pretrained, record: Mapping[str, Any]) -> Table:
    """config.toml of a run whose pretraining is not known."""
    data = {"vocabulary": len(pretrained.tokenizer), "labels": list(pretrained.labels), **record}
    return {"kind": pretrained.kind, "encoder": settings_of(pretrained.encoder.config), "data": data}


def weights_of(pretrained: Pretrained) -> dict[str, Tensor]:
    """All tensors, by the names they have in a run directory."""
    parts: dict[str, nn.Module] = {pretrained.encoder.run_prefix: pretrained.encoder}
    parts |= {f"{name}.": head for name, head in pretrained.heads.items()}
    return {f"{prefix}{key}": tensor for prefix, part in parts.items() for key, tensor in part.state_dict().items()}


def read_heads(encoder: Encoder, weights: Mapping[str, Tensor], where: Path) -> dict[str, nn.Module]:
    """The heads among a run's weights. The other tensors of word vectors are what those were trained against."""
    heads: dict[str, nn.Module] = {}
    parts = {name.partition(".")[0] for name in weights if "." in name and not name.startswith(encoder.run_prefix)}
    for name in sorted(parts):
        if name not in HEADS:
            raise CheckpointError(f"{where}: holds tensors of '{name}', which is neither the encoder nor a known head.")
        own = {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}
        if "bias" not in own:
            raise CheckpointError(f"{where}: the head '{name}' has no tensor '{name}.bias'.")
        heads[name] = HEADS[name](encoder, own)
        load_strictly(heads[name], own, where)
    return heads


def built_to_fit(build: Callable[[], ModuleT], weights: Mapping[str, Tensor], where: Path) -> ModuleT:
    """The module that config.toml describes, with these weights.

    A damaged config.toml may ask for more memory than there is, so the shapes are compared before any is allocated.
    """
    with torch.device("meta"):
        check_shapes(build(), weights, where)
    module = build()
    module.load_state_dict(weights)
    return module


def load_strictly(module: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Load weights of exactly the names and shapes that the module has."""
    check_shapes(module, weights, where)
    module.load_state_dict(weights)


def check_shapes(module: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    own = module.state_dict()
    for name in sorted(own.keys() | weights.keys()):
        if name not in weights or name not in own:
            raise CheckpointError(f"{where}: does not fit its config.toml: '{name}' is on one side only.")
        if own[name].shape != weights[name].shape:
            raise CheckpointError(
                f"{where}: does not fit its config.toml: '{name}' has shape {tuple(weights[name].shape)}, "
                f"wanted {tuple(own[name].shape)}."
            )
