"""The names of BERT's tensors in Hugging Face files.

Plain names are those without the prefix `bert.`, which files have only if the model has a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from headstart.errors import CheckpointError

DECODER = "cls.predictions.decoder.weight"
OUTPUT_BIAS, OUTPUT_BIAS_ALIAS = "cls.predictions.bias", "cls.predictions.decoder.bias"
POOLER = ("pooler.dense.weight", "pooler.dense.bias")
HEAD_PREFIXES = ("cls.", "classifier.", "qa_outputs.")
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # constants that some versions save
# In checkpoints that were converted from TensorFlow.
TENSORFLOW_NORM = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

MODULES = {
    "encoder.words": "embeddings.word_embeddings",
    "encoder.positions": "embeddings.position_embeddings",
    "encoder.segments": "embeddings.token_type_embeddings",
    "encoder.norm": "embeddings.LayerNorm",
    "encoder.pooler": "pooler.dense",
    "masked.dense": "cls.predictions.transform.dense",
    "masked.norm": "cls.predictions.transform.LayerNorm",
    "masked": "cls.predictions",
    "next": "cls.seq_relationship",
    "classify": "classifier",
    "tag": "classifier",
    "span": "qa_outputs",
}
IN_BLOCK = {
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm": "output.LayerNorm",
}


def in_their_names(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors by plain names. They share memory, so that copying into them fills the model."""
    found: dict[str, Tensor] = {}
    for name, tensor in ours.items():
        module, _, kind = name.rpartition(".")
        if name == "masked.decoder":
            found[DECODER] = tensor
        elif module in MODULES:
            found[f"{MODULES[module]}.{kind}"] = tensor
        else:
            _, _, number, part = module.split(".")
            block = f"encoder.layer.{number}"
            if part == "query_key_value":
                for own, share in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                    found[f"{block}.attention.self.{own}.{kind}"] = share
            else:
                found[f"{block}.{IN_BLOCK[part]}.{kind}"] = tensor
    return found


def tensors_of(parts: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """The tensors of an encoder and its heads by plain names. parts: `encoder` or the name of a head -> its module."""
    return in_their_names(
        {f"{part}.{name}": tensor for part, module in parts.items() for name, tensor in module.state_dict().items()}
    )


def plain_names(tensors: Mapping[str, Tensor], where: Path) -> dict[str, Tensor]:
    """A file's tensors by plain names, in today's spelling and without buffers."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        plain = plain_name(name)
        if plain in BUFFERS:
            continue
        if plain in found:
            raise CheckpointError(f"{where}: has the tensor '{plain}' twice, with and without a prefix.")
        found[plain] = tensor
    if OUTPUT_BIAS_ALIAS in found:
        found.setdefault(OUTPUT_BIAS, found.pop(OUTPUT_BIAS_ALIAS))
    return found


def plain_name(name: str) -> str:
    name = name.removeprefix("module.").removeprefix("bert.")
    for old, new in TENSORFLOW_NORM.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def with_prefix(plain: str) -> str:
    """A plain name as it is in the file of a model with a head."""
    return plain if plain.startswith(HEAD_PREFIXES) else f"bert.{plain}"
