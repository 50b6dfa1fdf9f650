"""Word vectors as an ONNX graph: one lookup."""

from __future__ import annotations

from headstart.encoders.static import Static
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.examples import Example


class OnnxStatic(OnnxEncoder[Static]):
    example = Example(
        opening="""import numpy as np, onnxruntime, pathlib
from headstart.text.tokenizer import load_tokenizer

tokenizer = load_tokenizer(pathlib.Path("."))""",
        inputs="""read = tokenizer.encode(TEXT)
inputs = {"input_ids": read.ids[None], "attention_mask": np.ones((1, len(read.ids)))}""",
        word_starts="range(len(read.ids))",
    )

    def add_layers(self) -> list[str]:
        graph = self.graph
        ids, mask = (graph.input(name, TOKENS) for name in ("input_ids", "attention_mask"))
        found = graph.op("Gather", graph.weight("vectors", self.encoder.vectors), ids)
        return [graph.keep(found, graph.is_real(mask))]
