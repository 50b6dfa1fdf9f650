"""The verb as a whole, for every generation: what it leaves behind, exact resume, stopping, and bad input."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headstart
from headstart.checksums import SUMS
from headstart.config import read_toml
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.pretraining import session
from headstart.pretraining.events import Finished, Planned
from headstart.pretraining.loop import Step
from headstart.pretraining.objectives import OBJECTIVES
from headstart.progress import Notice, Progress
from headstart.training.tensors import read_tensors

TINY: dict[str, dict[str, Any]] = {
    "skipgram": {"settings": {"objective.dim": 8, "objective.step_words": 200, "tokenizer.min_count": 1}},
    "cbow": {"settings": {"objective.dim": 8, "objective.step_words": 200, "tokenizer.min_count": 1}},
    "glove": {"settings": {"objective.dim": 8, "objective.pairs_per_step": 200, "tokenizer.min_count": 1}},
    "elmo": {"size": "tiny", "settings": {"encoder.cell": 16, "encoder.projection": 8, "training.batch": 200}},
    "bert": {
        "size": "tiny",
        "settings": {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32},
    },
}


def pretrain(kind: str, text: Path | list[Path], out: Path, **options: Any) -> list[Any]:
    settings = {**TINY[kind]["settings"], **options.pop("settings", {})}
    length = {} if {"steps", "epochs", "budget"} & options.keys() else {"steps": 6}
    options = {"size": TINY[kind].get("size"), **length, **options}
    return list(headstart.pretrain(kind, text, out=out, settings=settings, **options))


def weights(run: Path) -> dict[str, torch.Tensor]:
    return read_tensors(run / "weights.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_run_leaves_a_directory_that_explains_itself(kind: str, corpus: Path, tmp_path: Path) -> None:
    events = pretrain(kind, corpus, tmp_path / "run")
    planned = next(event for event in events if isinstance(event, Planned))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.steps == 6
    assert finished.scores["perplexity"] > 1
    learned = {name for name in weights(tmp_path / "run") if kind != "glove" or name != "vectors"}
    assert planned.parameters == sum(weights(tmp_path / "run")[name].numel() for name in learned)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    tokenizer = {"vocab.txt", "tokenizer.json"} if kind == "bert" else {"words.tsv"}
    assert {"config.toml", "weights.safetensors", "log.jsonl", "CARD.md", "state"} | tokenizer <= names
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 7))
    assert lines[-1]["final"] == finished.scores
    assert "6 steps" in (tmp_path / "run" / "CARD.md").read_text()


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_the_encoder_of_a_run_gives_vectors_that_depend_on_the_sentence_alone(
    kind: str, corpus: Path, tmp_path: Path
) -> None:
    pretrain(kind, corpus, tmp_path / "run")
    encoder = headstart.load(tmp_path / "run")
    alone = encoder.represent(["The cat plays in the garden ."])[0]
    company = encoder.represent(["Nobody hates old songs .", "The cat plays in the garden .", "A dog"])[1]
    assert alone.shape[1] == len(encoder.words("The cat plays in the garden .")) == 7
    assert alone.shape[0] == {"static": 1, "elmo": 3, "bert": 3}[encoder.kind]
    torch.testing.assert_close(torch.from_numpy(alone), torch.from_numpy(company), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_stopped_and_resumed_ends_with_the_same_weights_to_the_bit(kind: str, corpus: Path, tmp_path: Path) -> None:
    pretrain(kind, corpus, tmp_path / "whole")
    for place in (2, 4):
        resume = place > 2
        events = headstart.pretrain(
            kind,
            [] if resume else corpus,
            out=tmp_path / "parts",
            settings={} if resume else TINY[kind]["settings"],
            size=None if resume else TINY[kind].get("size"),
            steps=None if resume else 6,
            resume=resume,
        )
        for event in events:
            if isinstance(event, Step) and event.number == place:
                break
        events.close()
    assert "Not finished" in (tmp_path / "parts" / "CARD.md").read_text()
    *_, finished = headstart.pretrain(kind, out=tmp_path / "parts", resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    steps = [json.loads(line).get("step") for line in (tmp_path / "parts" / "log.jsonl").read_text().splitlines()]
    assert steps == [0, 1, 2, 3, 4, 5, 6, None]
    assert finished.steps == 6


@pytest.mark.parametrize("kind", ["skipgram", "elmo", "bert"])
def test_killed_at_random_moments_ends_with_the_same_weights_to_the_bit(
    kind: str, corpus: Path, tmp_path: Path
) -> None:
    """SIGKILL, again and again, at moments drawn over the whole run, its start and its writing included."""
    options = TINY[kind]
    settings = [f"{key}={value}" for key, value in {**options["settings"], "training.save_seconds": 0}.items()]
    size = ["--size", options["size"]] if "size" in options else []
    command = [sys.executable, "-m", "headstart", "pretrain", kind if size else "static", str(corpus), *size, "--quiet"]
    command += ["--steps", "40", *(part for setting in settings for part in ("--set", setting))]

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, "--out", str(out), "--resume"])

    began = time.monotonic()
    assert start(tmp_path / "whole").wait() == 0
    whole_took = time.monotonic() - began
    rng = random.Random(kind)
    for _ in range(int(os.environ.get("HEADSTART_KILLS", "3"))):
        process = start(tmp_path / "killed")
        time.sleep(rng.uniform(0.3, 0.95) * whole_took)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed").wait() == 0
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))


def test_a_half_copied_checkpoint_falls_back_to_the_one_before_and_still_ends_the_same(
    corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = {**TINY["bert"]["settings"], "training.save_seconds": 0.0}
    for event in headstart.pretrain("bert", corpus, out=run, size="tiny", steps=6, settings=settings):
        if isinstance(event, Step) and event.number == 4:
            break
    newest = max((run / "state").glob("step-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:1000])
    events = list(headstart.pretrain("bert", out=run, resume=True))
    assert any(isinstance(event, Notice) and "one before it" in event.text for event in events)
    pretrain("bert", corpus, tmp_path / "whole", settings={"training.save_seconds": 0.0})
    assert same(weights(tmp_path / "whole"), weights(run))


def test_same_seed_same_run_and_another_seed_another(corpus: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        pretrain("bert", corpus, tmp_path / name, seed=seed)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_a_second_run_reuses_the_shards(corpus: Path, tmp_path: Path, home: Path) -> None:
    pretrain("bert", corpus, tmp_path / "a")
    before = {path: path.stat().st_mtime_ns for path in (home / "shards").rglob("*.ids")}
    copied = tmp_path / "another name.txt"
    shutil.copy(corpus, copied)
    pretrain("bert", copied, tmp_path / "b", seed=3)
    assert {path: path.stat().st_mtime_ns for path in (home / "shards").rglob("*.ids")} == before


def test_a_budget_ends_on_time(corpus: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    finished = pretrain("bert", corpus, tmp_path / "run", budget="6s")[-1]
    assert time.monotonic() - began < 8
    assert finished.elapsed < 7
    rates = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["rate"] for line in rates if "rate" in line][-1] < 0.3


def test_the_best_weights_are_kept(corpus: Path, tmp_path: Path) -> None:
    """A learning rate that ruins the model after a good start: the kept step is the best, and its score is final."""
    events = pretrain(
        "bert", corpus, tmp_path / "run", steps=30,
        settings={"optimizer.learning_rate": 0.3, "training.decay": "constant", "training.warmup": 1.0},
    )  # fmt: skip
    finished = events[-1]
    seen = {e.number: e.evaluation["perplexity"] for e in events if isinstance(e, Step) and e.evaluation}
    assert finished.kept_step == min(seen, key=seen.__getitem__)
    assert finished.scores["perplexity"] == pytest.approx(min(seen.values()), rel=1e-4)


def test_sizes_and_single_numbers_can_be_set(corpus: Path, tmp_path: Path) -> None:
    pretrain("bert", corpus, tmp_path / "run", settings={"encoder.layers": 3}, steps=1)
    assert headstart.load(tmp_path / "run").represent(["A dog ."])[0].shape[0] == 4


def test_forward_only_is_the_plain_language_model(corpus: Path, tmp_path: Path) -> None:
    finished = pretrain("elmo", corpus, tmp_path / "run", settings={"encoder.directions": "forward"})[-1]
    assert "backward_accuracy" not in finished.scores


def test_a_given_vocabulary_is_used(corpus: Path, tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    pretrain("bert", corpus, tmp_path / "run", settings={"tokenizer.path": str(tmp_path / "vocab.txt")}, steps=1)
    assert (tmp_path / "run" / "vocab.txt").read_text().split() == pieces


def test_config_files_and_their_order(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('size = "tiny"\nseed = 5\n[training]\nsteps = 9\nbatch = 64\n')
    events = headstart.pretrain(
        "bert", corpus, out=tmp_path / "run", config=tmp_path / "c.toml", steps=1, settings=["training.batch=256"]
    )
    list(events)
    saved = headstart.config.read_toml(tmp_path / "run" / "config.toml")
    assert (saved["seed"], saved["training"]["steps"], saved["training"]["batch"]) == (5, 1, 256)
    again = headstart.pretrain("bert", corpus, out=tmp_path / "again", config=tmp_path / "run" / "config.toml")
    list(again)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "again"))
    longer = headstart.pretrain("bert", corpus, out=tmp_path / "longer", config=tmp_path / "c.toml", epochs=0.1)
    *_, finished = longer
    assert finished.steps == 20, "a length given as a flag, a tenth of the 198 documents, takes the place of the file's"


def test_word_vectors_go_on_as_what_they_began_as(corpus: Path, tmp_path: Path) -> None:
    pretrain("glove", corpus, tmp_path / "run")
    *_, finished = headstart.pretrain("static", out=tmp_path / "run", resume=True)
    assert finished.steps == 6
    with pytest.raises(CheckpointError, match="cannot go on as cbow: this run is of kind glove"):
        headstart.pretrain("cbow", out=tmp_path / "run", resume=True)
    with pytest.raises(CheckpointError, match="cannot go on as bert: this run is of kind glove"):
        headstart.pretrain("bert", out=tmp_path / "run", resume=True)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_the_callers_generators_are_left_alone(kind: str, corpus: Path, tmp_path: Path) -> None:
    def state() -> tuple[bytes, object, str]:
        return torch.get_rng_state().numpy().tobytes(), random.getstate(), repr(np.random.get_state())

    before = state()
    vectors = {"vectors": str(tmp_path / "words")} if kind in ("elmo", "bert") else {}
    if vectors:
        pretrain("skipgram", corpus, tmp_path / "words", steps=1)
    pretrain(kind, corpus, tmp_path / "run", settings=vectors)
    assert state() == before


def test_a_run_of_a_few_steps_says_so_in_its_card(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "BUSY_SHARE", 0.0)  # a busy machine would be told, too
    text = tmp_path / "long.txt"
    text.write_text((corpus.read_text() + "\n") * 5)
    pretrain("bert", text, tmp_path / "short", steps=1, settings={"training.batch": 32})
    pretrain("bert", text, tmp_path / "longer", steps=20, settings={"training.batch": 32})
    short, longer = ((tmp_path / name / "CARD.md").read_text() for name in ("short", "longer"))
    assert re.search(r"\*\*Warning:\*\* It read 0\.\d+ % of the text once", short)
    assert "Finished." in longer
    assert "Warning" not in longer


def test_two_runs_cannot_start_in_one_folder(corpus: Path, tmp_path: Path) -> None:
    options = {**TINY["skipgram"], "cache": tmp_path / "cache"}
    first = headstart.pretrain("skipgram", corpus, out=tmp_path / "run", steps=6, **options)
    assert isinstance(next(first), Progress), "it is still reading the text"
    with pytest.raises(CheckpointError, match="another process is at work on this run"):
        pretrain("glove", corpus, tmp_path / "run")
    *_, finished = first
    assert finished.steps == 6
    assert "skipgram" in (tmp_path / "run" / "config.toml").read_text()


# Bad input: one clear sentence each, and nothing left behind.


def refuses(match: str, error: type[Exception], kind: str, text: Any, out: Path, **options: Any) -> None:
    before = sorted(out.parent.rglob("*"))
    with pytest.raises(error, match=match) as caught:
        pretrain(kind, text, out, **options)
    assert "\n" not in str(caught.value)
    assert sorted(out.parent.rglob("*")) == before


def test_missing_empty_and_not_utf8_files(tmp_path: Path) -> None:
    out = tmp_path / "run"
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes("caf\xe9 au lait\n".encode("latin-1"))
    refuses("none.txt", DataError, "bert", tmp_path / "none.txt", out)
    refuses("no text", DataError, "bert", tmp_path / "empty.txt", out)
    refuses("UTF-8", DataError, "bert", tmp_path / "latin.txt", out)
    refuses("no text to learn from", ConfigError, "bert", [], out)


def test_one_document_says_what_to_do(tmp_path: Path) -> None:
    text = tmp_path / "one.txt"
    text.write_text("The cat likes the film .\nA dog watches it .\n" * 9)
    pairs = {"objective.nsp": True}
    refuses(r"1 document.*--one-per-line.*--no-nsp", DataError, "bert", text, tmp_path / "run", settings=pairs)
    assert pretrain("bert", text, tmp_path / "run")[-1].steps == 6


def test_the_sizes_of_minutes_differ_from_the_published_ones() -> None:
    tiny, base = (OBJECTIVES["bert"].defaults(size, {}) for size in ("tiny", "base"))
    assert tiny["objective"] == {"nsp": False, "length": 64, "mask_rate": 0.2}
    assert (tiny["attention"], base["attention"]) == ("local", "random")
    assert "objective" not in base
    assert "most" not in OBJECTIVES["bert"].defaults("tiny", {"tokenizer": {"size": 500}})["tokenizer"]


@pytest.mark.parametrize("kind", ["skipgram", "elmo", "bert"])
def test_a_review_per_line_is_recognised_recorded_and_can_be_overruled(kind: str, tmp_path: Path) -> None:
    text = tmp_path / "reviews.txt"
    text.write_text("The cat likes the film . It was long .\nA dog watches it . Nobody sings .\n" * 100)
    events = pretrain(kind, text, tmp_path / "run")
    said = [event.text for event in events if isinstance(event, Notice)]
    assert any("200 lines" in notice and "--no-one-per-line" in notice for notice in said)
    saved = read_toml(tmp_path / "run" / "config.toml")
    assert saved["text"]["one_per_line"] is True
    assert saved["data"]["documents"] == 198  # and two are held out
    pretrain(kind, text, tmp_path / "one", settings={"text.one_per_line": False})
    saved = read_toml(tmp_path / "one" / "config.toml")
    assert (saved["text"]["one_per_line"], saved["data"]["documents"]) == (False, 1)
    list(headstart.pretrain(kind, out=tmp_path / "one", resume=True))  # a recorded false stays false


@pytest.mark.parametrize("kind", ["skipgram", "elmo", "bert"])
def test_a_vocabulary_larger_than_the_text_supports(kind: str, corpus: Path, tmp_path: Path) -> None:
    refuses(r"20,000.*tokenizer\.size", DataError, kind, corpus, tmp_path / "run", settings={"tokenizer.size": 20_000})


def test_wrong_keys_sizes_and_kinds(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    refuses(
        r"Unknown key 'layer' in \[encoder\]\. Did you mean 'layers'",
        ConfigError,
        "bert",
        corpus,
        out,
        settings={"encoder.layer": 3},
    )
    refuses(r"No BERT size called 'minni'\. Did you mean 'mini'", ConfigError, "bert", corpus, out, size="minni")
    refuses(r"encoder\.width must divide evenly", ConfigError, "bert", corpus, out, settings={"encoder.heads": 3})
    refuses("exclude each other", ConfigError, "bert", corpus, out, steps=3, budget="10m")
    refuses("such as 90s, 10m", ConfigError, "bert", corpus, out, budget="soon")
    with pytest.raises(ConfigError, match=r"No encoder called 'brt'\. Did you mean 'bert'"):
        headstart.pretrain("brt", corpus, out=out)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("skipgram", {"epochs": math.nan}, r"'training\.epochs'"),
        ("skipgram", {"epochs": math.inf}, r"'training\.epochs'.*finite"),
        ("skipgram", {"epochs": -1.0}, r"'training\.epochs'.*greater than 0"),
        ("bert", {"budget": "0"}, r"'training\.budget'.*greater than 0"),
        ("bert", {"steps": 0}, r"'training\.steps'.*greater than or equal to 1"),
        ("bert", {"settings": {"objective.mask_rate": math.nan}}, r"'objective\.mask_rate'"),
        ("bert", {"settings": {"objective.mask_rate": 1.5}}, r"'objective\.mask_rate'.*less than 1"),
        ("bert", {"settings": {"objective.mask_rate": 1.0}}, r"'objective\.mask_rate'.*less than 1"),
        ("bert", {"settings": {"objective.mask_rate": 0.0}}, r"'objective\.mask_rate'.*greater than 0"),
        ("bert", {"settings": {"objective.mask_rate": -3.0}}, r"'objective\.mask_rate'.*greater than 0"),
        ("bert", {"settings": {"optimizer.learning_rate": math.nan}}, r"'optimizer\.learning_rate'"),
        ("bert", {"settings": {"optimizer.learning_rate": math.inf}}, r"'optimizer\.learning_rate'.*finite"),
        ("bert", {"settings": {"optimizer.learning_rate": -1.0}}, r"'optimizer\.learning_rate'.*greater than 0"),
        ("elmo", {"settings": {"optimizer.beta1": 2.0}}, r"'optimizer\.beta1'.*less than 1"),
        ("skipgram", {"settings": {"objective.dim": 10**9}}, r"needs [\d,]+ GB of memory .* but [\d.]+ GB"),
        ("glove", {"settings": {"objective.dim": 10**9}}, r"needs [\d,]+ GB of memory .* but [\d.]+ GB"),
        ("bert", {"settings": {"encoder.width": 10**6, "encoder.heads": 2}}, r"needs [\d,]+ GB of memory"),
    ],
)
def test_numbers_out_of_bounds(kind: str, options: dict[str, Any], says: str, corpus: Path, tmp_path: Path) -> None:
    refuses(says, ConfigError, kind, corpus, tmp_path / "run", **options)


def test_resume_where_there_is_nothing(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"new: there is no run to resume in this folder"):
        headstart.pretrain("bert", out=tmp_path / "new", resume=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("place", ["log.jsonl", "state/step-000000006.safetensors", "state/step-000000006.json"])
def test_resume_where_a_file_became_a_folder(place: str, corpus: Path, tmp_path: Path) -> None:
    pretrain("skipgram", corpus, tmp_path / "run")
    (tmp_path / "run" / place).unlink()
    (tmp_path / "run" / place).mkdir()
    with pytest.raises(CheckpointError, match=Path(place).name) as caught:
        list(headstart.pretrain("skipgram", out=tmp_path / "run", resume=True))
    assert "\n" not in str(caught.value)


def test_resume_with_a_changed_config_or_text(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain("bert", corpus, run)
    with pytest.raises(CheckpointError, match=r"cannot change 'training\.steps': the run began with 6, got 7"):
        headstart.pretrain("bert", out=run, resume=True, steps=7)
    with pytest.raises(CheckpointError, match=r"cannot change 'encoder\.layers'"):
        headstart.pretrain("bert", out=run, resume=True, settings={"encoder.layers": 9})
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text() + "\nMore .\n")
    with pytest.raises(CheckpointError, match="its checksum differs"):
        list(headstart.pretrain("bert", other, out=run, resume=True))
    with pytest.raises(CheckpointError, match="already holds a run"):
        pretrain("bert", corpus, run)


def test_a_folder_that_is_not_a_run(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="not a run directory"):
        headstart.pretrain("bert", corpus, out=tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="nothing in this folder can be opened; wanted a run directory"):
        headstart.load(tmp_path)


def test_weights_that_do_not_fit_are_refused(corpus: Path, tmp_path: Path) -> None:
    pretrain("bert", corpus, tmp_path / "run", steps=1)
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("layers = 2", "layers = 3"))
    (tmp_path / "run" / SUMS).unlink()
    with pytest.raises(CheckpointError, match=r"does not fit its config\.toml"):
        headstart.load(tmp_path / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="a full disk is made by mounting a small tmpfs, which needs root")
@pytest.mark.parametrize("megabytes", [1, 3])
def test_a_full_disk_is_one_sentence_and_loses_nothing(corpus: Path, tmp_path: Path, megabytes: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", disk], check=False)
    if mounted.returncode:
        pytest.skip("this system does not let root mount a tmpfs")
    try:
        settings = {"encoder.width": 128, "training.save_seconds": 0.0}
        with pytest.raises(CheckpointError, match=r"No space left on device|cannot be written"):
            pretrain("bert", corpus, disk / "run", steps=4, settings=settings)
        assert not list(disk.rglob("*.partial"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_word_vectors_are_trained_by_one_process(corpus: Path, tmp_path: Path, in_threads: Any) -> None:
    def work(ranks: Any) -> None:
        if ranks.launch.is_first:
            with pytest.raises(ConfigError, match=r"trained by one process.*torchrun started 2"):
                headstart.pretrain("skipgram", corpus, out=tmp_path / "run", ranks=ranks)

    in_threads(2, work)
    assert not (tmp_path / "run").exists()
