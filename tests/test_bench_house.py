"""From finished runs to the folders of the package: what is written, what is printed, and what is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bench", reason="bench/ is importable from the repository's folder only")

from bench import house as script

import headstart
from headstart.atomic import sha256_of
from headstart.config import to_toml
from headstart.weights.catalogue import entry_of

RECIPES: dict[str, dict[str, Any]] = {
    "words-mini": {"tokenizer": {"most": 50, "min_count": 1}, "objective": {"dim": 8}, "training": {"steps": 5}},
    "elmo-mini": {
        "size": "tiny",
        "vectors": "words-mini",
        "encoder": {"cell": 16, "projection": 8},
        "training": {"steps": 3, "batch": 200},
    },
    "bert-mini": {
        "size": "tiny",
        "encoder": {"width": 16, "inner": 32},
        "objective": {"length": 32, "nsp": False},
        "training": {"steps": 3, "batch": 256},
    },
}


@pytest.fixture(scope="module")
def made(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """recipes/, and in runs/ what they make of the corpus."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "recipes").mkdir()
    for name, recipe in RECIPES.items():
        (folder / "recipes" / f"{name}.toml").write_text(to_toml(recipe))
        start = {"vectors": str(folder / "runs" / recipe["vectors"])} if "vectors" in recipe else {}
        path = folder / "recipes" / f"{name}.toml"
        list(headstart.pretrain(script.MODELS[name], corpus, out=folder / "runs" / name, config=path, settings=start))
    return folder


def run(made: Path, out: Path, corpus: Path, *options: str) -> int:
    places = ["--runs", made / "runs", "--recipes", made / "recipes", "--out", out, "--held-out", corpus]
    return script.main([*map(str, places), "--text", "Made-up sentences.", "--licence", "CC0", *options])


def test_three_runs_become_folders_with_cards_and_entries_of_the_catalogue(
    made: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(made, tmp_path / "house", corpus) == 0
    printed = capsys.readouterr()
    table = tomllib.loads(printed.out)
    assert list(table) == list(script.MODELS)
    for name, fields in table.items():
        entry, folder = entry_of(name, fields), tmp_path / "house" / name
        assert entry.package == f"house/{name}"
        assert entry.kind == headstart.load(folder).kind == script.MODELS[name]
        assert entry.files == {path.name: sha256_of(path) for path in folder.iterdir()}
        assert entry.size == sum(path.stat().st_size for path in folder.iterdir())
        card = (folder / "CARD.md").read_text(encoding="utf-8")
        for part in (
            "**Text**: Made-up sentences. (",
            "**Licence**: CC0",
            f"--config recipes/{name}.toml`",
            "as it is here",
        ):
            assert part in card
        for path in ("config.toml", "CARD.md"):
            assert str(made) not in (folder / path).read_text(encoding="utf-8")
        assert f"{name}: the matrices are int8" in printed.err
    assert "bytes in all.\n" in printed.err


def test_more_than_the_package_has_room_for_is_told(
    made: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "MOST_BYTES", 1_000)
    assert run(made, tmp_path / "house", corpus, "--only", "words-mini") == 1
    assert "more than the 1,000 that the package has room for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"training": {"steps": 4}}, "'training.steps' is 3, and .*gives 4"),
        ({"vectors": "glove-50d"}, "'vectors' is 'words-mini', and .*gives 'glove-50d'"),
        ({"tokenizer": {"most": 10}}, "has a vocabulary of .*gives 10"),
    ],
)
def test_a_run_that_its_recipe_did_not_make_is_refused(
    changed: dict[str, Any], says: str, made: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = RECIPES["elmo-mini"]
    tables = {key: {**recipe[key], **value} for key, value in changed.items() if isinstance(recipe.get(key), dict)}
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "elmo-mini.toml").write_text(to_toml({**recipe, **changed, **tables}))
    options = ("--only", "elmo-mini", "--recipes", str(tmp_path / "recipes"))
    assert run(made, tmp_path / "house", corpus, *options) == 2
    assert re.search(says, capsys.readouterr().err)
    assert not (tmp_path / "house").exists()
