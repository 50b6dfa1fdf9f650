"""Going on from an encoder that exists: its language model is taken over exactly, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.config import read_toml
from headstart.errors import ConfigError
from headstart.pretrained import save_run
from headstart.pretraining.events import Finished, Planned
from headstart.pretraining.loop import Step
from headstart.training.tensors import read_tensors

CONTEXTUAL = ["elmo", "bert"]


def go_on(kind: str, text: Path, start: object, out: Path, **options: Any) -> list[Any]:
    return list(headstart.pretrain(kind, text, start=start, out=out, **{"steps": 3, **options}))  # type: ignore[arg-type]


def first_scores(events: list[Any]) -> dict[str, float]:
    return next(event for event in events if isinstance(event, Planned)).first_scores


@pytest.mark.parametrize("kind", CONTEXTUAL)
def test_before_its_first_step_it_is_the_language_model_it_came_from(
    kind: str, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    source = pretrained_runs[kind]
    events = go_on(kind, corpus, source, tmp_path / "on")
    again = go_on(kind, corpus, tmp_path / "on", tmp_path / "again")
    assert first_scores(again) == pytest.approx(events[-1].scores)
    assert first_scores(events)["perplexity"] > events[-1].scores["perplexity"]
    now, before = (read_toml(run / "config.toml") for run in (tmp_path / "on", source))
    for name in ("encoder", "objective", "tokenizer"):
        assert now[name] == before[name]
    assert now["optimizer"].pop("learning_rate") == 0.3 * before["optimizer"].pop("learning_rate")
    assert now["optimizer"] == before["optimizer"]
    assert headstart.load(tmp_path / "on").tokenizer.fingerprint == headstart.load(source).tokenizer.fingerprint
    assert "Went on from" in (tmp_path / "on" / "CARD.md").read_text()


@pytest.mark.parametrize("kind", CONTEXTUAL)
def test_one_pass_over_the_text_is_what_it_does_unless_told(
    kind: str, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    events = list(headstart.pretrain(kind, corpus, start=pretrained_runs[kind], out=tmp_path / "on"))
    planned = next(event for event in events if isinstance(event, Planned))
    assert planned.steps == planned.steps_per_epoch


@pytest.mark.parametrize("kind", CONTEXTUAL)
def test_stopped_and_resumed_it_ends_with_the_same_weights(
    kind: str, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    go_on(kind, corpus, pretrained_runs[kind], tmp_path / "whole", steps=4)
    events = headstart.pretrain(kind, corpus, start=pretrained_runs[kind], out=tmp_path / "parts", steps=4)
    for event in events:
        if isinstance(event, Step) and event.number == 2:
            break
    events.close()
    *_, finished = headstart.pretrain(kind, out=tmp_path / "parts", resume=True)
    assert isinstance(finished, Finished)
    whole, parts = (read_tensors(tmp_path / name / "weights.safetensors") for name in ("whole", "parts"))
    assert all(whole[name].equal(parts[name]) for name in whole.keys() | parts.keys())


def test_a_bert_of_other_tools_is_gone_on_with(pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path) -> None:
    source = pretrained_runs["bert"]
    list(headstart.export(source, "hf", tmp_path / "hf"))
    same = {"objective.nsp": False, "objective.length": 32, "training.batch": 256}
    theirs, ours = (
        go_on("bert", corpus, start, tmp_path / out, settings=same)
        for start, out in ((tmp_path / "hf", "theirs"), (source, "ours"))
    )
    assert first_scores(theirs) == pytest.approx(first_scores(ours))
    assert read_toml(tmp_path / "theirs" / "config.toml")["optimizer"]["learning_rate"] == 5e-5


def test_a_text_with_words_that_the_tokenizer_never_saw_is_read_with_that_tokenizer(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(["Zyx qwv the film ."] * 200) + "\n", encoding="utf-8")
    go_on("elmo", text, pretrained_runs["elmo"], tmp_path / "on")
    assert "Zyx" not in headstart.load(tmp_path / "on").tokenizer.vocabulary.index  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "source", "options", "problem"),
    [
        ("bert", "elmo", {}, "holds elmo, so --from cannot go on with it as bert"),
        ("elmo", "static", {}, "holds word vectors, which --from cannot go on with"),
        ("skipgram", "static", {}, "holds word vectors, which --from cannot go on with"),
        ("bert", "bert", {"size": "tiny"}, "--size cannot be given with --from"),
        ("bert", "bert", {"settings": {"encoder.layers": 3}}, r"encoder\.layers cannot be changed with --from.* has 2"),
        ("bert", "bert", {"settings": {"tokenizer.size": 300}}, r"tokenizer\.size cannot be set with --from"),
        ("elmo", "elmo", {"settings": {"vectors": "glove-50d"}}, "--from and --vectors exclude each other"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    kind: str,
    source: str,
    options: dict[str, Any],
    problem: str,
    pretrained_runs: dict[str, Path],
    corpus: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=problem):
        go_on(kind, corpus, pretrained_runs[source], tmp_path / "on", **options)
    assert not (tmp_path / "on").exists()


def test_an_encoder_without_its_language_model_is_refused(
    pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    bare = type(pretrained)(pretrained.encoder, pretrained.tokenizer)
    save_run(bare, tmp_path / "bare", {"imported": "a test"}, "")
    with pytest.raises(ConfigError, match=r"has no 'masked\.bias', which --from needs"):
        go_on("bert", corpus, tmp_path / "bare", tmp_path / "on", settings={"objective.length": 32})


def test_dropout_may_change(pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path) -> None:
    go_on("bert", corpus, pretrained_runs["bert"], tmp_path / "on", settings={"encoder.dropout": 0.3})
    assert read_toml(tmp_path / "on" / "config.toml")["encoder"]["dropout"] == 0.3
