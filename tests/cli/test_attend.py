"""`headstart attend` as its user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import CommandLine

TEXT = "Nobody likes the film ."


def test_a_cell_for_each_head(cli: CommandLine, pretrained_runs: dict[str, Path]) -> None:
    lines = cli("attend", pretrained_runs["bert"], TEXT, "--quiet").stdout.splitlines()
    assert lines[0].startswith("bert: what each head")
    assert lines[1].split() == ["layer", "1", "2"]
    for number, line in enumerate(lines[2:4], start=1):
        assert re.fullmatch(rf" *{number}( +[CS<=>*]\d+){{2}}", line)
    assert lines[5].split()[:2] == ["most", "to"]
    assert len(lines) == 10


def test_one_layer_and_one_head_in_detail(cli: CommandLine, pretrained_runs: dict[str, Path]) -> None:
    shares = cli("attend", pretrained_runs["bert"], TEXT, "--layer", "2", "--quiet").stdout.splitlines()
    assert shares[1].split()[:4] == ["layer", "head", "[CLS]", "[SEP]"]
    assert [row.split()[:2] for row in shares[2:]] == [["2", "1"], ["2", "2"]]
    words = cli("attend", pretrained_runs["bert"], TEXT, "--layer", "2", "--head", "1", "--quiet").stdout.splitlines()
    assert words[0] == "bert, layer 2, head 1: the share of attention in %"
    assert [row.split()[0] for row in words[2:]] == ["[CLS]", "Nobody", "likes", "the", "film", ".", "[SEP]"]


def test_json_a_picture_and_a_page(cli: CommandLine, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    picture, page = tmp_path / "heads.png", tmp_path / "heads.html"
    options = ["--plot", picture, "--html", page, "--json", "--quiet", "--pieces"]
    found = json.loads(cli("attend", pretrained_runs["bert"], "Nobody filmed it", *options).stdout)
    assert (found["layers"], found["heads"]) == ([1, 2], [1, 2])
    assert len(found["units"]) > 5  # the tiny vocabulary has pieces of filmed
    assert sum(found["probabilities"][1][0][2]) > 0.999
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert len(list(tmp_path.iterdir())) == 2


def test_refusals(cli: CommandLine, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    bert, text = pretrained_runs["bert"], [TEXT, "--quiet"]
    assert "bert-mini and minilm have them" in cli.refusal("attend", pretrained_runs["elmo"], *text)
    assert "no head 3" in cli.refusal("attend", bert, *text, "--head", "3")
    assert ".svg, .png or .pdf" in cli.refusal("attend", bert, *text, "--plot", tmp_path / "x.gif")
    assert list(tmp_path.iterdir()) == []
