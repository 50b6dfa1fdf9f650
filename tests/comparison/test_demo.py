from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headstart.cli.main import app
from headstart.comparison import demo as module
from headstart.comparison.demo import DEV_SENTENCES, demo, read_examples, write_examples, write_files
from headstart.comparison.events import Began, Compared, RowPretraining
from headstart.config import read_toml
from headstart.errors import DataError
from headstart.weights.catalogue import catalogue

TINY = {
    "pretrain.static.objective.dim": 8,
    "pretrain.static.tokenizer.min_count": 1,
    "pretrain.static.training.steps": 3,
    "pretrain.bert.encoder.width": 16,
    "pretrain.bert.encoder.inner": 32,
    "pretrain.bert.objective.length": 32,
    "pretrain.bert.training.batch": 256,
    "pretrain.bert.training.steps": 3,
    "transfer.network.width": 8,
    "transfer.fitting.min_steps": 4,
    "transfer.fitting.epochs": 1.0,
}


def test_every_so_many_sentences_are_held_out_and_no_review_is_cut(tmp_path: Path) -> None:
    pairs = [(f"sentence {number}", "positive" if number < 1_100 else "negative") for number in range(2_200)]
    write_examples(tmp_path / "short.csv", pairs)
    write_examples(tmp_path / "long.csv", [("One,<br /><br />two.", "positive"), ("Three\t four.", "negative")])
    files = write_files(tmp_path / "long.csv", tmp_path / "short.csv", tmp_path / "data")
    assert files.text.read_text() == "One, two.\nThree four.\n"
    step = 2_200 // DEV_SENTENCES
    dev, train = read_examples(files.dev), read_examples(files.train)
    assert dev == pairs[::step]
    assert sorted(dev + train) == sorted(pairs)
    assert sum(label == "positive" for _, label in dev) == len(dev) // 2


@pytest.fixture
def small(house: dict[str, Path], cache_of_reviews: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo on tiny texts and tiny models; the cache that holds them. minilm cannot be had."""
    monkeypatch.setattr(module, "SETTINGS", {**module.SETTINGS, **TINY})
    monkeypatch.setattr(module, "LABELS", (4, 10))
    return cache_of_reviews


def titles(events: list[Any]) -> list[str]:
    return [row.title for row in next(event for event in events if isinstance(event, Began)).rows]


def test_the_house_stands_beside_what_is_pretrained_here_and_what_is_downloaded(
    small: Path, house: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = replace(catalogue()["bert-mini"], name="minilm")
    monkeypatch.setitem(catalogue(), "minilm", stand_in)
    events = list(demo(tmp_path / "demo", seeds=1, cache=small))
    assert titles(events) == [
        "Scratch",
        "Word vectors (own), frozen",
        "Word vectors (words-mini), frozen",
        "ELMo (elmo-mini), frozen",
        "words-mini+elmo-mini, frozen",
        "BERT (bert-mini), frozen",
        "BERT (own), fine-tuned",
        "BERT (bert-mini), fine-tuned",
        "BERT (minilm), fine-tuned",
    ]
    assert [event.kind for event in events if isinstance(event, RowPretraining)] == ["static", "bert"]
    assert isinstance(events[-1], Compared)
    assert events[-1].out == tmp_path / "demo" / "comparison"
    assert len(events[-1].results.cells) == 9 * 2
    own = read_toml(events[-1].out / "pretrained" / "bert" / "config.toml")
    assert own["vectors"] == "words-mini"
    assert list(demo(tmp_path / "demo", seeds=1, cache=small))[-1].results == events[-1].results


def test_without_a_network_it_goes_on_without_the_published_model(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTART_HOME", str(small))
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--seeds", "1"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "minilm cannot be downloaded" in done.stderr
    assert "The comparison goes on without it." in done.stderr
    assert "BERT (bert-mini), fine-tuned" in done.stdout
    assert "(minilm)" not in done.stdout
    assert done.stdout.splitlines()[-1] == str(tmp_path / "demo" / "comparison-without-minilm" / "report.html")


def test_labelled_sentences_that_cannot_be_had_are_an_error(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small / "texts" / "rotten-tomatoes" / "rotten-tomatoes.csv").unlink()
    with pytest.raises(DataError, match="rotten-tomatoes cannot be downloaded"):
        list(demo(tmp_path / "demo", seeds=1, cache=small))
    assert not (tmp_path / "demo").exists()
