"""A trained classifier in use: texts in, labels with probabilities out, kept in a directory that explains itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from headstart.batches.rows import TextRow, collate, text_row
from headstart.config import Section, Table, pick, resolve, settings_of
from headstart.encoders.base import PRECISIONS, Encoder
from headstart.encoders.registry import build_encoder
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.heads.classify import NetworkConfig
from headstart.mix import MixConfig
from headstart.model import Model
from headstart.pretrained import Pretrained, load_strictly
from headstart.pretraining.generations import freshly_initialised
from headstart.progress import result_of
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors
from headstart.transfer.features import Precision
from headstart.transfer.fitting import FittingConfig, Labelled, probabilities_of
from headstart.weights.sources import Source, open_source

KIND = "classifier"
How = Literal["frozen", "finetune", "gradual", "scratch"]


class TransferConfig(Section):
    """How an encoder is carried over to a task."""

    how: How = "frozen"
    """frozen: the encoder's features; finetune, gradual: its parameters are trained on; scratch: all start random."""
    longest: int = Field(default=256, ge=1)
    """Units (words, or BERT's pieces) read of a text; of a longer one the first and the last half of them."""
    precision: Precision = "auto"
    """Cached features: float32, float16, or auto, which is float32 up to 2 GB."""
    mix: MixConfig = MixConfig()
    network: NetworkConfig = NetworkConfig()
    fitting: FittingConfig = FittingConfig()


@dataclass(frozen=True, slots=True)
class Predictions:
    probabilities: NDArray[np.float32]  # (N, C)
    truncated: int
    """Texts of which only a part was read."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """An encoder, mix and head with the tokenizer and the names of the labels."""

    kind: str
    tokenizer: Tokenizer
    model: Model
    labels: list[str]
    config: TransferConfig
    trained: bool = False

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most probable label of each text."""
        return [self.labels[i] for i in self.predict_proba(texts).argmax(1)]

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, labels), in the order of `labels`; rows sum to one."""
        return self.read(texts).probabilities

    def read(self, texts: Sequence[str]) -> Predictions:
        if not self.trained:
            raise CheckpointError("This classifier was never trained, so it has nothing to say. Fit it first.")
        empty = next((number for number, text in enumerate(texts, 1) if not text.strip()), None)
        if empty is not None:
            raise DataError(f"Text {empty} of {len(texts)} is empty; there is nothing in it to classify. Leave it out.")
        if not texts:
            return Predictions(np.empty((0, len(self.labels)), np.float32), 0)
        rows = [self.row(text) for text in texts]
        found = probabilities_of(self.model, text_examples(self.model, rows))
        return Predictions(found, sum(row.cut for row in rows))

    def row(self, text: str) -> TextRow:
        encoder = encoder_of(self.model)
        longest = longest_row(encoder, self.config)
        return text_row(encoder, self.tokenizer, text, longest, with_first=self.config.network.pool == "first")

    def save(self, path: Path, record: Mapping[str, Any]) -> None:
        """Into a run directory: tokenizer, weights, then config.toml, which makes them count. record: [result]."""
        run, weights = RunDirectory(path), self.model.state_dict()
        path.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(path)
        run.write_weights(weights)
        encoder = encoder_of(self.model)
        run.write_config(
            {
                "kind": KIND,
                "encoder_kind": self.kind,
                "vocabulary": len(self.tokenizer),
                "labels": self.labels,
                "trained": self.trained,
                "encoder": settings_of(encoder.config),
                "transfer": settings_of(self.config),
                "result": dict(record),
            }
        )


def longest_row(encoder: Encoder, config: TransferConfig) -> int:
    """Units read of a text: as many as are asked for, or as fit into the encoder."""
    return min(config.longest, encoder.room or config.longest)


def encoder_of(model: Model) -> Encoder:
    if model.encoder is None:
        raise CheckpointError("This model has no encoder: it reads features only.")
    return model.encoder


def text_examples(model: Model, rows: Sequence[TextRow], gold: NDArray[np.int64] | None = None) -> Labelled:
    """Texts for a model that runs its encoder."""
    device = next(model.parameters()).device

    def logits(numbers: Sequence[int]) -> torch.Tensor:
        found: torch.Tensor = model(collate([rows[i] for i in numbers]).to(device))
        return found

    return Labelled(logits, [len(row.ids) for row in rows], np.zeros(len(rows), np.int64) if gold is None else gold)


def new_model(encoder: Encoder, classes: int, config: TransferConfig) -> Model:
    layers, width = encoder.shape
    return Model(encoder, layers, width, classes, config.mix, config.network)


def is_classifier(path: Path) -> bool:
    """Whether a folder is a run that `transfer` wrote."""
    return (path / "config.toml").is_file() and RunDirectory(path).read_config().get("kind") == KIND


def load_classifier(path: Source, *, precision: str = "float32") -> Classifier:
    """A classifier that was saved, or a Hugging Face folder of a BERT with a head for classifying texts.

    precision: float32, or int8, in which a BERT is quicker and gives nearly the same probabilities.
    """
    convert = pick(PRECISIONS, precision, "precision")
    if isinstance(path, tuple) or not is_classifier(Path(path)):
        classifier = from_plain_bert(result_of(open_source(path)), str(path))
    else:
        classifier = load_own(Path(path))
    classifier.model.encoder = convert(encoder_of(classifier.model))
    return classifier


def load_own(path: Path) -> Classifier:
    """A classifier that was saved here, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
    table = run.read_config()
    tokenizer = load_tokenizer(run.path)
    settings = read_settings(table, run.path / "config.toml")
    if len(tokenizer) != table["vocabulary"]:
        raise CheckpointError(
            f"{run.path}: the tokenizer has {len(tokenizer):,} entries, the weights expect {table['vocabulary']:,}."
        )
    kind, classes = table["encoder_kind"], len(table["labels"])
    # The random start is overwritten at once; drawing it must not move anybody else's random numbers.
    model = freshly_initialised(
        0, lambda: new_model(build_encoder(kind, table["encoder"], len(tokenizer)), classes, settings)
    )
    load_strictly(model, read_tensors(run.weights), run.weights)
    return in_use(Classifier(kind, tokenizer, model, table["labels"], settings, bool(table["trained"])))


def in_use(classifier: Classifier) -> Classifier:
    classifier.model.train_only("frozen")
    classifier.model.eval()
    return classifier


PLAIN: Table = {"how": "finetune", "mix": {"kind": "last"}, "network": {"cell": "none", "pool": "first"}}
"""One linear layer on BERT's own vector of the sequence: the head that other tools know."""


def from_plain_bert(pretrained: Pretrained, where: str) -> Classifier:
    head = pretrained.heads.get("classify")
    if head is None:
        raise CheckpointError(
            f"{where}: is a pretrained encoder (kind '{pretrained.kind}') without a trained head. Make a classifier of "
            f"it first: headstart transfer sentiment --from {where} ..."
        )
    labels = list(pretrained.labels)
    settings = resolve(TransferConfig, PLAIN)
    model = freshly_initialised(0, lambda: new_model(pretrained.encoder, len(labels), settings))
    model.head.output.load_state_dict(head.state_dict())
    return in_use(Classifier(pretrained.kind, pretrained.tokenizer, model, labels, settings, trained=True))


def plain_bert(classifier: Classifier) -> Pretrained:
    """A classifier as a BERT with a plain head, if that is what it is."""
    config, head = classifier.config, classifier.model.head
    takes_top_layer = config.mix.kind == "last" and not config.mix.norm and not classifier.model.standardises
    is_plain = config.network.reads_pooled and takes_top_layer
    if classifier.kind != "bert" or not is_plain:
        raise ConfigError(
            "This classifier's head is not the plain one that Hugging Face's BERT has: a linear layer on BERT's own "
            "vector of the text. Export it --to onnx, or fit one with --how finetune --pool first."
        )
    heads = {"classify": head.output}
    return Pretrained(encoder_of(classifier.model), classifier.tokenizer, heads, tuple(classifier.labels))


def read_settings(table: Table, where: Path) -> TransferConfig:
    wanted = {"encoder_kind": str, "vocabulary": int, "labels": list, "trained": bool, "encoder": dict}
    for key, kind in wanted.items():
        if not isinstance(table.get(key), kind):
            raise CheckpointError(f"{where}: '{key}' is missing or not a {kind.__name__}; it was not written by a run.")
    return resolve(TransferConfig, table.get("transfer", {}), str(where))
