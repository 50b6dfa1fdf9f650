"""Word vectors as an ONNX graph: one lookup."""

from __future__ import annotations

from headstart.encoders.static import Static
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.folder import Example


class OnnxStatic(OnnxEncoder[Static]):
    example = Example(
        inputs="""import numpy as np, onnxruntime, pathlib
from headstart.text.tokenizer import load_tokenizer

words = load_tokenizer(pathlib.Path(".")).encode("A warm , funny film .")
inputs = {"input_ids": words.ids[None], "attention_mask": np.ones((1, len(words.ids)))}""",
        word_starts="range(len(words.ids))",
    )

    def add_layers(self) -> list[str]:
        graph = self.graph
        ids, mask = (graph.input(name, TOKENS) for name in ("input_ids", "attention_mask"))
        found = graph.op("Gather", graph.weight("vectors", self.encoder.vectors), ids)
        return [graph.keep(found, graph.is_real(mask))]
