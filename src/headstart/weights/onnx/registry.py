"""The encoders that can become ONNX. A new one is a file in this folder and an entry here."""

from __future__ import annotations

from typing import Any

from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.static import Static
from headstart.errors import ConfigError
from headstart.weights.onnx.base import OnnxEncoder
from headstart.weights.onnx.bert import OnnxBert
from headstart.weights.onnx.elmo import OnnxElmo
from headstart.weights.onnx.graph import Graph
from headstart.weights.onnx.static import OnnxStatic

ONNX_ENCODERS: dict[type[Encoder], type[OnnxEncoder[Any]]] = {Static: OnnxStatic, Elmo: OnnxElmo, Bert: OnnxBert}


def onnx_encoder(encoder: Encoder, graph: Graph) -> OnnxEncoder[Any]:
    for kind, export in ONNX_ENCODERS.items():
        if isinstance(encoder, kind):
            return export(encoder, graph)
    raise ConfigError(f"{encoder.title} cannot be exported as ONNX yet.")
