"""`headstart senses` and `headstart neighbours` as their user meets them."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headstart.cli import neighbours, senses, sentence_lines
from headstart.cli.main import app
from headstart.errors import ConfigError
from headstart.inspection import occurrences, sense_clusters, sense_results

RUNNER = CliRunner()


def test_each_cluster_with_its_sentences_and_a_picture(
    pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "film.svg"
    asked = ["senses", str(pretrained_runs["elmo"]), "film", "--among", str(corpus), "--clusters", "2", "--most", "40"]
    done = RUNNER.invoke(app, [*asked, "--sentences", "2", "--plot", str(picture), "--quiet"])
    assert done.exit_code == 0, done.output
    title, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"elmo, layer 2: 40 of \d+ sentences with 'film', 2 clusters, silhouette -?0\.\d\d", title)
    heads = [line for line in rest if re.match(r"\d  ", line)]
    assert [head[0] for head in heads] == ["1", "2"]
    assert sum(int(re.search(r": (\d+) occurrences", head)[1]) for head in heads) == 40  # type: ignore[index]
    assert sum("[film]" in line for line in rest) == 4
    drawn = picture.read_text()
    assert "film in elmo, layer 2" in drawn
    as_json = json.loads(RUNNER.invoke(app, [*asked, "--json", "--quiet"]).stdout)
    assert [len(cluster["occurrences"]) for cluster in as_json["clusters"]] == [
        int(re.search(r": (\d+) occurrences", head)[1])  # type: ignore[index]
        for head in heads
    ]


def test_neighbours_as_json(pretrained_runs: dict[str, Path], corpus: Path) -> None:
    static = str(pretrained_runs["static"])
    words = json.loads(RUNNER.invoke(app, ["neighbours", static, "film", "--most", "2", "--json"]).stdout)
    assert (words["word"], len(words["neighbours"])) == ("film", 2)
    asked = ["neighbours", str(pretrained_runs["elmo"]), "the [film] .", "--among", str(corpus), "--words", "400"]
    for layer in (0, 2):
        options = ["--static", "off", "--layer", str(layer), "--json", "--quiet"]
        found = json.loads(RUNNER.invoke(app, [*asked, *options]).stdout)
        assert (found["layer"], found["static"], len(found["occurrences"])) == (layer, None, 8)
        for one in found["occurrences"]:
            assert one["sentence"][one["start"] : one["end"]] == one["word"]


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(
    pretrained_runs: dict[str, Path], corpus: Path
) -> None:
    asked = ["senses", str(pretrained_runs["elmo"]), "film", "--among", str(corpus), "--plot", "film.gif"]
    done = RUNNER.invoke(app, asked)
    assert isinstance(done.exception, ConfigError)
    assert "film.gif" in str(done.exception)


def test_a_marked_word_is_bold_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    sentence = "a b c d e f g h i j k l play m n o p q r s t u v w x y z"
    start = sentence.index("play")
    plain = sentence_lines.sentence_line(sentence, start, start + 4, indent=8)
    assert "[play]" in plain
    assert len(plain) <= 32
    monkeypatch.setattr(sentence_lines.sys, "stdout", type("Terminal", (), {"isatty": lambda self: True})())
    bold = sentence_lines.sentence_line(sentence, start, start + 4, indent=8)
    assert bold == plain.replace("[play]", typer.style("play", bold=True)) != plain


def test_defaults_are_those_of_the_functions() -> None:
    def default(command: object, option: str) -> object:
        return inspect.signature(command).parameters[option].default  # type: ignore[arg-type]

    assert default(neighbours.neighbours, "words") == occurrences.WORDS
    assert default(senses.senses, "most") == sense_clusters.MOST
    assert default(senses.senses, "shown") == sense_results.SHOWN
