"""BERT and its heads as an ONNX graph.

Letters: B batch, T tokens, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import nn

from headstart.encoders.bert import Bert, Block
from headstart.heads.language_model import MaskedLMHead
from headstart.heads.plain import ON_SEQUENCE
from headstart.weights.onnx.base import TOKENS, OnnxEncoder
from headstart.weights.onnx.examples import Example
from headstart.weights.onnx.graph import BATCH, LEAST, Graph, tensor_type


class OnnxBert(OnnxEncoder[Bert]):
    example = Example(
        opening="""import numpy as np, onnxruntime, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")""",
        inputs="""read = tokenizer.encode(TEXT)
inputs = {"input_ids": [read.ids], "attention_mask": [read.attention_mask], "token_type_ids": [read.type_ids]}""",
        word_starts="(i for i, word in enumerate(read.word_ids) if word not in (None, read.word_ids[i - 1]))",
        piece_starts="(i for i, part in enumerate(read.sequence_ids) if part is not None)",
        options="""options = onnxruntime.RunOptions()
options.only_execute_path_to_fetches = True  # or all outputs are computed, whichever are asked for
""",
    )

    def add_layers(self) -> list[str]:
        graph, encoder = self.graph, self.encoder
        ids, mask, segments = (graph.input(name, TOKENS) for name in ("input_ids", "attention_mask", "token_type_ids"))
        words = graph.op("Gather", graph.weight("words", encoder.words.weight), ids)
        table = graph.weight("positions", encoder.positions.weight)
        ones = graph.op("Expand", graph.integers(1), graph.op("Shape", ids))
        places = graph.op("CumSum", ones, graph.scalar(1), exclusive=1)
        x = graph.op("Add", words, graph.op("Gather", table, places))
        x = graph.op("Add", x, graph.op("Gather", graph.weight("segments", encoder.segments.weight), segments))
        x = graph.layer_norm(x, "norm", encoder.norm)
        padding = padding_scores(graph, mask)
        states = [x]
        blocks: Iterable[Any] = encoder.blocks
        for number, block in enumerate(blocks):
            x = add_block(graph, f"blocks.{number}", block, x, padding)
            states.append(x)
        return states

    def add_pooled(self, top: str) -> str:
        first = self.graph.op("Gather", top, self.graph.scalar(0), axis=1)
        return self.graph.op("Tanh", self.graph.linear(first, "pooler", self.encoder.pooler))

    def add_outputs(self, heads: Mapping[str, nn.Module], top: str) -> None:
        """The pooled vector, and the logits of each head."""
        graph, encoder = self.graph, self.encoder
        sequence = self.add_pooled(top)
        graph.output("pooled", sequence, (BATCH, encoder.config.width))
        for name, head in heads.items():
            if isinstance(head, MaskedLMHead):
                logits = masked_logits(graph, encoder, name, head, top)
                graph.output(f"{name}_logits", logits, (*TOKENS, len(head.bias)))
            elif isinstance(head, nn.Linear):
                logits = graph.linear(sequence if name in ON_SEQUENCE else top, f"heads.{name}", head)
                graph.output(f"{name}_logits", logits, (*TOKENS[: 1 if name in ON_SEQUENCE else 2], head.out_features))


def padding_scores(graph: Graph, mask: str) -> str:
    """The term added to attention scores: 0 at real pieces, the lowest float32 at padding; (B, 1, 1, T)."""
    real = graph.op("Cast", graph.op("Unsqueeze", mask, graph.integers(1, 2)), to=tensor_type(np.float32))
    return graph.op("Mul", graph.op("Sub", graph.number(1.0), real), graph.number(LEAST))


def add_block(graph: Graph, name: str, block: Block, x: str, padding: str) -> str:
    """One block. Queries, keys and values have a product each, because slicing a joint one would copy it."""
    D = block.attention_out.in_features
    width = D // block.heads
    parts = zip(block.query_key_value.weight.chunk(3), block.query_key_value.bias.chunk(3), strict=True)
    split = []
    for part, order, (weight, bias) in zip("qkv", ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), parts, strict=True):
        of_heads = graph.op(
            "Reshape", graph.affine(x, f"{name}.{part}", weight.T, bias), graph.integers(0, 0, block.heads, width)
        )
        split.append(graph.op("Transpose", of_heads, perm=order))
    q, k, v = split
    scores = graph.op("Div", graph.op("MatMul", q, k), graph.number(math.sqrt(width)))
    weights = graph.op("Softmax", graph.op("Add", scores, padding), axis=-1)
    attended = graph.op("Transpose", graph.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", attended, graph.integers(0, 0, D))
    y = graph.linear(joined, f"{name}.attention_out", block.attention_out)
    x = graph.layer_norm(graph.op("Add", x, y), f"{name}.attention_norm", block.attention_norm)
    y = graph.linear(gelu(graph, graph.linear(x, f"{name}.inner", block.inner)), f"{name}.outer", block.outer)
    return graph.layer_norm(graph.op("Add", x, y), f"{name}.norm", block.norm)


def gelu(graph: Graph, x: str) -> str:
    """x (1 + erf(x / sqrt 2)) / 2."""
    erf = graph.op("Erf", graph.op("Div", x, graph.number(math.sqrt(2))))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Add", erf, graph.number(1.0))), graph.number(0.5))


def masked_logits(graph: Graph, encoder: Bert, name: str, head: MaskedLMHead, top: str) -> str:
    x = gelu(graph, graph.linear(top, f"heads.{name}.dense", head.dense))
    x = graph.layer_norm(x, f"heads.{name}.norm", head.norm)
    if head.decoder is None:
        # Transposed in the graph, so that the file has the embeddings only once.
        matrix = graph.op("Transpose", graph.weight("words", encoder.words.weight), perm=[1, 0])
    else:
        matrix = graph.weight(f"heads.{name}.decoder", head.decoder.T)
    return graph.op("Add", graph.op("MatMul", x, matrix), graph.weight(f"heads.{name}.bias", head.bias))
