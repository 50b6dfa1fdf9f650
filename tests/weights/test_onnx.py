from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from headstart.batches.rows import TextBatch, collate, text_row
from headstart.checksums import SUMS
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.kernels.spelling import WORD_PADDING
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.heads.classify import ClassifyHead
from headstart.heads.classify import ClassifyHeadConfig as NetworkConfig
from headstart.heads.language_model import MaskedLMHead
from headstart.heads.plain import head_logits
from headstart.heads.pool import POOLS
from headstart.heads.recurrent import CELLS
from headstart.mix import MIXES, MixConfig
from headstart.model import PLACES, Model, build_reader, widths_for_head
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import Tokenizer, WordTokenizer
from headstart.text.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary
from headstart.text.wordpiece import SPECIALS as PIECE_SPECIALS
from headstart.text.wordpiece import build_wordpiece
from headstart.weights.onnx import graph as onnx_graph
from headstart.weights.onnx.model import write_encoder_onnx, write_model_onnx
from headstart.weights.onnx.registry import ONNX_ENCODERS

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

WORDS = ("A", "warm", ",", "film", ".", "dull")
PIECES = [*PIECE_SPECIALS, "a", "warm", ",", "fun", "##ny", "film", "."]
C, V = 3, len(PIECES)
LABELS = ["bad", "so-so", "très bon"]
BERT = {"layers": 2, "width": 8, "heads": 2, "inner": 20, "positions": 14}
# Narrow clips, so that they are met.
ELMO = {
    "cell": 6,
    "projection": 4,
    "filters": [[1, 4], [3, 5]],
    "char_width": 3,
    "highway": 2,
    "cell_clip": 0.6,
    "projection_clip": 0.4,
}


def static() -> Static:
    return Static(StaticConfig(dim=6), V)


def elmo(**settings: Any) -> Elmo:
    return Elmo(ElmoConfig(**{**ELMO, **settings}), V)


def bert(**settings: Any) -> Bert:
    return Bert(BertConfig(**{**BERT, **settings}), V)


ENCODERS: dict[str, Callable[[], nn.Module]] = {"static": static, "elmo": elmo, "bert": bert}


def stirred(module: nn.Module) -> nn.Module:
    """Away from the zeros and ones that would hide a parameter left out."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def built(encoder: Encoder, mix: MixConfig, network: NetworkConfig) -> Model:
    readers = [build_reader(encoder, mix)]
    return Model(readers, ClassifyHead(*widths_for_head(readers), C, network))


def tokenizer_of(kind: str) -> Tokenizer:
    if kind == "bert":
        return build_wordpiece(PIECES, lowercase=True)
    words = (*SPECIALS, *WORDS)
    return WordTokenizer(Vocabulary(words, np.arange(len(words), 0, -1)))


def batch_of(kind: str, lengths: list[int], marks: int = 1) -> TextBatch:
    """Rows of so many units, every unit after the first `marks` a word."""
    T = max(lengths)
    generator = torch.Generator().manual_seed(sum(lengths))
    shape = (len(lengths), T, 50) if kind == "elmo" else (len(lengths), T)
    ids = torch.randint(1, V, shape, generator=generator)
    if kind == "elmo":
        ids[..., 5:] = WORD_PADDING
        ids[:, T // 2] = ids[:, 0]  # a word that comes twice
        ids[-1, -1, 20] = 7  # a long word
    mask = torch.arange(T) < torch.tensor(lengths)[:, None]
    starts = torch.arange(marks, T).expand(len(lengths), -1).masked_fill(~mask[:, marks:], -1)
    segments = torch.randint(0, 2, (len(lengths), T), generator=generator) if kind == "bert" else None
    return TextBatch(ids, mask, segments, starts)


def inputs_of(kind: str, batch: TextBatch) -> dict[str, np.ndarray[Any, Any]]:
    ids, mask = ("characters", "mask") if kind == "elmo" else ("input_ids", "attention_mask")
    given = {ids: batch.ids.numpy(), mask: batch.mask.long().numpy()}
    return given if batch.segments is None else given | {"token_type_ids": batch.segments.numpy()}


def with_table(encoder: Elmo, batch: TextBatch) -> tuple[TextBatch, dict[str, np.ndarray[Any, Any]]]:
    """A batch for an ELMo with a table of words, in which every second word is outside it."""
    numbers = batch.ids[..., 0] % V
    numbers[:, 1::2] = UNKNOWN_ID
    ids, name = numbers, "words"
    if encoder.config.tokens == "both":
        ids, name = torch.cat([numbers[..., None], batch.ids], dim=-1), "words_and_characters"
    given = {name: ids.numpy(), "mask": batch.mask.long().numpy()}
    return TextBatch(ids, batch.mask, None, batch.word_starts), given


def opened(folder: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])


def run(session: Any, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, torch.Tensor]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, inputs)), strict=True))


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


# The last row of the first batch has marks only; the second batch is a single unit.
BATCHES = [([6, 3, 5, 6, 1], 1), ([1], 0)]

VARIANTS: dict[str, tuple[str, Callable[[], nn.Module]]] = {
    "static": ("static", static),
    "elmo": ("elmo", elmo),
    "elmo forward": ("elmo", lambda: elmo(directions="forward", layers=3)),
    "elmo plain": ("elmo", lambda: elmo(cell_clip=None, projection_clip=None, residual=False, highway=0)),
    "elmo of words": ("elmo", lambda: elmo(tokens="words")),
    "elmo of both": ("elmo", lambda: elmo(tokens="both")),
    "elmo tanh": ("elmo", lambda: elmo(activation="tanh", filters=[[50, 3]])),
    "bert": ("bert", bert),
    "bert one head": ("bert", lambda: bert(heads=1, layers=1, segments=3)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_an_encoder_gives_the_same_layers(name: str, tmp_path: Path) -> None:
    kind, build = VARIANTS[name]
    encoder = stirred(build())
    write_encoder_onnx(Pretrained(encoder, tokenizer_of(kind)), tmp_path / "out")
    session = opened(tmp_path / "out")
    for lengths in ([6, 3, 5, 1], [1], [4, 4]):
        batch = batch_of(kind, lengths)
        inputs = inputs_of(kind, batch)
        if isinstance(encoder, Elmo) and encoder.config.tokens != "characters":
            batch, inputs = with_table(encoder, batch)
        with torch.no_grad():
            R = encoder(batch.ids, batch.mask, batch.segments)
        found = run(session, inputs)["layers"]
        assert found.shape == R.layers.shape
        assert_near(found[:, batch.mask], R.layers[:, batch.mask])


@pytest.mark.parametrize("kind", ENCODERS)
def test_padding_changes_nothing(kind: str, tmp_path: Path) -> None:
    write_encoder_onnx(Pretrained(stirred(ENCODERS[kind]()), tokenizer_of(kind)), tmp_path / "out")
    inputs = inputs_of(kind, batch_of(kind, [7, 3]))
    alone = {name: rows[1:, :3] for name, rows in inputs.items()}
    session = opened(tmp_path / "out")
    assert_near(run(session, inputs)["layers"][:, 1:, :3], run(session, alone)["layers"])


@pytest.mark.parametrize("untied", [False, True])
def test_a_berts_heads_come_along(untied: bool, tmp_path: Path) -> None:
    encoder = bert()
    heads = {
        "masked": MaskedLMHead(8, V, 1e-12, untied=untied),
        "next": nn.Linear(8, 2),
        "classify": nn.Linear(8, 3),
        "tag": nn.Linear(8, 5),
        "span": nn.Linear(8, 2),
    }
    for module in (encoder, *heads.values()):
        stirred(module)
    write_encoder_onnx(Pretrained(encoder, tokenizer_of("bert"), heads, tuple(LABELS)), tmp_path / "out")
    batch = batch_of("bert", [5, 2, 4])
    found = run(opened(tmp_path / "out"), inputs_of("bert", batch))
    with torch.no_grad():
        top = encoder(batch.ids, batch.mask, batch.segments).layers[-1]
        assert_near(found["pooled"], encoder.pooled(top))
        for name, head in heads.items():
            wanted, logits = head_logits(name, head, encoder, top), found[f"{name}_logits"]
            real = batch.mask if wanted.ndim == 3 else ...
            assert_near(logits[real], wanted[real])
    assert found.keys() == {"layers", "pooled", *(f"{name}_logits" for name in heads)}
    # Tied, the file holds the pieces' vectors once.
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert sum(sorted(weight.dims) == [8, V] for weight in model.graph.initializer) == 1 + untied


def settings() -> Iterator[tuple[MixConfig, NetworkConfig]]:
    """Every mix at every place; every mix and every pool without a cell; every cell with every pool."""
    pools = itertools.cycle(POOLS)
    for (mixing, place), norm in zip(itertools.product(MIXES, PLACES), itertools.cycle([False, True]), strict=False):
        yield MixConfig(kind=mixing, place=place, norm=norm), NetworkConfig(width=4, pool=next(pools))
    for mixing, pool in [
        *((mixing, "first") for mixing in MIXES),
        *(("scalar", pool) for pool in (*POOLS, "last+max+attention")),
    ]:
        yield MixConfig(kind=mixing), NetworkConfig(cell="none", pool=pool)
    for cell, pool in itertools.product(CELLS, POOLS):
        yield MixConfig(), NetworkConfig(cell=cell, width=5, pool=pool, layers=2)
        if pool in ("last", "mean"):
            yield MixConfig(), NetworkConfig(cell=cell, width=3, pool=pool, directions="forward")


def classifier(kind: str, mix: MixConfig, network: NetworkConfig, standardise: bool) -> Model:
    torch.manual_seed(0)
    encoder: Any = ENCODERS[kind]()
    model = built(encoder, mix, network)
    stirred(model)
    if standardise:
        model.only_reader.standardise(torch.randn(encoder.shape), 0.5 + torch.rand(encoder.shape))
    return model


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_classifier_gives_the_same_probabilities(kind: str, tmp_path: Path) -> None:
    for number, (mix, network) in enumerate(settings()):
        model = classifier(kind, mix, network, standardise=number % 2 == 0)
        folder = tmp_path / str(number)
        write_model_onnx(model, tokenizer_of(kind), LABELS, folder)
        session = opened(folder)
        for lengths, marks in BATCHES:
            batch = batch_of(kind, lengths, marks)
            with torch.no_grad():
                wanted = model([batch])
            found = run(session, {**inputs_of(kind, batch), "word_starts": batch.word_starts.numpy()})
            torch.testing.assert_close(found["logits"], wanted, rtol=1e-5, atol=1e-5, msg=f"{mix} {network} {lengths}")
            assert_near(found["probabilities"], wanted.softmax(dim=1))


def result_of_readme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the example of a folder's README.md leaves behind."""
    [example] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(folder)
    scope: dict[str, Any] = {}
    exec(example, scope)
    return scope


@pytest.mark.parametrize("kind", ENCODERS)
def test_the_example_of_an_encoder_runs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrained = Pretrained(stirred(ENCODERS[kind]()), tokenizer_of(kind))
    write_encoder_onnx(pretrained, tmp_path / "out")
    batch = collate([text_row(pretrained.encoder, pretrained.tokenizer, "A warm , funny film .")])
    with torch.no_grad():
        wanted = pretrained.encoder(batch.ids, batch.mask).layers
    assert_near(torch.from_numpy(result_of_readme(tmp_path / "out", monkeypatch)["layers"]), wanted)


@pytest.mark.parametrize("pool", ["max", "first"])
@pytest.mark.parametrize("kind", ENCODERS)
def test_the_example_of_a_classifier_runs(
    kind: str, pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = classifier(kind, MixConfig(), NetworkConfig(width=4, pool=pool), standardise=True)
    tokenizer = tokenizer_of(kind)
    write_model_onnx(model, tokenizer, LABELS, tmp_path / "out")
    row = text_row(model.only_reader.encoder, tokenizer, "A warm , funny film .", with_first=pool == "first")
    with torch.no_grad():
        wanted = model([collate([row])]).softmax(dim=1)
    assert_near(torch.from_numpy(result_of_readme(tmp_path / "out", monkeypatch)["probabilities"]), wanted)


def test_the_folder_says_what_it_holds(tmp_path: Path) -> None:
    write_model_onnx(
        classifier("bert", MixConfig(), NetworkConfig(), standardise=False),
        tokenizer_of("bert"),
        LABELS,
        tmp_path / "out",
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "model.onnx",
        "README.md",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        SUMS,
    }
    model = onnx.load(tmp_path / "out" / "model.onnx")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert (metadata["kind"], json.loads(metadata["labels"])) == ("bert", LABELS)
    text = (tmp_path / "out" / "README.md").read_text()
    assert '"bad", "so-so", "très bon"' in text
    assert "| `word_starts` | int64 | (batch, words) |" in text
    assert "at most 14 tokens" in text
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["model_max_length"] == 14


def test_a_row_beyond_the_positions_is_an_error(tmp_path: Path) -> None:
    write_encoder_onnx(Pretrained(bert(), tokenizer_of("bert")), tmp_path / "out")
    with pytest.raises(Exception, match="out of data bounds"):
        run(opened(tmp_path / "out"), inputs_of("bert", batch_of("bert", [15])))


def small() -> Pretrained:
    return Pretrained(static(), tokenizer_of("static"))


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="not an empty folder"):
        write_encoder_onnx(small(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match=r"file/out: cannot be written \(.+\). Give another --out"):
        write_encoder_onnx(small(), tmp_path / "file" / "out")
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 100)
    with pytest.raises(CheckpointError, match="one ONNX file holds no more than"):
        write_encoder_onnx(small(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_encoder_without_a_graph_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(ONNX_ENCODERS, Static)
    with pytest.raises(ConfigError, match=f"{Static.title} cannot be exported as ONNX yet"):
        write_encoder_onnx(small(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match=r"pip install 'headstart\[onnx\]'"):
        write_encoder_onnx(small(), tmp_path / "out")


def test_labels_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    whole = classifier("static", MixConfig(), NetworkConfig(), standardise=False)
    with pytest.raises(ConfigError, match="has 3 classes, but 2 labels"):
        write_model_onnx(whole, tokenizer_of("static"), ["a", "b"], tmp_path / "out")
