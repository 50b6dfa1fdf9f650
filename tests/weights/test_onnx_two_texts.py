"""Pairs of texts and questions in onnxruntime: the same scores, read together and apart."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.batches.rows import Joined, TextBatch, TextRow, collate, collate_texts, text_row
from headstart.encoders.base import Encoder
from headstart.errors import ConfigError
from headstart.heads.pair import PairHeadConfig, pair_head
from headstart.heads.recurrent import Head
from headstart.heads.span import SpanHeadConfig, span_head
from headstart.mix import MixConfig
from headstart.model import Model, build_reader, widths_for_head
from headstart.text.tokenizer import Tokenizer, WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.text.wordpiece import SPECIALS as PIECE_SPECIALS
from headstart.text.wordpiece import build_wordpiece
from headstart.weights.onnx.model import write_model_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

KINDS = ("static", "elmo", "bert")
LABELS = ("no", "perhaps", "yes")
TEXT = "who likes the film ? old actor , and nobody else does . a man plays guitar makes music"
WORDS = TEXT.split()
# Some words of several pieces, some of unknown ones.
SPLIT = "who the film ? old act ##or , no ##body does . man play ##s music guitar a"
PIECES = [*PIECE_SPECIALS, *SPLIT.split()]
PAIRS = [
    ("Who likes the film ?", "The old actor likes the film , and nobody else does ."),
    ("A man plays a guitar .", "A man makes music ."),
    ("music", "a"),
    ("The man who plays the guitar likes the film , and nobody else does .", "who ?"),
]
Inputs = dict[str, np.ndarray[Any, Any]]


def tokenizer_of(kind: str) -> Tokenizer:
    if kind == "bert":
        return build_wordpiece(PIECES, lowercase=True)
    words = (*SPECIALS, *WORDS)
    return WordTokenizer(Vocabulary(words, np.arange(len(words), 0, -1)))


def stirred(model: Model) -> Model:
    """Away from the zeros and ones that would hide a parameter left out."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    reader = model.only_reader
    K_and_D = reader.encoder.shape
    reader.standardise(torch.randn(K_and_D, generator=generator), 0.5 + torch.rand(K_and_D, generator=generator))
    return model.eval()


def built(encoder: Encoder, mix: MixConfig, network: PairHeadConfig | SpanHeadConfig) -> Model:
    readers = [build_reader(encoder, mix)]
    widths = widths_for_head(readers)
    head: Head
    if isinstance(network, PairHeadConfig):
        head = pair_head(*widths, len(LABELS), network)
    else:
        head = span_head(*widths, network)
    return Model(readers, head)


def written(model: Model, kind: str, folder: Path) -> Any:
    labels = () if isinstance(model.head.config, SpanHeadConfig) else LABELS
    write_model_onnx(model, tokenizer_of(kind), labels, folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])


def run(session: Any, inputs: Inputs) -> dict[str, torch.Tensor]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, inputs)), strict=True))


def inputs_of(kind: str, batch: TextBatch) -> Inputs:
    ids, mask = ("characters", "mask") if kind == "elmo" else ("input_ids", "attention_mask")
    given = {ids: batch.ids.numpy(), mask: batch.mask.long().numpy()}
    if kind == "bert":
        segments = torch.zeros_like(batch.ids) if batch.segments is None else batch.segments
        given["token_type_ids"] = segments.numpy()
    return given


def apart(kind: str, model: Model, pairs: list[tuple[str, str]]) -> tuple[TextBatch, Inputs]:
    """Pairs as the model reads them, and as the file does."""
    encoder, tokenizer = model.only_reader.encoder, tokenizer_of(kind)
    rows = [[text_row(encoder, tokenizer, text) for text in pair] for pair in pairs]
    given: Inputs = {}
    for number in (0, 1):
        batch = collate([of_pair[number] for of_pair in rows])
        own = inputs_of(kind, batch) | {"word_starts": batch.word_starts.numpy()}
        given |= {f"{name}_{number + 1}": values for name, values in own.items()}
    return collate_texts(rows), given


def joined_row(model: Model, pair: tuple[str, str]) -> TextRow:
    network: Any = model.head.config
    return text_row(
        model.only_reader.encoder,
        tokenizer_of("bert"),
        Joined(*pair),
        with_first=network.reads_first_position,
        every_piece=network.reads_every_piece,
    )


@torch.no_grad()
def scores_of(model: Model, batch: TextBatch) -> torch.Tensor:
    scores: torch.Tensor = model([batch])
    return scores


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


# Every cell with another place of the mix, one with two layers, and one that reads one way.
NETWORKS: list[tuple[MixConfig, dict[str, Any]]] = [
    (MixConfig(), {"cell": "none"}),
    (MixConfig(kind="last", norm=True), {"cell": "lstm", "layers": 2}),
    (MixConfig(kind="attention", place="both"), {"cell": "gru"}),
    (MixConfig(kind="concat", place="output"), {"cell": "rnn", "directions": "forward"}),
]
BATCHES = [PAIRS, PAIRS[2:3], [("", "who"), ("the film", ""), PAIRS[0]]]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_read_apart_get_the_same_probabilities(
    kind: str, tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    for number, (mix, settings) in enumerate(NETWORKS):
        encoder = tiny_encoder(kind, len(tokenizer_of(kind)))
        model = stirred(built(encoder, mix, PairHeadConfig(width=4, compare=5, **settings)))
        session = written(model, kind, tmp_path / str(number))
        for pairs in BATCHES:
            batch, given = apart(kind, model, pairs)
            found, wanted = run(session, given), scores_of(model, batch)
            assert_near(found["logits"], wanted)
            assert_near(found["probabilities"], wanted.softmax(dim=1))


@pytest.mark.parametrize("kind", KINDS)
def test_questions_read_apart_get_the_same_scores(
    kind: str, tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    """The file's first column is that of no answer, the others are the context's words."""
    for number, (mix, settings) in enumerate(NETWORKS):
        encoder = tiny_encoder(kind, len(tokenizer_of(kind)))
        model = stirred(built(encoder, mix, SpanHeadConfig(width=4, **settings)))
        session = written(model, kind, tmp_path / str(number))
        for pairs in (PAIRS, PAIRS[2:3]):
            batch, given = apart(kind, model, pairs)
            found, wanted = run(session, given), scores_of(model, batch)
            both = torch.stack([found["start_logits"], found["end_logits"]], dim=2)
            words = batch.word_starts >= 0
            assert batch.parts is not None
            for row, (scores, own) in enumerate(zip(both, wanted, strict=True)):
                context = int((words[row] & (batch.parts[row] == 1)).sum())
                end = int(words[row].sum())
                assert_near(scores[: 1 + context], torch.cat([own[:1], own[end - context : end]]))


@pytest.mark.parametrize(
    ("mix", "settings"),
    [
        (MixConfig(kind="last"), {"cell": "none"}),
        (MixConfig(), {"cell": "none"}),
        (MixConfig(), {"cell": "none", "pool": "mean"}),
        (MixConfig(), {"cell": "lstm", "pool": "last+max"}),
    ],
)
def test_pairs_read_together_get_the_same_probabilities(
    mix: MixConfig, settings: dict[str, Any], tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    encoder = tiny_encoder("bert", len(PIECES))
    model = stirred(built(encoder, mix, PairHeadConfig(width=4, reads="together", **settings)))
    if mix.kind == "last":  # as fine-tuned: the pooled vector is that of the top layer as it is
        model.only_reader.standardise(torch.zeros(encoder.shape), torch.ones(encoder.shape))
    batch = collate([joined_row(model, pair) for pair in PAIRS])
    given = inputs_of("bert", batch)
    if mix.kind != "last":
        given["word_starts"] = batch.word_starts.numpy()
    session = written(model, "bert", tmp_path / "out")
    assert {value.name for value in session.get_inputs()} == given.keys()
    found, wanted = run(session, given), scores_of(model, batch)
    assert_near(found["logits"], wanted)
    assert_near(found["probabilities"], wanted.softmax(dim=1))


@pytest.mark.parametrize("cell", ["none", "lstm"])
@pytest.mark.parametrize("kind", ["last", "scalar"])
def test_questions_read_together_get_the_same_scores(
    kind: Any, cell: Any, tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    encoder = tiny_encoder("bert", len(PIECES))
    model = stirred(built(encoder, MixConfig(kind=kind), SpanHeadConfig(width=4, reads="together", cell=cell)))
    batch = collate([joined_row(model, pair) for pair in PAIRS])
    given, places = inputs_of("bert", batch), batch.word_starts
    if cell != "none":  # a network over the pieces leaves out the marks, so it is told where they are
        given["word_starts"] = places.numpy()
    found, wanted = run(written(model, "bert", tmp_path / "out"), given), scores_of(model, batch)
    both = torch.stack([found["start_logits"], found["end_logits"]], dim=2)
    for row, own in enumerate(places):
        real = own >= 0
        assert_near(both[row, own[real]] if cell == "none" else both[row, real], wanted[row, real])


def test_the_weights_of_an_encoder_that_reads_twice_are_in_the_file_once(
    tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    for kind in KINDS:
        encoder = tiny_encoder(kind, len(tokenizer_of(kind)))
        model = stirred(built(encoder, MixConfig(), PairHeadConfig(width=4)))
        written(model, kind, tmp_path / kind)
        stored = onnx.load(tmp_path / kind / "model.onnx").graph.initializer
        floats = sum(int(np.prod(tensor.dims)) for tensor in stored if tensor.data_type == onnx.TensorProto.FLOAT)
        own = sum(tensor.numel() for tensor in model.state_dict().values())
        assert floats <= own + 20  # constants of the graph


def left_by_readme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    [example] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(folder)
    scope: dict[str, Any] = {}
    exec(example, scope)
    return scope


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_pairs_read_apart_runs(
    kind: str, tiny_encoder: Callable[..., Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stirred(built(tiny_encoder(kind, len(tokenizer_of(kind))), MixConfig(), PairHeadConfig(width=4)))
    written(model, kind, tmp_path / "out")
    wanted = scores_of(model, apart(kind, model, PAIRS[1:2])[0]).softmax(dim=1)
    assert_near(torch.from_numpy(left_by_readme(tmp_path / "out", monkeypatch)["probabilities"]), wanted)


@pytest.mark.parametrize("pool", ["first", "mean"])
def test_the_example_of_pairs_read_together_runs(
    pool: str, tiny_encoder: Callable[..., Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = PairHeadConfig(reads="together", cell="none", pool=pool)
    model = stirred(built(tiny_encoder("bert", len(PIECES)), MixConfig(), network))
    written(model, "bert", tmp_path / "out")
    wanted = scores_of(model, collate([joined_row(model, PAIRS[1])])).softmax(dim=1)
    assert_near(torch.from_numpy(left_by_readme(tmp_path / "out", monkeypatch)["probabilities"]), wanted)


def best_span(scores: torch.Tensor, longest: int) -> tuple[int, int]:
    """scores: (C, 2), of the context's words or pieces."""
    spans = [(i, j) for i, j in itertools.product(range(len(scores)), repeat=2) if i <= j < i + longest]
    return max(spans, key=lambda span: float(scores[span[0], 0] + scores[span[1], 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_questions_read_apart_finds_the_models_answer(
    kind: str, tiny_encoder: Callable[..., Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = SpanHeadConfig(width=4, longest_answer=3)
    model = stirred(built(tiny_encoder(kind, len(tokenizer_of(kind))), MixConfig(), network))
    written(model, kind, tmp_path / "out")
    batch = apart(kind, model, PAIRS[:1])[0]
    assert batch.parts is not None
    scores = scores_of(model, batch)[0][batch.parts[0] == 1]
    assert left_by_readme(tmp_path / "out", monkeypatch)["answer"] == best_span(scores, 3)


@pytest.mark.parametrize("cell", ["none", "lstm"])
def test_the_example_of_questions_read_together_finds_the_models_answer(
    cell: Any, tiny_encoder: Callable[..., Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = SpanHeadConfig(width=4, reads="together", cell=cell, longest_answer=4)
    model = stirred(built(tiny_encoder("bert", len(PIECES)), MixConfig(), network))
    written(model, "bert", tmp_path / "out")
    row = joined_row(model, PAIRS[0])
    scores = scores_of(model, collate([row]))[0][row.parts == 1]
    first, last = best_span(scores, 4)
    spans = tokenizer_of("bert").encode(PAIRS[0][1]).spans
    answer = left_by_readme(tmp_path / "out", monkeypatch)["answer"]
    assert answer == PAIRS[0][1][spans[first][0] : spans[last][1]]


def test_the_folder_tells_the_task_and_what_belongs_to_which_text(
    tiny_encoder: Callable[..., Encoder], tmp_path: Path
) -> None:
    model = stirred(built(tiny_encoder("static", len(tokenizer_of("static"))), MixConfig(), SpanHeadConfig(width=4)))
    record = {"task": "qa", "version": "2.0", "threshold": 0.5}
    write_model_onnx(model, tokenizer_of("static"), (), tmp_path / "out", record)
    metadata = onnx.load(tmp_path / "out" / "model.onnx").metadata_props
    assert {"task": "qa", "version": "2.0", "threshold": "0.5"}.items() <= {e.key: e.value for e in metadata}.items()
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| `input_ids_2` | int64 | (batch, length_2) | ids of the tokens; of the second text |" in text
    assert "by more than 0.5" in text


def test_labels_that_do_not_fit_pairs_are_refused(tiny_encoder: Callable[..., Encoder], tmp_path: Path) -> None:
    model = stirred(built(tiny_encoder("static", len(tokenizer_of("static"))), MixConfig(), PairHeadConfig(width=4)))
    with pytest.raises(ConfigError, match="has 3 classes, but 2 labels"):
        write_model_onnx(model, tokenizer_of("static"), ["a", "b"], tmp_path / "out")
