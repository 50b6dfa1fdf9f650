"""What a BERT's tensors are called in Hugging Face files.

A plain name has no `bert.` in front: files have it when the model has a head, and not when it is the encoder alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from headstart.errors import CheckpointError

DECODER = "cls.predictions.decoder.weight"
OUTPUT_BIAS, OUTPUT_BIAS_AGAIN = "cls.predictions.bias", "cls.predictions.decoder.bias"
POOLER = ("pooler.dense.weight", "pooler.dense.bias")
IN_HEADS = ("cls.", "classifier.", "qa_outputs.")
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
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
    """The same memory by plain names: filling a tensor of the result fills ours."""
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
    """All tensors of some parts by plain names. parts: `encoder` or the name of a head -> its module."""
    return in_their_names(
        {f"{part}.{name}": tensor for part, module in parts.items() for name, tensor in module.state_dict().items()}
    )


def plain_names(tensors: Mapping[str, Tensor], where: Path) -> dict[str, Tensor]:
    """A file's tensors by plain names, without its buffers. Older names become today's."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        plain = plain_name(name)
        if plain in BUFFERS:
            continue
        if plain in found:
            raise CheckpointError(f"{where}: two of its tensors are '{plain}', with and without a prefix.")
        found[plain] = tensor
    if OUTPUT_BIAS_AGAIN in found:
        found.setdefault(OUTPUT_BIAS, found.pop(OUTPUT_BIAS_AGAIN))
    return found


def plain_name(name: str) -> str:
    name = name.removeprefix("module.").removeprefix("bert.")
    for old, new in TENSORFLOW_NORM.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def with_prefix(plain: str) -> str:
    """The name in a file of a model that has a head."""
    return plain if plain.startswith(IN_HEADS) else f"bert.{plain}"
