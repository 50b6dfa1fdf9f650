"""ELMo's LSTM layer: a projected LSTM with clipped cells (Sak et al. 2014). Its arithmetic is in `kernels`.

Letters: N packed tokens, n sequences alive at a step, D input width, H cells, P projection. For each direction and step

    i, f, o = sigmoid([x, h] W + b),  g = tanh([x, h] W + b)
    c = clip(f * c + i * g),          h = clip((o * tanh(c)) V)

as TensorFlow's LSTMCell with num_proj, cell_clip and proj_clip. The state is zero before every sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headstart.encoders.kernels.lstm_inference import infer_direction
from headstart.encoders.kernels.lstm_training import ProjectedLstm

FORGET_BIAS = 1.0


class LstmLayer(nn.Module):
    """One layer over packed tokens, (directions, N, D) -> (directions, N, P); the directions share no parameter.

    Gates lie side by side in the order input, forget, output, candidate. TensorFlow adds the forget bias of 1 when the
    cell runs; here it is part of `bias`, so a bias read from a published file needs 1 added to its forget part.
    """

    def __init__(
        self,
        inputs: int,
        cells: int,
        projection: int,
        directions: int,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> None:
        super().__init__()
        self.cells = cells
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.weight = nn.Parameter(torch.empty(directions, inputs + projection, 4 * cells))
        self.bias = nn.Parameter(torch.empty(directions, 4 * cells))
        self.projection_weight = nn.Parameter(torch.empty(directions, cells, projection))
        self.initialise()

    def initialise(self) -> None:
        """Glorot's uniform for W and V, TensorFlow's default."""
        for matrix in (self.weight, self.projection_weight):
            bound = (6 / (matrix.shape[1] + matrix.shape[2])) ** 0.5
            nn.init.uniform_(matrix, -bound, bound)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            self.bias[:, self.cells : 2 * self.cells] = FORGET_BIAS

    @property
    def input_weight(self) -> Tensor:
        """The rows of W that multiply x, (directions, D, 4H)."""
        return self.weight[:, : -self.projection_weight.shape[-1]]

    @property
    def recurrent_weight(self) -> Tensor:
        """The rows of W that multiply h, (directions, P, 4H)."""
        return self.weight[:, -self.projection_weight.shape[-1] :]

    def forward(self, x: Tensor, sizes: list[int]) -> Tensor:
        """sizes: sequences alive at each step, in the order of `Packing`; they sum to N."""
        h: Tensor = ProjectedLstm.apply(  # type: ignore[no-untyped-call]
            x,
            self.weight,
            self.bias,
            self.projection_weight,
            sizes,
            self.cell_clip,
            self.projection_clip,
        )
        return h

    def infer(self, x: Tensor, direction: int, sizes: list[int], parents: list[Tensor | None]) -> Tensor:
        """One direction without gradients: (N, D) -> (N, P). parents: see `infer_direction`."""
        weights = self.weight[direction], self.bias[direction], self.projection_weight[direction]
        return infer_direction(x, *weights, sizes, (self.cell_clip, self.projection_clip), parents)
