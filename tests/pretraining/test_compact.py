"""A compact run does whatever its run does, nearly as well, and tells nothing of the machine it was made on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.config import read_toml
from headstart.encoders.registry import ENCODERS
from headstart.errors import CheckpointError, ConfigError
from headstart.inspection.fill import fill
from headstart.pretrained import was_pretrained_here, weights_of
from headstart.pretraining.compact import CompactLoss, write_compact
from headstart.pretraining.held_out import FinishedRun
from headstart.progress import result_of
from headstart.transfer.start import open_start

SENTENCES = ["The cat likes the film .", "Nobody", "her sister watches old songs , boring ."]
HEADS = {"elmo": {"head"}, "bert": {"masked", "next"}}


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_gives_nearly_the_same_vectors_and_has_its_heads(
    kind: str, pretrained_runs: dict[str, Path], compact_runs: dict[str, Path]
) -> None:
    exact, compact = headstart.load(pretrained_runs[kind]), headstart.load(compact_runs[kind])
    assert compact.heads.keys() == exact.heads.keys() >= HEADS.get(kind, set())
    mine, other = weights_of(compact), weights_of(exact)
    assert {name: tensor.shape for name, tensor in mine.items()} == {name: t.shape for name, t in other.items()}
    for left, right in zip(compact.represent(SENTENCES), exact.represent(SENTENCES), strict=True):
        assert left.shape == right.shape
        assert np.linalg.norm(left - right) < 0.02 * np.linalg.norm(right)
    assert compact.tokenizer.fingerprint == exact.tokenizer.fingerprint


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_is_small_complete_and_without_places(
    kind: str, pretrained_runs: dict[str, Path], compact_runs: dict[str, Path]
) -> None:
    run, compact = pretrained_runs[kind], compact_runs[kind]
    size, full = ((folder / "weights.safetensors").stat().st_size for folder in (compact, run))
    assert size < 0.6 * full  # in a run of this size, names and scales are much of it
    names = {path.name for path in run.iterdir()} - {"log.jsonl", "state", "tensorboard"}
    assert {path.name for path in compact.iterdir()} == names
    for name in ("config.toml", "CARD.md"):
        assert str(run.parent) not in (compact / name).read_text(encoding="utf-8")
    table, own = read_toml(compact / "config.toml"), read_toml(run / "config.toml")
    assert table["data"]["sources"] == ["text.txt", "opinions.txt"]
    assert table["data"]["compact"] == "int8"
    assert {key: value for key, value in table.items() if key != "data"} == {
        key: value for key, value in own.items() if key != "data"
    }


@pytest.mark.parametrize("kind", ENCODERS)
def test_the_card_says_what_it_lost(kind: str, pretrained_runs: dict[str, Path], compact_runs: dict[str, Path]) -> None:
    before, card = (
        (folder / "CARD.md").read_text(encoding="utf-8") for folder in (pretrained_runs[kind], compact_runs[kind])
    )
    added = [line for line in card.splitlines() if line not in before.splitlines()]
    assert added[0].startswith("- **Compact**: the matrices are int8 with a scale for each row: ")
    assert "The largest error of a tensor is 0." in added[0]
    assert ("Left out: contexts." in added[0]) == (kind == "static")
    assert "log.jsonl" not in card
    assert card.index("- **Weights**") < card.index("- **Compact**") < card.index("| held out | |")


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_the_loss_is_measured_on_held_out_text(
    kind: str, precision: str, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    run = pretrained_runs[kind]
    work = write_compact(
        headstart.load(run), run, tmp_path / "out", precision=precision, held_out=[str(corpus)],
        notes={"Licence": "Apache-2.0"},
    )  # fmt: skip
    loss: CompactLoss = result_of(work)
    assert loss.before is not None
    assert loss.after is not None
    assert loss.after == pytest.approx(loss.before, rel=0.01 if precision == "int8" else 1e-3)
    assert loss.after != loss.before
    assert loss.compact_bytes < 0.6 * loss.full_bytes
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert f"(text.txt): {loss.before:,.2f} before, {loss.after:,.2f} as it is here." in card
    assert "- **Licence**: Apache-2.0\n" in card


@pytest.mark.parametrize("kind", ["elmo", "bert"])
def test_its_own_language_model_can_be_measured_again(
    kind: str, pretrained_runs: dict[str, Path], compact_runs: dict[str, Path], corpus: Path
) -> None:
    perplexities = []
    for run in (pretrained_runs[kind], compact_runs[kind]):
        finished = FinishedRun.open(run)
        (found,) = result_of(finished.perplexities([finished.weights], 2_000, [str(corpus)])) or []
        perplexities.append(found)
    assert perplexities[1] == pytest.approx(perplexities[0], rel=0.01)


def test_word_vectors_alone_have_no_perplexity(compact_runs: dict[str, Path], corpus: Path) -> None:
    finished = FinishedRun.open(compact_runs["static"])
    with pytest.raises(CheckpointError, match=r"lack 'contexts', .*a compact run keeps the vectors alone"):
        result_of(finished.perplexities([finished.weights], 2_000, [str(corpus)]))


def test_it_goes_where_a_run_goes(
    compact_runs: dict[str, Path], labelled: tuple[Path, Path], corpus: Path, tmp_path: Path
) -> None:
    (guesses,) = fill(headstart.load(compact_runs["bert"]), "nobody [MASK] the film .")
    assert len(guesses) == 5
    folder = result_of(headstart.export(compact_runs["bert"], "hf", tmp_path / "hf"))
    compact = headstart.load(compact_runs["bert"]).represent(SENTENCES)
    for left, right in zip(headstart.load(folder).represent(SENTENCES), compact, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)
    train, dev = labelled
    settings = {"fitting": {"min_steps": 4, "epochs": 1.0}}
    for kind, how in (("elmo", "frozen"), ("bert", "finetune")):
        fit = headstart.transfer(
            source=compact_runs[kind], how=how, train=train, dev=dev, out=tmp_path / kind, seeds=1, settings=settings
        )
        list(fit)
        assert (tmp_path / kind / "weights.safetensors").is_file()
    small = {"encoder.width": 16, "encoder.inner": 32, "objective.length": 32, "vectors": str(compact_runs["static"])}
    list(headstart.pretrain("bert", corpus, out=tmp_path / "started", size="tiny", steps=2, settings=small))


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_is_weights_from_elsewhere_and_cannot_be_resumed(kind: str, compact_runs: dict[str, Path]) -> None:
    assert not was_pretrained_here(compact_runs[kind])
    assert open_start(str(compact_runs[kind])).run is None
    with pytest.raises(CheckpointError, match="is a compact run, which has no checkpoint to resume from"):
        headstart.pretrain(kind, out=compact_runs[kind], resume=True)
    with pytest.raises(CheckpointError, match="is compact already"):
        result_of(headstart.export(compact_runs[kind], "compact", compact_runs[kind].parent / "again"))


def test_weights_of_other_tools_become_a_compact_run_too(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    theirs = result_of(headstart.export(pretrained_runs["bert"], "hf", tmp_path / "theirs"))
    compact = result_of(headstart.export(theirs, "compact", tmp_path / "compact"))
    assert set(headstart.load(compact).heads) == {"masked", "next"}
    card = (compact / "CARD.md").read_text(encoding="utf-8")
    assert "**Imported** from theirs" in card
    assert "**Compact**" in card
    with pytest.raises(ConfigError, match="this was not pretrained here"):
        result_of(headstart.export(theirs, "compact", tmp_path / "again", held_out=["text.txt"]))
    assert not (tmp_path / "again").exists()


def test_options_of_a_compact_run_are_for_no_other_format(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    for options in ({"precision": "int8"}, {"held_out": ["text.txt"]}):
        with pytest.raises(ConfigError, match=r"is for --to compact; got --to hf"):
            result_of(headstart.export(pretrained_runs["bert"], "hf", tmp_path / "hf", **options))
