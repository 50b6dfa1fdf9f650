"""A small builder of ONNX graphs: operations take the names of values and return the name of their result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto

OPSET = 17
IR_VERSION = 8
"""The oldest version of the format with this opset, so that older runtimes can read it."""
MOST_BYTES = 2**31 - 2**24
"""Of weights in one file: protobuf's limit of 2 GB, less room for the nodes."""
LEAST = float(np.finfo(np.float32).min)
"""Used instead of -inf, because the softmax of a row of -inf is nan."""

BATCH = "batch"
"""The name of the number of texts, or of pairs of them."""
Shape = Sequence[str | int]


def check_onnx() -> None:
    """onnx is an optional dependency; if it is missing, say so before any work is done."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ConfigError("Writing ONNX needs the package onnx: pip install 'headstart[onnx]'") from error


class Graph:
    """Nodes in the order they run, the weights they use, inputs and outputs. Names are unique in the whole model.

    A shape has numbers for fixed sizes and names for dynamic ones. A graph with an outer one is the body of a loop
    there, and shares its weights.
    """

    def __init__(self, outer: Graph | None = None) -> None:
        self.numbers: Iterator[int] = itertools.count() if outer is None else outer.numbers
        self.nodes: list[Any] = []
        self.weights: dict[str, NDArray[Any]] = {} if outer is None else outer.weights
        self.inputs: list[ValueInfoProto] = []
        self.outputs: list[ValueInfoProto] = []
        self.suffix: str = "" if outer is None else outer.suffix

    @contextmanager
    def ending(self, suffix: str) -> Iterator[None]:
        """Inputs that are added meanwhile, and their dynamic sizes, have names that end so: a part that is added twice
        has inputs of its own each time, and its weights once."""
        self.suffix = suffix
        yield
        self.suffix = ""

    def input(self, name: str, shape: Shape, kind: type[np.generic] = np.int64) -> str:
        name += self.suffix
        sizes = [size if isinstance(size, int) or size == BATCH else size + self.suffix for size in shape]
        self.inputs.append(described(name, sizes, kind))
        return name

    def output(self, name: str, value: str, shape: Shape, kind: type[np.generic] = np.float32) -> None:
        """Make a value an output of the graph, under this name."""
        from onnx import helper

        name += self.suffix
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(described(name, shape, kind))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation with one result. An empty name omits an optional input."""
        return self.ops(kind, *inputs, results=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, results: int, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [f"{kind}_{next(self.numbers)}" for _ in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def weight(self, name: str, values: Tensor) -> str:
        """A tensor of the model; under the same name it is stored once."""
        if name not in self.weights:
            self.weights[name] = np.ascontiguousarray(values.detach().to("cpu", torch.float32).numpy())
        return name

    def number(self, value: float) -> str:
        return self._constant(f"number_{value!r}", np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        return self._constant("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def scalar(self, value: int) -> str:
        return self._constant(f"scalar_{value}", np.array(value, np.int64))

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self.weights.setdefault(name, values)
        return name

    def linear(self, x: str, name: str, layer: nn.Linear) -> str:
        """x W^T + b."""
        return self.affine(x, name, layer.weight.T, layer.bias)

    def affine(self, x: str, name: str, matrix: Tensor, bias: Tensor) -> str:
        """x M + b."""
        product = self.op("MatMul", x, self.weight(f"{name}.matrix", matrix))
        return self.op("Add", product, self.weight(f"{name}.bias", bias))

    def layer_norm(self, x: str, name: str, norm: nn.LayerNorm) -> str:
        scale, bias = self.weight(f"{name}.weight", norm.weight), self.weight(f"{name}.bias", norm.bias)
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=norm.eps)

    def size(self, x: str, axis: int) -> str:
        """The size of one axis, (1,)."""
        return self.op("Shape", x, start=axis, end=axis + 1)

    def slice(self, x: str, axis: int, start: int, end: str | int) -> str:
        ends = self.integers(end) if isinstance(end, int) else end
        return self.op("Slice", x, self.integers(start), ends, self.integers(axis))

    def transposed(self, x: str) -> str:
        """(B, W, D) -> (B, D, W)."""
        return self.op("Transpose", x, perm=[0, 2, 1])

    def stack(self, values: Sequence[str], axis: int = 0) -> str:
        """Values of the same shape along a new axis."""
        return self.op("Concat", *(self.op("Unsqueeze", value, self.integers(axis)) for value in values), axis=axis)

    def is_real(self, mask: str) -> str:
        """A mask of 0 and 1 as booleans."""
        return self.op("Cast", mask, to=tensor_type(np.bool_))

    def keep(self, x: str, where: str, otherwise: float = 0.0) -> str:
        """x where the mask is True, else a constant. where: the shape of x without its last axis."""
        return self.op("Where", self.op("Unsqueeze", where, self.integers(-1)), x, self.number(otherwise))

    def any_of(self, where: str) -> str:
        """(B, W) -> (B,), whether the mask is True anywhere in a row."""
        numbers = self.op("Cast", where, to=tensor_type(np.int32))
        return self.is_real(self.op("ReduceMax", numbers, axes=[1], keepdims=0))

    def proto(self, name: str) -> GraphProto:
        """Without the weights."""
        from onnx import helper

        return helper.make_graph(self.nodes, name, self.inputs, self.outputs)

    def check_size(self) -> None:
        size = sum(values.nbytes for values in self.weights.values())
        if size > MOST_BYTES:
            raise CheckpointError(
                f"This model has {size / 2**30:.1f} GB of weights, and one ONNX file holds no more than "
                f"{MOST_BYTES / 2**30:.1f} GB. Use a smaller model."
            )

    def model(self, name: str, metadata: Mapping[str, str]) -> ModelProto:
        from onnx import helper, numpy_helper

        model = helper.make_model(
            self.proto(name),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="headstart",
        )
        # Added last, because `make_graph` and `make_model` would each copy all of them.
        for key, values in self.weights.items():
            model.graph.initializer.append(numpy_helper.from_array(values, key))
        helper.set_model_props(model, dict(metadata))
        return model


def described(name: str, shape: Shape, kind: type[np.generic]) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, tensor_type(kind), list(shape))


def tensor_type(kind: type[np.generic]) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
