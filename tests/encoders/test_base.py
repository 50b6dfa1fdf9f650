"""A fourth encoder is one class and one entry: nothing else has to know it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.batches.rows import Joined, TextRow, collate, encode_text, kept_tokens, text_row
from headstart.config import Section, Table, resolve
from headstart.encoders.base import Encoder
from headstart.encoders.registry import ENCODERS
from headstart.encoders.representations import Layers, chosen
from headstart.errors import ConfigError, DataError
from headstart.exporting import export
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.mix import MixConfig
from headstart.model import Model, build_reader, widths_for_head
from headstart.pretrained import Pretrained, load_run, save_run
from headstart.progress import result_of
from headstart.text.tokenizer import Tokenizer, WordTokenizer
from headstart.text.vocabulary import WordCounter


class MeanConfig(Section):
    """A word's vector, and the mean of its text."""

    width: int


class Mean(Encoder):
    """R_0 is a table, R_1 the mean of the text: only what is abstract in `Encoder` is written here."""

    kind, title = "mean", "Mean"
    description = "The mean of a text."
    perplexity_note = "none"
    Config = MeanConfig

    config: MeanConfig

    def __init__(self, config: MeanConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Embedding(vocabulary_size, config.width)

    @classmethod
    def build(cls, settings: Table, vocabulary_size: int) -> Self:
        return cls(resolve(MeanConfig, settings), vocabulary_size)

    @property
    def shape(self) -> tuple[int, int]:
        return 2, self.config.width

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        words = self.table(ids) * mask[..., None]
        mean = words.sum(dim=1, keepdim=True) / mask.sum(dim=1)[:, None, None].clamp(min=1)
        return chosen([words, mean * mask[..., None]], layers)

    def layer_groups(self) -> list[list[nn.Parameter]]:
        return [list(self.table.parameters())]

    def activation_floats(self, B: int, T: int) -> int:
        return 2 * B * T * self.config.width

    @classmethod
    def row(cls, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow:
        ids = encode_text(tokenizer, text).ids
        kept = kept_tokens(len(ids), longest)
        return TextRow(ids[kept], np.arange(len(kept)), len(kept) < len(ids))


@pytest.fixture
def mean(monkeypatch: pytest.MonkeyPatch) -> Pretrained:
    monkeypatch.setitem(ENCODERS, "mean", Mean)
    counter = WordCounter()
    counter.add(dict.fromkeys("abcd", 1))
    tokenizer = WordTokenizer(counter.vocabulary(None, 1))
    return Pretrained(Mean.build({"width": 5}, len(tokenizer)), tokenizer, name="fourth")


def test_its_vectors_are_given_sentence_by_sentence(mean: Pretrained) -> None:
    first, second = mean.represent(["a b", "c"])
    assert first.shape == (2, 2, 5)
    np.testing.assert_allclose(first[1, 0], first[0].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(second[1], second[0], atol=1e-6)


def test_it_is_saved_and_loaded_as_a_run(mean: Pretrained, tmp_path: Path) -> None:
    save_run(mean, tmp_path / "run", {}, "")
    again = load_run(tmp_path / "run")
    assert again.kind == "mean"
    np.testing.assert_array_equal(again.represent(["a b d"])[0], mean.represent(["a b d"])[0])


def test_it_is_exported_as_soon_as_a_format_is_written_for_it(mean: Pretrained, tmp_path: Path) -> None:
    save_run(mean, tmp_path / "run", {}, "")
    for to in ("hf", "onnx"):
        with pytest.raises(ConfigError, match=f"holds mean, which has no export format yet; got --to {to}"):
            result_of(export(tmp_path / "run", to, tmp_path / "out"))


def test_a_task_is_trained_on_it(mean: Pretrained) -> None:
    readers = [build_reader(mean.encoder, MixConfig())]
    head = ClassifyHead(*widths_for_head(readers), 2, ClassifyHeadConfig(cell="none", pool="first"))
    model = Model(readers, head)
    model.train_only("finetune")
    batch = collate([text_row(mean.encoder, mean.tokenizer, text) for text in ("a b", "c d a")])
    model([batch]).sum().backward()
    assert all(parameter.grad is not None for parameter in mean.encoder.parameters())


def test_what_it_lacks_is_refused_in_a_sentence(mean: Pretrained) -> None:
    with pytest.raises(ConfigError, match="Mean reads one text at a time"):
        text_row(mean.encoder, mean.tokenizer, Joined("a", "b"))
    with pytest.raises(ConfigError, match="has a state to carry; this is Mean"):
        mean.represent(["a"], carry_state=True)
    with pytest.raises(ConfigError, match="int8 is for BERT"):
        mean.quantised()
    with pytest.raises(ConfigError, match="Mean has no vector for a word alone"):
        mean.encoder.word_vectors()


def test_nothing_abstract_may_be_left_out() -> None:
    class Half(Encoder):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_an_encoder_with_a_longest_sequence_has_room_for_the_rest_of_its_marks(mean: Pretrained) -> None:
    class Short(Mean):
        marks = 2

        @property
        def longest(self) -> int:
            return 4

    pretrained = Pretrained(Short.build({"width": 5}, 9), mean.tokenizer)
    assert pretrained.encoder.room == 2
    assert mean.encoder.room is None
    with pytest.raises(DataError, match="5 pieces with its marks, and this Mean reads 4"):
        pretrained.represent(["a b c d a"])
    torch.testing.assert_close(
        pretrained.encoder.infer(torch.ones(1, 2).long(), torch.ones(1, 2).bool()).layers[0][0],
        pretrained.encoder.table.weight[1],
    )  # type: ignore[attr-defined]
