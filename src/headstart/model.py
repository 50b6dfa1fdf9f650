"""Encoder, mix and task network as one model; what of it is frozen and what is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headstart.batches.rows import TextBatch
from headstart.config import pick
from headstart.encoders.base import Encoder
from headstart.encoders.representations import Representations
from headstart.errors import ConfigError
from headstart.heads.classify import NetworkConfig, TaskNetwork
from headstart.mix import Mix, MixConfig, build_mix

SMALLEST_DEVIATION = 1e-3
PLACES = {"input": ["input"], "output": ["output"], "both": ["input", "output"]}


class Model(nn.Module):
    """ids -> R_0 .. R_L -> mix -> task network -> logits. Without an encoder it reads ready representations only."""

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        encoder: Encoder | None,
        layers: int,
        width: int,
        classes: int,
        mix: MixConfig,
        network: NetworkConfig,
    ) -> None:
        """layers, width: of the representations, whether the encoder gives them or they come ready."""
        super().__init__()
        check(encoder, width, classes, mix, network)
        self.encoder = encoder
        mixes = {place: build_mix(mix, layers, width) for place in PLACES[mix.place]}
        self.mixes = nn.ModuleDict(mixes)
        reads = mixes["input"].out_width if "input" in mixes else width
        joined = mixes["output"].out_width if "output" in mixes else 0
        self.head = TaskNetwork(reads, joined, classes, network)
        self.reads_pooled = network.reads_pooled
        self.register_buffer("shift", torch.zeros(layers, 1, 1, width))
        self.register_buffer("scale", torch.ones(layers, 1, 1, width))

    def forward(self, batch: TextBatch) -> Tensor:
        """Logits (B, C)."""
        if self.encoder is None:
            raise ConfigError("This model has no encoder, so it cannot read texts; give it representations instead.")
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.encoder_is_frozen()):
            R: Representations = self.encoder(batch.ids, batch.mask, batch.segments)
            R = R.at_words(batch.word_starts)
        return self.read(R)

    def read(self, R: Representations) -> Tensor:
        """Logits (B, C) from the words' representations, which is where cached features come in."""
        R = Representations((R.layers - self.shift) * self.scale, R.mask) if self.standardises else R
        mixed = {place: mix(R) for place, mix in self.placed_mixes()}
        # Beside the network's output, the mix adds what the network has not read: it reads the lowest layer.
        x = mixed["input"] if "input" in mixed else R.layers[0]
        logits: Tensor = self.head(x, R.mask, mixed.get("output"), self.pooled())
        return logits

    @property
    def standardises(self) -> bool:
        return bool((self.shift != 0).any())

    def standardise(self, mean: Tensor, deviation: Tensor) -> None:
        """From now on every column of every layer is brought to mean 0 and deviation 1. mean, deviation: (K, D).

        Most of a frozen encoder's output is alike for all words, which hides what tells them apart from a network that
        has few labels and few steps to find it.
        """
        with torch.no_grad():
            self.shift.copy_(mean[:, None, None])
            self.scale.copy_(1 / deviation.clamp(min=SMALLEST_DEVIATION)[:, None, None])

    def pooled(self) -> Callable[[Tensor], Tensor] | None:
        """The encoder's own vector of a sequence, where it has one and the network wants it."""
        if self.encoder is None or not (self.reads_pooled and self.encoder.pools):
            return None
        return self.encoder.pooled

    def placed_mixes(self) -> list[tuple[str, Mix]]:
        return [(place, mix) for place, mix in self.mixes.items() if isinstance(mix, Mix)]

    def penalty(self) -> Tensor:
        """What the mixes add to the loss, ()."""
        return sum((mix.penalty() for _, mix in self.placed_mixes()), torch.zeros(()))

    def mix_weights(self) -> dict[str, dict[str, Any]]:
        """Per place, the layer weights, which sum to 1, and gamma; empty where the mix learns none."""
        learned = {place: mix.learned() for place, mix in self.placed_mixes()}
        return {place: weights for place, weights in learned.items() if weights is not None}

    def train_only(self, how: str, stages: int | None = None) -> None:
        """frozen: mix and head. finetune: the encoder too. gradual: mix, head and the encoder's top `stages` stages.

        What changes no logit stays frozen always, so that no optimiser shrinks it.
        """
        if how == "gradual" and (stages is None or stages < 0):
            raise ConfigError(f"Training 'gradual' needs the number of open stages, 0 or more; got {stages}.")
        all_stages = self.encoder_stages()
        n_open = pick({"frozen": 0, "finetune": len(all_stages), "gradual": stages or 0}, how, "way to train")
        self.requires_grad_(False)
        opened = [*self.mixes.parameters(), *self.head.parameters()]
        for stage in all_stages[max(0, len(all_stages) - n_open) :]:
            opened += stage
        idle = {id(parameter) for parameter in self.idle()}
        for parameter in opened:
            parameter.requires_grad_(id(parameter) not in idle)
        self.train(self.training)  # an encoder that has just been opened drops again

    def train(self, mode: bool = True) -> Model:
        """As every module; but a frozen encoder stays in evaluation, so that it gives what it would give in use."""
        super().train(mode)
        if self.encoder is not None and self.encoder_is_frozen():
            self.encoder.eval()
        return self

    def encoder_is_frozen(self) -> bool:
        return self.encoder is not None and not any(p.requires_grad for p in self.encoder.parameters())

    def divides_batches(self) -> bool:
        """Whether training is quicker when every core has its own examples.

        It is for an encoder that says so. A recurrent network between drops by torch's one generator, which parts that
        run at once would share out by chance.
        """
        divides = self.encoder is not None and self.encoder.data_parallel and self.head.recurrent is None
        return divides and not self.encoder_is_frozen() and next(self.parameters()).device.type == "cpu"

    def reads_means(self) -> bool:
        """Whether its logits are the same when a text's words are replaced by their mean, which is then known before.

        So it is for the mean of the words without a recurrent network before it, if layers are mixed with weights that
        all words share.
        """
        kinds = {(mix.config.kind, mix.config.norm) for _, mix in self.placed_mixes()}
        linear = all(kind != "attention" and not norm for kind, norm in kinds)
        return linear and self.head.recurrent is None and self.head.config.pool == "mean"

    def encoder_stages(self) -> list[list[nn.Parameter]]:
        """The encoder's parameters, bottom to top."""
        return [] if self.encoder is None else self.encoder.layer_groups()

    def idle(self) -> list[nn.Parameter]:
        """Parameters that no logit depends on."""
        idle = [parameter for _, mix in self.placed_mixes() for parameter in mix.idle()] + self.head.idle()
        if self.encoder is not None and not self.reads_pooled:
            idle += self.encoder.pooler_parameters()
        return idle

    def groups(self) -> list[list[tuple[str, nn.Parameter]]]:
        """Every parameter once, trained or not: the encoder's stages, bottom first, then mix and head together."""
        names = {id(parameter): name for name, parameter in self.named_parameters()}
        top = [*self.mixes.parameters(), *self.head.parameters()]
        return [[(names[id(parameter)], parameter) for parameter in group] for group in [*self.encoder_stages(), top]]


def check(encoder: Encoder | None, width: int, classes: int, mix: MixConfig, network: NetworkConfig) -> None:
    if classes < 2:
        raise ConfigError(f"A classifier needs two classes or more; got {classes}.")
    if network.cell == "none" and mix.place != "input":
        raise ConfigError(
            f"mix.place '{mix.place}' puts the mix beside a recurrent network's output, and network.cell is 'none'. "
            "Use mix.place 'input' or a recurrent cell."
        )
    if network.reads_pooled and mix.kind == "concat" and encoder is not None and encoder.pools:
        raise ConfigError(
            f"mix.kind 'concat' is wider than the {width} columns that this encoder's pooler reads for network.pool "
            "'first' with network.cell 'none'. Use another mix.kind or network.pool."
        )
