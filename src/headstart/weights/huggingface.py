"""BERT in the folders of Hugging Face's transformers: config.json, weights and tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from headstart.atomic import write_text
from headstart.config import lower_first, pick
from headstart.encoders.bert import PUBLISHED_DEVIATION, Bert, BertConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.heads.language_model import NEXT_SENTENCE_CLASSES, MaskedLMHead
from headstart.heads.plain import ON_SEQUENCE
from headstart.pretrained import Pretrained
from headstart.text.wordpiece import SETTINGS, WordPieceTokenizer
from headstart.text.wordpiece_loading import load_wordpiece, read_settings
from headstart.training.tensors import write_tensors
from headstart.weights.bert_names import DECODER, POOLER, plain_names, tensors_of, with_prefix
from headstart.weights.new_folder import new_folder
from headstart.weights.tensor_files import SAFETENSORS, read_object, read_weights

CONFIG = "config.json"
RECORD = "headstart"
"""The key of config.json with what only Headstart knows about a model's task; other tools ignore it."""
OURS = {
    "num_hidden_layers": "layers",
    "hidden_size": "width",
    "num_attention_heads": "heads",
    "intermediate_size": "inner",
    "max_position_embeddings": "positions",
    "type_vocab_size": "segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "layer_norm_eps": "norm_eps",
}
NEEDED = ("vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
# With any other value, a model is not the BERT that our encoder computes.
FIXED = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
HEADS_OF: dict[str, tuple[str, ...]] = {
    "BertForPreTraining": ("masked", "next"),
    "BertForMaskedLM": ("masked",),
    "BertForNextSentencePrediction": ("next",),
    "BertForSequenceClassification": ("classify",),
    "BertForTokenClassification": ("tag",),
    "BertForQuestionAnswering": ("span",),
}
LABELLED = ("classify", "tag")
SPAN_ENDS = 2  # the first and the last piece of an answer
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
SHOWN = 3  # unused tensors that a notice names


def is_huggingface(path: Path) -> bool:
    return (path / CONFIG).is_file()


def read_huggingface(path: Path) -> Pretrained:
    """A BERT with its tokenizer and heads, in float32.

    `notices` lists what is missing or was not used. A missing pooler becomes the identity with zero bias.
    """
    config = read_config(path / CONFIG)
    shape = bert_config(config, path / CONFIG)
    tokenizer = load_wordpiece(path)
    if len(tokenizer) != config["vocab_size"]:
        raise CheckpointError(
            f"{path}: the tokenizer has {len(tokenizer):,} entries, but {CONFIG} says vocab_size = "
            f"{config['vocab_size']:,}. Use the tokenizer that belongs to these weights."
        )
    where, tensors = read_weights(path)
    theirs = plain_names(tensors, where)
    with torch.device("meta"):  # shapes only: memory is allocated once everything is known to fit
        encoder = Bert(shape, config["vocab_size"])
        heads = heads_among(theirs, config, encoder)
    parts = {"encoder": encoder, **heads}
    taken = fill(parts, theirs, where)
    lacks = [*lacking(parts, theirs, config), *unused(theirs, taken, tokenizer, path)]
    name = path.resolve().name
    notices = (f"{name}: {'; '.join(lacks)}.",) if lacks else ()
    return Pretrained(encoder.eval(), tokenizer, heads, labels_of(config, heads, path / CONFIG), name, notices)


def task_record(folder: Path) -> dict[str, Any]:
    """What was written about the task of a model when it was exported; empty if another tool wrote it."""
    record = read_object(folder / CONFIG).get(RECORD, {}) if is_huggingface(folder) else {}
    if not isinstance(record, dict):
        raise CheckpointError(f"{folder / CONFIG}: '{RECORD}' must be an object; got {json.dumps(record)[:200]}.")
    return record


def read_config(path: Path) -> dict[str, Any]:
    """config.json, checked to describe a BERT that our encoder can compute."""
    config = read_object(path)
    kind = config.get("model_type")
    if kind not in ("bert", None):
        raise CheckpointError(f"{path}: is a model of type {json.dumps(kind)}; only BERT ('bert') can be read.")
    missing = [key for key in NEEDED if key not in config]
    if missing:
        raise CheckpointError(f"{path}: not the configuration of a BERT; it has no {', '.join(missing)}.")
    for key, wanted in FIXED.items():
        got = config.get(key)
        if got is not None and got != wanted:
            raise CheckpointError(
                f"{path}: has {key} = {json.dumps(got)}; only a BERT with {json.dumps(wanted)} can be read."
            )
    if type(config["vocab_size"]) is not int or config["vocab_size"] < 1:
        raise CheckpointError(f"{path}: vocab_size must be a whole number above 0; got {config['vocab_size']!r}.")
    return config


def bert_config(config: Mapping[str, Any], where: Path) -> BertConfig:
    theirs = {ours: their for their, ours in OURS.items()}
    try:
        return BertConfig(**{ours: config[their] for their, ours in OURS.items() if their in config})
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"]:
            key = theirs[str(first["loc"][0])]
            reason = f"{key} does not fit a BERT: {lower_first(first['msg'])}; got {first['input']!r}"
        else:
            reason = (
                f"hidden_size must divide evenly by num_attention_heads; got {config['hidden_size']} / "
                f"{config['num_attention_heads']}"
            )
        raise CheckpointError(f"{where}: {reason}.") from error


def architectures_of(config: Mapping[str, Any]) -> list[str]:
    named = config.get("architectures") or []
    return [str(name) for name in named] if isinstance(named, list) else [str(named)]


def heads_among(theirs: Mapping[str, Tensor], config: Mapping[str, Any], encoder: Bert) -> dict[str, nn.Module]:
    """The heads whose tensors are all there, not filled yet."""
    width, norm_eps = encoder.config.width, encoder.config.norm_eps
    untied = config.get("tie_word_embeddings") is False and DECODER in theirs
    heads: dict[str, nn.Module] = {
        "masked": MaskedLMHead(width, encoder.vocabulary_size, norm_eps, untied=untied),
        "next": nn.Linear(width, NEXT_SENTENCE_CLASSES),
        "span": nn.Linear(width, SPAN_ENDS),
    }
    labelled = labelled_head(architectures_of(config))
    bias = theirs.get("classifier.bias")
    if labelled and bias is not None and bias.dim() == 1:
        heads[labelled] = nn.Linear(width, len(bias))
    return {name: head for name, head in heads.items() if tensors_of({name: head}).keys() <= theirs.keys()}


def labelled_head(architectures: list[str]) -> str | None:
    """Which head `classifier` is: transformers uses that name for three of them."""
    if any(name.endswith("ForMultipleChoice") for name in architectures):
        return None
    return "tag" if any(name.endswith("ForTokenClassification") for name in architectures) else "classify"


def fill(parts: Mapping[str, nn.Module], theirs: Mapping[str, Tensor], where: Path) -> set[str]:
    """Allocate the parts and copy the file's tensors in, as float32. Returns the names that were used."""
    wanted = tensors_of(parts)
    if not theirs.keys() >= set(POOLER):
        wanted = {name: tensor for name, tensor in wanted.items() if name not in POOLER}
    for name, tensor in wanted.items():
        check_tensor(name, theirs.get(name), tensor, where)
    for module in parts.values():
        module.to_empty(device="cpu")
    encoder: Any = parts["encoder"]
    nn.init.eye_(encoder.pooler.weight)
    nn.init.zeros_(encoder.pooler.bias)
    places = tensors_of(parts)
    for name in wanted:
        places[name].copy_(theirs[name])
    return set(wanted)


def check_tensor(name: str, got: Tensor | None, wanted: Tensor, where: Path) -> None:
    if got is None:
        raise CheckpointError(f"{where}: has no tensor '{name}', which a BERT of the shape in {CONFIG} needs.")
    if got.shape != wanted.shape:
        raise CheckpointError(
            f"{where}: '{name}' has shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}; {CONFIG} and the weights "
            "disagree."
        )
    if got.dtype not in FLOATS or got.layout != torch.strided:
        raise CheckpointError(
            f"{where}: '{name}' holds {got.dtype}, {got.layout}; wanted plain floating-point numbers."
        )


def lacking(parts: Mapping[str, nn.Module], theirs: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """What the files should have but do not, as clauses of a notice."""
    clauses = []
    if not theirs.keys() >= set(POOLER):
        clauses.append("it has no pooler, so tanh of the first piece's vector is used as the pooled vector")
    architectures = architectures_of(config)
    expected = dict.fromkeys(head for name in architectures for head in HEADS_OF.get(name, ()))
    missing = [head for head in expected if head not in parts]
    if missing:
        clauses.append(f"it lacks the head {' and '.join(missing)} of {', '.join(architectures)}, or a part of it")
    if "masked" not in parts:
        return clauses
    tied = config.get("tie_word_embeddings") is not False  # transformers' default is true
    if not tied and DECODER not in theirs:
        clauses.append("tie_word_embeddings is false, but there is no output matrix; the word embeddings are used")
    if tied and DECODER in theirs and not torch.equal(theirs[DECODER], theirs["embeddings.word_embeddings.weight"]):
        clauses.append(f"{DECODER} is not used, because tie_word_embeddings is true")
    return clauses


def unused(theirs: Mapping[str, Tensor], taken: set[str], tokenizer: WordPieceTokenizer, path: Path) -> list[str]:
    """What the files have but was not used, as clauses of a notice."""
    clauses = []
    left = sorted(theirs.keys() - taken - {DECODER})
    if left:
        more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        clauses.append(f"not used: {', '.join(left[:SHOWN])}{more}")
    says = read_settings(path / SETTINGS).get("do_lower_case")
    if isinstance(says, bool) and says != tokenizer.lowercase:
        clauses.append(f"{SETTINGS} has do_lower_case = {json.dumps(says)}, but tokenizer.json disagrees and was used")
    return clauses


def labels_of(config: Mapping[str, Any], heads: Mapping[str, nn.Module], where: Path) -> tuple[str, ...]:
    """The names of the classes, in the order of the logits; LABEL_0 and so on if the file has none."""
    classes = classes_of(heads)
    if classes is None:
        return ()
    names = config.get("id2label") or default_labels(classes)
    if not isinstance(names, dict) or set(names) != {str(number) for number in range(classes)}:
        raise CheckpointError(
            f"{where}: id2label must name the classes 0 to {classes - 1} of the classifier; got "
            f"{json.dumps(names)[:200]}."
        )
    return tuple(str(names[str(number)]) for number in range(classes))


def classes_of(heads: Mapping[str, nn.Module]) -> int | None:
    """How many labels the head for texts or for words has; None if there is no such head."""
    labelled: list[Any] = [head for name, head in heads.items() if name in LABELLED]
    return int(labelled[0].out_features) if labelled else None


def default_labels(classes: int) -> dict[str, str]:
    return {str(number): f"LABEL_{number}" for number in range(classes)}


def write_huggingface(pretrained: Pretrained, folder: Path, record: Mapping[str, Any] | None = None) -> None:
    """Write a new or empty folder that transformers and `read_huggingface` open with the same outputs.

    record: of a task model, what `task_record` gives back.
    """
    encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    if not isinstance(encoder, Bert) or not isinstance(tokenizer, WordPieceTokenizer):
        raise ConfigError(f"Only a BERT can be written for transformers; this is a {pretrained.kind} encoder.")
    config = config_of(pretrained, encoder, tokenizer) | ({RECORD: dict(record)} if record else {})
    plain = tensors_of({"encoder": encoder, **pretrained.heads})
    # Reading restores a stand-in, so it is left out, unless a head needs it: transformers would draw a random one.
    if is_stand_in(encoder.pooler) and not pretrained.heads.keys() & set(ON_SEQUENCE):
        plain = {name: tensor for name, tensor in plain.items() if name not in POOLER}
    named = {with_prefix(name) if pretrained.heads else name: tensor for name, tensor in plain.items()}
    with new_folder(folder) as unfinished:
        write_text(unfinished / CONFIG, json.dumps(config, indent=2) + "\n")
        tokenizer.save(unfinished, longest=encoder.config.positions)
        write_tensors(unfinished / SAFETENSORS, named)


def is_stand_in(pooler: nn.Linear) -> bool:
    """Whether it is the identity that `read_huggingface` puts in the place of a missing pooler."""
    identity = torch.eye(len(pooler.weight), device=pooler.weight.device)
    return torch.equal(pooler.weight, identity) and not bool(pooler.bias.any())


def config_of(pretrained: Pretrained, encoder: Bert, tokenizer: WordPieceTokenizer) -> dict[str, Any]:
    heads = pretrained.heads
    for name in heads:
        pick({head: None for heads_of in HEADS_OF.values() for head in heads_of}, name, "head of a BERT")
    if heads.keys() >= set(LABELLED):
        raise ConfigError("The heads classify and tag have the same name in transformers; write them to two folders.")
    masked = heads.get("masked")
    config = {
        "architectures": [architecture_for(heads)],
        "model_type": "bert",
        "vocab_size": encoder.vocabulary_size,
        **{their: getattr(encoder.config, ours) for their, ours in OURS.items()},
        **FIXED,
        "initializer_range": PUBLISHED_DEVIATION,
        "pad_token_id": tokenizer.pad,
        "tie_word_embeddings": not isinstance(masked, MaskedLMHead) or masked.decoder is None,
        "torch_dtype": "float32",
    }
    classes = classes_of(heads)
    if classes is not None:
        labels = pretrained.labels or tuple(default_labels(classes).values())
        if len(labels) != classes:
            raise ConfigError(f"There are {len(labels)} labels for a head with {classes} classes.")
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    return config


def architecture_for(heads: Mapping[str, nn.Module]) -> str:
    """The class of transformers for these heads; if there are several, that of the task."""
    tasks = [name for name in ("classify", "tag", "span") if name in heads]
    held = tasks[:1] or [name for name in ("masked", "next") if name in heads]
    fits = (name for name, heads_of in HEADS_OF.items() if list(heads_of) == held)
    return next(fits, "BertModel")
