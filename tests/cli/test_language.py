"""`headstart fill`, `next`, `score` and `similarity` as their user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import headstart

MASKS = "nobody [MASK] the [MASK] ."


def test_one_mask_gives_a_line_for_each_word(cli: Any, pretrained_runs: dict[str, Path]) -> None:
    found = headstart.load(pretrained_runs["bert"]).fill("nobody [MASK] it .", 3)
    done = cli("fill", pretrained_runs["bert"], "nobody [MASK] it .", "--most", "3", "--quiet")
    assert done.stdout.splitlines() == [f"{100 * one.probability:5.1f} %  {one.piece}" for one in found.alone[0]]


def test_several_masks_alone_and_together(cli: Any, pretrained_runs: dict[str, Path]) -> None:
    found = headstart.load(pretrained_runs["bert"]).fill(MASKS, 2, pieces=2)
    arguments = ["fill", pretrained_runs["bert"], MASKS, "--most", "2", "--pieces", "2", "--quiet"]
    lines = cli(*arguments).stdout.splitlines()
    assert [lines[0], lines[4]] == ["[MASK] 1 alone:", "[MASK] 2 alone:"]
    assert lines[8].split() == ["together", "log", "p", "per", "piece", "pieces"]
    assert [line.split("  ")[0] for line in lines[9:]] == [", ".join(one.words) for one in found.together]
    assert "##" not in "".join(lines)
    assert json.loads(cli(*arguments, "--json").stdout) == found.as_table()


def test_next_goes_on_with_a_text(cli: Any, pretrained_runs: dict[str, Path]) -> None:
    elmo = headstart.load(pretrained_runs["elmo"])
    arguments = ["next", pretrained_runs["elmo"], "nobody likes", "--quiet"]
    assert cli(*arguments, "--generate", "5").stdout == f"{elmo.generate('nobody likes', 5).text}\n"
    drawn = elmo.generate("nobody likes", 5, backward=True, temperature=1.0, seed=3)
    backward = [*arguments, "--generate", "5", "--backward", "--seed", "3"]
    assert json.loads(cli(*backward, "--sample", "--json").stdout) == drawn.as_table()
    assert cli(*backward, "--temperature", "1").stdout == f"{drawn.text}\n"
    assert json.loads(cli(*arguments, "--json").stdout) == elmo.next_words("nobody likes").as_table()
    assert "are for --generate N" in cli.refusal(*arguments, "--sample")


def test_score_gives_a_line_for_each_sentence_and_all_of_them(
    cli: Any, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat likes songs .\n\nnobody\n")
    for kind, title, columns in (
        ("elmo", "perplexity per word", "forward +backward +words +unknown"),
        ("bert", "pseudo-perplexity", "per piece +per word +pieces +words +unknown"),
    ):
        found = headstart.load(pretrained_runs[kind]).score(["the cat likes songs .", "", "nobody"])
        lines = cli("score", pretrained_runs[kind], "--in", text, "--quiet").stdout.splitlines()
        assert lines[0].startswith(title)
        assert re.fullmatch(f" +line +{columns}", lines[1])
        assert [line.split()[0] for line in lines[2:5]] == ["1", "3", "all"]
        assert lines[2].split()[1] == found.lines[0].score.cells()[0]
        assert lines[4].split()[1:] == list(found.total.score.cells())
        assert lines[-1] == "Lines without a word: 1."
        written = cli("score", pretrained_runs[kind], "--in", "-", "--json", "--quiet", input=text.read_text()).stdout
        rows = [json.loads(line) for line in written.splitlines()]
        assert rows == [*(pytest.approx(line.as_table()) for line in found.lines), found.total.as_table()]


def test_similarity_gives_a_row_for_each_layer_and_a_picture(
    cli: Any, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("film\tmusic\t3\ncat\tdog\t5\nfilm\tzzz\t1\nactor\tfriend\t2\nold\tnew\t4\n")
    arguments = ["similarity", pretrained_runs["static"], "--data", pairs, "--quiet"]
    head, columns, row, left_out = cli(*arguments, "--plot", tmp_path / "a.svg").stdout.splitlines()
    assert head == "static: 4 of 5 pairs of words"
    assert re.fullmatch("layer +Spearman's rho +95 % interval", columns)
    assert re.fullmatch(r"0 +-?\d\.\d{3} +-?\d\.\d{3} to -?\d\.\d{3}", row)
    assert left_out == "Left out, as nothing is known of one of their texts: 1 pairs."
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1
    arguments[1] = pretrained_runs["elmo"]
    found = headstart.load(pretrained_runs["elmo"]).similarity(pairs, layers=1, seed=2)
    assert json.loads(cli(*arguments, "--layers", "1", "--seed", "2", "--json").stdout) == found.as_table()
    assert "ending .svg, .png or .pdf" in cli.refusal(*arguments, "--plot", tmp_path / "a.txt")
    assert "must differ" in cli.refusal(*arguments, "--text-field", "a", "--second-field", "a")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fill", "{elmo}", "a [MASK]"], "only a BERT fills in hidden pieces"),
        (["next", "{bert}", "a"], "only an ELMo predicts the next word"),
        (["score", "{static}", "--in", "-"], "only a language model scores sentences"),
        (["score", "{elmo}", "--in", "none.txt"], "none.txt"),
        (["similarity", "{elmo}", "--data", "none.txt"], "none.txt: there is no such file"),
    ],
)
def test_who_cannot_says_so(cli: Any, pretrained_runs: dict[str, Path], arguments: list[str], says: str) -> None:
    runs = {f"{{{kind}}}": str(run) for kind, run in pretrained_runs.items()}
    assert says in cli.refusal(*(runs.get(argument, argument) for argument in arguments), "--quiet")
