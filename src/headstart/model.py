"""Encoder, mix and head as one model; which of its parameters are frozen and which are trained."""

from __future__ import annotations

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


class Model(nn.Module):
    """ids -> R_0 .. R_L -> mix -> head -> scores."""

    shift: Tensor
    scale: Tensor

    def __init__(self, encoder: Encoder, mixes: dict[str, Mix], head: Head) -> None:
        super().__init__()
        K, D = encoder.shape
        self.encoder = encoder
        self.mixes = nn.ModuleDict(mixes)
        self.head = head
        self.register_buffer("shift", torch.zeros(K, 1, 1, D))
        self.register_buffer("scale", torch.ones(K, 1, 1, D))

    def forward(self, batch: TextBatch) -> Tensor:
        """The head's scores of every row."""
        if self.encoder_is_frozen() or not (self.training or torch.is_grad_enabled()):
            return self.read(self.infer(batch))
        R: Representations = self.encoder(batch.ids, batch.mask, batch.segments)
        return self.read(R.at_words(batch.word_starts))

    def infer(self, batch: TextBatch) -> Representations:
        """The words' representations by the encoder's inference path, (K, B, W, D)."""
        with torch.no_grad():
            tokens = self.encoder.infer(batch.ids, batch.mask, batch.segments, None, batch.at_words)
            words = tokens.at(batch.word_starts)  # (K, words, D), row after row
            mask = batch.word_starts >= 0
            layers = words.new_zeros(len(words), *mask.shape, words.shape[-1])
            layers[:, mask] = words
            return Representations(layers, mask)

    def read(self, R: Representations) -> Tensor:
        """Scores from the words' representations, which is where cached features come in."""
        R = Representations((R.layers - self.shift) * self.scale, R.mask) if self.standardises else R
        mixed = {place: mix(R) for place, mix in self.placed_mixes()}
        # A mix that is only put beside the recurrent output adds what the network has not read: it reads R_0.
        x = mixed["input"] if "input" in mixed else R.layers[0]
        scores: Tensor = self.head(x, R.mask, mixed.get("output"), self.pooled())
        return scores

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

    def pooled(self) -> Pooled | None:
        """The encoder's own vector of a sequence, where it has one and the head wants it.

        Its pooler was pretrained on the top layer as it is: of any other vectors the head reads the first one itself.
        """
        uses = self.encoder.pools and self.head.uses_encoder_pooling and self.takes_top_layer
        return self.encoder.pooled if uses else None

    @property
    def takes_top_layer(self) -> bool:
        """Whether the head reads the encoder's top layer, unchanged."""
        return all(mix.gives_top_layer for _, mix in self.placed_mixes()) and not self.standardises

    def placed_mixes(self) -> list[tuple[str, Mix]]:
        return [(place, mix) for place, mix in self.mixes.items() if isinstance(mix, Mix)]

    def penalty(self) -> Tensor:
        """What the mixes add to the loss, ()."""
        return sum((mix.penalty() for _, mix in self.placed_mixes()), torch.zeros(()))

    def mix_weights(self) -> dict[str, dict[str, Any]]:
        """Per place, the layer weights, which sum to 1, and gamma; empty where the mix learns none."""
        learned = {place: mix.learned() for place, mix in self.placed_mixes()}
        return {place: weights for place, weights in learned.items() if weights is not None}

    def train_only(self, how: str, groups: int | None = None) -> None:
        """frozen: mix and head. finetune: the encoder too. gradual: mix, head and the encoder's top `groups` groups.

        Unused parameters stay frozen always, so that weight decay does not shrink them.
        """
        if how == "gradual" and (groups is None or groups < 0):
            raise ConfigError(f"Training 'gradual' needs the number of open layer groups, 0 or more; got {groups}.")
        layer_groups = self.encoder.layer_groups()
        n_open = pick({"frozen": 0, "finetune": len(layer_groups), "gradual": groups or 0}, how, "way to train")
        self.requires_grad_(False)
        opened = [*self.mixes.parameters(), *self.head.parameters()]
        for group in layer_groups[max(0, len(layer_groups) - n_open) :]:
            opened += group
        unused = {id(parameter) for parameter in self.unused_parameters()}
        for parameter in opened:
            parameter.requires_grad_(id(parameter) not in unused)
        self.train(self.training)  # an encoder that has just been opened uses its dropout again

    def train(self, mode: bool = True) -> Model:
        """As every module's, except that a frozen encoder stays in evaluation mode: its features must not vary."""
        super().train(mode)
        if self.encoder_is_frozen():
            self.encoder.eval()
        return self

    def encoder_is_frozen(self) -> bool:
        return not any(p.requires_grad for p in self.encoder.parameters())

    def is_data_parallel(self) -> bool:
        """Whether training is faster when every core has its own part of the batch.

        It is for an encoder that says so. A recurrent head's dropout uses torch's one generator, which parts that run
        at once would share in an order that varies.
        """
        divides = self.encoder.data_parallel and self.head.recurrent is None
        return divides and not self.encoder_is_frozen() and next(self.parameters()).device.type == "cpu"

    def reads_mean_of_words(self) -> bool:
        """Whether its scores are the same when a text's words are replaced by their mean, which is then computed once.

        True for mean pooling without a recurrent network, if layers are mixed with weights that all words share.
        """
        return self.head.reads_mean_of_words and all(mix.is_linear for _, mix in self.placed_mixes())

    def unused_parameters(self) -> list[nn.Parameter]:
        """Parameters that no score depends on."""
        unused = [parameter for _, mix in self.placed_mixes() for parameter in mix.unused_parameters()]
        unused += self.head.unused_parameters()
        if self.pooled() is None:
            unused += self.encoder.pooler_parameters()
        return unused

    def groups(self) -> list[list[tuple[str, nn.Parameter]]]:
        """Every parameter once, trained or not: the encoder's groups, bottom first, then mix and head together."""
        names = {id(parameter): name for name, parameter in self.named_parameters()}
        top = [*self.mixes.parameters(), *self.head.parameters()]
        groups = [*self.encoder.layer_groups(), top]
        return [[(names[id(parameter)], parameter) for parameter in group] for group in groups]


def build_mixes(config: MixConfig, shape: tuple[int, int]) -> dict[str, Mix]:
    return {place: build_mix(config, *shape) for place in PLACES[config.place]}


def widths_for_head(mixes: dict[str, Mix], width: int) -> tuple[int, int]:
    """(width of what the head's network reads, width of what is put beside its output)."""
    reads = mixes["input"].out_width if "input" in mixes else width
    return reads, mixes["output"].out_width if "output" in mixes else 0


def check_fit(mix: MixConfig, head: Head) -> None:
    """Refuse settings of the mix that the head cannot use."""
    if head.recurrent is None and mix.place != "input":
        raise ConfigError(
            f"mix.place '{mix.place}' puts the mix beside a recurrent network's output, and network.cell is 'none'. "
            "Use mix.place 'input' or a recurrent cell."
        )
