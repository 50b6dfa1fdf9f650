"""The command line as its user meets it: a process, its two streams and its exit code."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.served import free_port, wait_until_ready

from headstart.tasks.coref_writers import columns_of
from headstart.tasks.role_writers import RoleColumns
from headstart.tasks.roles import Roles
from headstart.tasks.squad import squad_json
from headstart.tasks.srl import Srl

TINY = ["--size", "tiny", "--set", "encoder.width=16", "--set", "encoder.inner=32", "--set", "objective.length=32"]
ROOT = Path(__file__).parents[2]


def headstart(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headstart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_log_gets_plain_lines_in_order(corpus: Path, tmp_path: Path) -> None:
    done = headstart("pretrain", "bert", corpus, "--out", tmp_path / "run", *TINY, "--steps", "10")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    order = ["parameters, vocabulary", "needs about", "before training", "Measured over 5 steps", "step 10", "Done in"]
    places = [done.stderr.index(text) for text in order]
    assert places == sorted(places)
    assert re.search(r"Measured over 5 steps: [\d,]+ tokens/s, about .* left", done.stderr)


def test_quiet_is_silent(corpus: Path, tmp_path: Path) -> None:
    done = headstart("pretrain", "bert", corpus, "--out", tmp_path / "run", *TINY, "--steps", "2", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pretrain", "bert", "none.txt", "--out", "run"], "none.txt"),
        (["pretrain", "bert", "--out", "run"], "no text to learn from"),
        (["pretrain", "bert", "--out", "run", "--resume"], "run: there is no run to resume in this folder"),
        (["pretrain", "static", "{corpus}", "--out", "run", "--epochs", "nan"], "training.epochs"),
        (["pretrain", "static", "{corpus}", "--out", "run", "--dim", "1000000000"], "GB of memory"),
        (["pretrain", "bert", "{corpus}", "--out", "run", "--mask-rate", "-3"], "objective.mask_rate"),
        (["pretrain", "bert", "{corpus}", "--out", "run", "--budget", "0"], "training.budget"),
        (["pretrain", "bert", "{corpus}", "--out", "run", "--set", "encoder.layer=3"], "Did you mean 'layers'?"),
        (["pretrain", "bert", "{corpus}", "--out", "run", "--size", "hug"], "No BERT size called 'hug'"),
        (["pretrain", "static", "{corpus}", "--out", "run", "--method", "skipgramm"], "Did you mean 'skipgram'?"),
        (["pretrain", "elmo", "{corpus}", "--out", "run", "--directions", "backward"], "encoder.directions"),
        (["pretrain", "bert", "{corpus}", "--out", "run", "--config", "none.toml"], "no such configuration file"),
        (["pretrain", "bert", "{corpus}", "--out", "{corpus}"], "is a file"),
        (["neighbours", "none", "play"], "no such file or folder"),
    ],
)
def test_what_a_user_caused_is_one_line_and_exit_code_two(
    arguments: list[str], says: str, corpus: Path, tmp_path: Path
) -> None:
    done = headstart(*(argument.replace("{corpus}", str(corpus)) for argument in arguments), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("headstart: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_saves_and_resume_ends_like_a_run_never_stopped(corpus: Path, tmp_path: Path) -> None:
    arguments = ["pretrain", "bert", corpus, *TINY, "--steps", "60"]
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "headstart", *map(str, arguments), "--out", str(run), "--quiet"], stderr=subprocess.PIPE
    )
    while not (run / "log.jsonl").exists() or (run / "log.jsonl").stat().st_size < 600:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")
    steps = json.loads(max((run / "state").glob("step-*.json")).read_text())["steps"]
    assert 0 < steps < 60
    done = headstart("pretrain", "bert", "--out", run, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"Going on from step {steps:,}." in done.stderr
    assert headstart(*arguments, "--out", tmp_path / "whole", "--quiet").returncode == 0
    assert (run / "weights.safetensors").read_bytes() == (tmp_path / "whole" / "weights.safetensors").read_bytes()


def test_neighbours_of_a_word_and_of_a_word_in_a_sentence(corpus: Path, tmp_path: Path) -> None:
    for kind, flags in (("static", ["--dim", "8"]), ("bert", TINY)):
        assert headstart("pretrain", kind, corpus, "--out", tmp_path / kind, *flags, "--steps", "3").returncode == 0
    words = headstart("neighbours", tmp_path / "static", "film", "--most", "3").stdout.splitlines()
    assert len(words) == 3
    assert all(re.fullmatch(r" *-?\d\.\d{3}  \S+", line) for line in words)
    refused = headstart("neighbours", tmp_path / "bert", "film")
    assert (refused.returncode, "depends on its sentence" in refused.stderr) == (2, True)
    options = ("--among", corpus, "--static", tmp_path / "static", "--words", "500", "--quiet")
    found = headstart("neighbours", tmp_path / "bert", "Nobody likes the [film] .", *options)
    title, *occurrences, blank, static_title = found.stdout.splitlines()[:11]
    assert title.startswith("bert, layer 2: nearest of 50")
    assert all(re.fullmatch(r" *-?\d\.\d{3}  .*\[\w+\].*", line) for line in occurrences)
    assert (len(occurrences), blank) == (8, "")
    assert static_title == "static: nearest words to 'film', whatever its sentence"
    assert found.stdout.splitlines()[11:14] == words


SHORT = {
    "pretrain": ["--steps", "2", "--set", "tokenizer.min_count=1"],
    "transfer": ["--seeds", "1", "--set", "fitting.min_steps=2", "--set", "fitting.epochs=0.1"],
    "compare": ["--seeds", "1", "--set", "transfer.fitting.min_steps=2", "--set", "transfer.fitting.epochs=0.1"]
    + [f"--set=pretrain.{kind}.training.steps=2" for kind in ("static", "elmo", "bert")]
    + ["--set=pretrain.static.tokenizer.min_count=1"],
}


def test_the_readmes_commands_run(
    corpus: Path,
    labelled: tuple[Path, Path],
    pretrained_runs: dict[str, Path],
    tiny_examples: dict[str, list[Any]],
    tmp_path: Path,
) -> None:
    """In their order, on a small text and for a few steps; everything else as it stands there.

    What would be downloaded is there already: a folder wins over a name of the catalogue.
    """
    shutil.copytree(pretrained_runs["bert"], tmp_path / "minilm")
    shutil.copy(corpus, tmp_path / "reviews.txt")
    for name, source in (("train", labelled[0]), ("dev", labelled[1]), ("test", labelled[1])):
        shutil.copy(source, tmp_path / f"{name}.csv")
        (tmp_path / f"{name}.conll").write_text("In O\nRome B-LOC\n\n" * 12)
    pairs = [{"gold_label": e.label, "sentence1": e.first, "sentence2": e.second} for e in tiny_examples["pair"]]
    for name in ("train", "dev"):
        (tmp_path / f"snli_{name}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
        (tmp_path / f"{name}-v1.1.json").write_text(json.dumps(squad_json(tiny_examples["qa"], "1.1")))
        chains = [columns_of(document, document.chains) for document in tiny_examples["coref"]]
        (tmp_path / f"coref_{name}.conll").write_text("".join(chains))
        roles = [(sentence, Roles(sentence.predicates)) for sentence in tiny_examples["srl"]]
        (tmp_path / f"{name}.gold_conll").write_text(RoleColumns(Srl.learn(tiny_examples["srl"])).lines(roles))
    (tmp_path / "report.txt").write_text("It was signed in Rome .\nAda signed it .\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:(?:echo|printf) .* \| )?headstart (.*)", readme, re.M)
    assert {command.split()[0] for command in commands} == {
        *("pretrain", "transfer", "evaluate", "compare", "predict", "export"),
        *("reproduce", "probe", "fill", "next", "serve"),
    }
    for command in commands:
        words = shlex.split(command.replace("--budget 1h", "").replace("50,200,1000", "10,20"), comments=True)
        words = ["tiny" if word == "mini" else word for word in words]
        if words[0] == "serve":  # it runs until it is stopped, and serves what the other commands made
            continue
        given = "A man sleeps .\tNobody is awake .\n" if "runs/nli" in words else "A warm film .\n"
        done = headstart(*words, *SHORT.get(words[0], []), cwd=tmp_path, input=given)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    (serve,) = (shlex.split(command, comments=True) for command in commands if command.startswith("serve"))
    serves_until_stopped(*serve, cwd=tmp_path)
    assert (tmp_path / "compared" / "report.html").exists()


def serves_until_stopped(*arguments: str, cwd: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "headstart", *arguments, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=cwd) as process:
        wait_until_ready(port)
        process.send_signal(signal.SIGTERM)
    assert process.returncode in (0, -signal.SIGTERM)


def test_help_names_every_command_and_docs_name_every_option() -> None:
    documents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    documents += (ROOT / "README.md").read_text(encoding="utf-8")
    top = headstart("--help").stdout
    with_labels = ("transfer", "evaluate", "predict", "compare", "demo")
    single = (*with_labels, "reproduce", "get", "import", "export", "encode", "fill", "next", "score", "similarity")
    single += ("neighbours", "senses", "probe", "layers", "attend")
    assert all(command in top for command in ("pretrain", *single))
    for command in (["pretrain", "static"], ["pretrain", "elmo"], ["pretrain", "bert"], *([name] for name in single)):
        shown = headstart(*command, "--help", env={"COLUMNS": "200", "PATH": ""}).stdout
        options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}
        assert len(options) >= 2
        missing = [option for option in sorted(options) if option not in documents]
        assert not missing, f"{' '.join(command)}: {missing} stand in no document"
