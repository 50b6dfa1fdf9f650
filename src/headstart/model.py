"""Encoders, mixes and a head as one model; which of its parameters are frozen and which are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headstart.batches.rows import TextBatch
from headstart.config import pick
from headstart.encoders.base import Encoder
from headstart.encoders.representations import Representations
from headstart.errors import ConfigError
from headstart.heads.recurrent import Head, Pooled
from headstart.mix import Mix, MixConfig, build_mix

SMALLEST_DEVIATION = 1e-3
PLACES = {"input": ["input"], "output": ["output"], "both": ["input", "output"]}


@dataclass(frozen=True, slots=True)
class Mixed:
    """What one encoder gives the head. words: (B, W, D), which its network reads; beside: (B, W, D), put beside what
    that gives; mask: (B, W), True at real words."""

    words: Tensor
    beside: Tensor | None
    mask: Tensor


class Reader(nn.Module):
    """An encoder with its mixes: ids -> R_0 .. R_L -> one vector per word."""

    shift: Tensor
    scale: Tensor

    def __init__(self, encoder: Encoder, mixes: dict[str, Mix]) -> None:
        super().__init__()
        K, D = encoder.shape
        self.encoder = encoder
        self.mixes = nn.ModuleDict(mixes)
        self.register_buffer("shift", torch.zeros(K, 1, 1, D))
        self.register_buffer("scale", torch.ones(K, 1, 1, D))

    def forward(self, batch: TextBatch) -> Mixed:
        if self.is_frozen() or not (self.training or torch.is_grad_enabled()):
            return self.read(self.infer(batch))
        R: Representations = self.encoder(batch.ids, batch.mask, batch.segments)
        return self.read(R.at_words(batch.word_starts, batch.word_rows))

    def infer(self, batch: TextBatch) -> Representations:
        """The words' representations by the encoder's inference path, (K, B, W, D)."""
        with torch.no_grad():
            tokens = self.encoder.infer(batch.ids, batch.mask, batch.segments, None, batch.at_words)
            words = tokens.at(batch.word_starts, batch.word_rows)  # (K, words, D), row after row
            mask = batch.word_starts >= 0
            layers = words.new_zeros(len(words), *mask.shape, words.shape[-1])
            layers[:, mask] = words
            return Representations(layers, mask)

    def read(self, R: Representations) -> Mixed:
        """From the words' representations, which is where cached features come in."""
        R = Representations((R.layers - self.shift) * self.scale, R.mask) if self.standardises else R
        mixed = {place: mix(R) for place, mix in self.placed_mixes()}
        # A mix that is only put beside the recurrent output adds what the network has not read: it reads R_0.
        return Mixed(mixed["input"] if "input" in mixed else R.layers[0], mixed.get("output"), R.mask)

    @property
    def widths(self) -> tuple[int, int]:
        """(width of `Mixed.words`, width of `Mixed.beside`, 0 for none)."""
        widths = {place: mix.out_width for place, mix in self.placed_mixes()}
        return widths.get("input", self.encoder.shape[1]), widths.get("output", 0)

    @property
    def standardises(self) -> bool:
        return bool((self.shift != 0).any())

    def standardise(self, mean: Tensor, deviation: Tensor) -> None:
        """From now on every column of every layer is brought to mean 0 and deviation 1. mean, deviation: (K, D).

        Most of a frozen encoder's output is common to all words, and hides what tells words apart from a head that has
        few labels and few steps to find it.
        """
        with torch.no_grad():
            self.shift.copy_(mean[:, None, None])
            self.scale.copy_(1 / deviation.clamp(min=SMALLEST_DEVIATION)[:, None, None])

    @property
    def takes_top_layer(self) -> bool:
        """Whether the head reads the encoder's top layer, unchanged."""
        return all(mix.gives_top_layer for _, mix in self.placed_mixes()) and not self.standardises

    def placed_mixes(self) -> list[tuple[str, Mix]]:
        return [(place, mix) for place, mix in self.mixes.items() if isinstance(mix, Mix)]

    def is_frozen(self) -> bool:
        return not any(p.requires_grad for p in self.encoder.parameters())

    def train(self, mode: bool = True) -> Reader:
        """As every module's, except that a frozen encoder stays in evaluation mode: its features must not vary."""
        super().train(mode)
        if self.is_frozen():
            self.encoder.eval()
        return self


class Model(nn.Module):
    """One encoder, or several side by side, and a head: the vectors that each gives a word are joined into one."""

    def __init__(self, readers: Sequence[Reader], head: Head) -> None:
        super().__init__()
        self.readers = nn.ModuleList(readers)
        self.head = head

    @property
    def each_reader(self) -> list[Reader]:
        return [reader for reader in self.readers if isinstance(reader, Reader)]

    @property
    def encoders(self) -> list[Encoder]:
        return [reader.encoder for reader in self.each_reader]

    @property
    def only_reader(self) -> Reader:
        if len(self.readers) > 1:
            raise ConfigError("This model has several encoders side by side, which only Headstart itself can run.")
        return self.each_reader[0]

    def forward(self, batches: Sequence[TextBatch]) -> Tensor:
        """The head's scores of every row. batches: the same rows as each encoder reads them."""
        mixed = [reader(batch) for reader, batch in zip(self.each_reader, batches, strict=True)]
        return self._score(mixed, batches[0].parts)

    def read(self, representations: Sequence[Representations], parts: Tensor | None = None) -> Tensor:
        """Scores from the words' representations in each encoder, which is where cached features come in.

        parts: (B, W), the text of a pair that each word belongs to.
        """
        mixed = [reader.read(R) for reader, R in zip(self.each_reader, representations, strict=True)]
        return self._score(mixed, parts)

    def _score(self, mixed: list[Mixed], parts: Tensor | None) -> Tensor:
        words = torch.cat([one.words for one in mixed], dim=-1) if len(mixed) > 1 else mixed[0].words
        beside = [one.beside for one in mixed if one.beside is not None]
        joined = torch.cat(beside, dim=-1) if beside else None
        scores: Tensor = self.head(words, mixed[0].mask, joined, self.pooled(), parts)
        return scores

    def pooled(self) -> Pooled | None:
        """The encoder's own vector of a sequence, where it has one and the head wants it.

        Its pooler was pretrained on the top layer as it is: of any other vectors the head reads the first one itself.
        """
        reader = self.each_reader[0]
        uses = self.head.uses_encoder_pooling and len(self.readers) == 1 and reader.takes_top_layer
        return reader.encoder.pooled if uses and reader.encoder.pools else None

    def mixes(self) -> list[Mix]:
        return [mix for reader in self.each_reader for _, mix in reader.placed_mixes()]

    def penalty(self) -> Tensor:
        """What the mixes add to the loss, ()."""
        return sum((mix.penalty() for mix in self.mixes()), torch.zeros(()))

    def mix_weights(self) -> list[dict[str, dict[str, Any]]]:
        """Of each encoder and per place, the layer weights, which sum to 1, and gamma, where the mix learns them."""
        found = []
        for reader in self.each_reader:
            learned = {place: mix.learned() for place, mix in reader.placed_mixes()}
            found.append({place: weights for place, weights in learned.items() if weights is not None})
        return found

    def train_only(self, how: str, groups: int | None = None) -> None:
        """frozen: mix and head. finetune: the encoder too. gradual: mix, head and the encoder's top `groups` groups.

        Unused parameters stay frozen always, so that weight decay does not shrink them.
        """
        if how == "gradual" and (groups is None or groups < 0):
            raise ConfigError(f"Training 'gradual' needs the number of open layer groups, 0 or more; got {groups}.")
        layer_groups = self.layer_groups()
        n_open = pick({"frozen": 0, "finetune": len(layer_groups), "gradual": groups or 0}, how, "way to train")
        self.requires_grad_(False)
        opened = self.own_parameters()
        for group in layer_groups[max(0, len(layer_groups) - n_open) :]:
            opened += group
        unused = {id(parameter) for parameter in self.unused_parameters()}
        for parameter in opened:
            parameter.requires_grad_(id(parameter) not in unused)
        self.train(self.training)  # an encoder that has just been opened uses its dropout again

    def is_data_parallel(self) -> bool:
        """Whether training is faster when every core has its own part of the batch.

        It is for encoders that say so. A recurrent head's dropout uses torch's one generator, which parts that run at
        once would share in an order that varies.
        """
        divides = all(encoder.data_parallel for encoder in self.encoders) and self.head.recurrent is None
        trained = not all(reader.is_frozen() for reader in self.each_reader)
        return divides and trained and next(self.parameters()).device.type == "cpu"

    def reads_mean_of_words(self) -> bool:
        """Whether its scores are the same when a text's words are replaced by their mean, which is then computed once.

        True for mean pooling without a recurrent network, if layers are mixed with weights that all words share.
        """
        return self.head.reads_mean_of_words and all(mix.is_linear for mix in self.mixes())

    def unused_parameters(self) -> list[nn.Parameter]:
        """Parameters that no score depends on."""
        unused = [parameter for mix in self.mixes() for parameter in mix.unused_parameters()]
        unused += self.head.unused_parameters()
        if self.pooled() is None:
            unused += [parameter for encoder in self.encoders for parameter in encoder.pooler_parameters()]
        return unused

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """The encoders' parameters, bottom to top; of several encoders, those at the same distance from the top."""
        stacks = [encoder.layer_groups() for encoder in self.encoders]
        depth = max(map(len, stacks))
        return [
            [parameter for groups in stacks if len(groups) >= below for parameter in groups[-below]]
            for below in range(depth, 0, -1)
        ]

    def own_parameters(self) -> list[nn.Parameter]:
        """Those that the task adds: the mixes' and the head's."""
        return [*(parameter for mix in self.mixes() for parameter in mix.parameters()), *self.head.parameters()]

    def groups(self) -> list[list[tuple[str, nn.Parameter]]]:
        """Every parameter once, trained or not: the encoders' groups, bottom first, then mixes and head together."""
        names = {id(parameter): name for name, parameter in self.named_parameters()}
        groups = [*self.layer_groups(), self.own_parameters()]
        return [[(names[id(parameter)], parameter) for parameter in group] for group in groups]


def build_reader(encoder: Encoder, config: MixConfig) -> Reader:
    return Reader(encoder, {place: build_mix(config, *encoder.shape) for place in PLACES[config.place]})


def widths_for_head(readers: Sequence[Reader]) -> tuple[int, int]:
    """(width of what the head's network reads, width of what is put beside its output)."""
    reads, beside = zip(*(reader.widths for reader in readers), strict=True)
    return sum(reads), sum(beside)


def check_fit(mix: MixConfig, head: Head) -> None:
    """Refuse settings of the mix that the head cannot use."""
    if head.recurrent is None and mix.place != "input":
        raise ConfigError(
            f"mix.place '{mix.place}' puts the mix beside a recurrent network's output, and network.cell is 'none'. "
            "Use mix.place 'input' or a recurrent cell."
        )
