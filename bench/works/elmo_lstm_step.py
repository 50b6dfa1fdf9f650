"""ELMo small's biLSTM alone, 64 x 20 random inputs, forward and backward of the top layer's sum: against AllenNLP's.

Nobody needs the input's gradient, and nothing is dropped. Outputs agree to 1e-5, a weight's gradient to 1e-4 of its
greatest value.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from bench.measure import Measurement, Setting, Side, check_close, in_turns
from bench.operations import TRAINING, bilstm
from bench.peers.elmo import SMALL, allennlp_lstm, random_elmo
from headstart.encoders.kernels.packing import Packing

B, T = 64, 20
STEPS, QUICK_STEPS = 4, 2
TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4


def run(setting: Setting) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder:
        encoder = random_elmo(Path(folder) / "elmo").train()
        peer = allennlp_lstm(Path(folder) / "elmo").train()
    x = torch.randn(B, T, SMALL.projection, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(B, T, dtype=torch.bool)
    packing = Packing.of(mask, 2)
    steps = QUICK_STEPS if setting.quick else STEPS

    def our_top() -> Tensor:
        """Packed."""
        state = packing.pack(x)
        for depth, layer in enumerate(encoder.layers):
            output = layer(state, packing.sizes)
            state = state + output if depth else output
        return state

    def their_top() -> Tensor:
        found: Tensor = peer(x, mask)[-1]
        return found

    def ours() -> int:
        for _ in range(steps):
            encoder.zero_grad()
            our_top().sum().backward()
        return steps * B * T

    def theirs() -> int:
        for _ in range(steps):
            peer.zero_grad()
            their_top().sum().backward()
        return steps * B * T

    with torch.no_grad():
        check_close("outputs", packing.unpack(our_top()), their_top(), TOLERANCE)
    ours(), theirs()
    gradient = peer.backward_layer_0.state_projection.weight.grad.T
    mine = encoder.layers[0].projection_weight.grad[1]
    check_close("a gradient", mine / gradient.abs().max(), gradient / gradient.abs().max(), GRADIENT_TOLERANCE)
    rates = in_turns({"ours": Side(ours), "allennlp": Side(theirs)}, setting.repeats)
    yield Measurement(
        work=f"ELMo small's biLSTM, training step, {B} x {T}",
        unit="tokens/s",
        ours=rates["ours"],
        peer=rates["allennlp"],
        peer_name="AllenNLP's ElmoLstm",
        goal=1.6,
        flops_per_unit=TRAINING * bilstm(SMALL),
    )
