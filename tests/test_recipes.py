"""Every recipe is a configuration that resolves, and every key of the configuration stands in the documents."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import headstart
from headstart.config import Section, overlay, read_toml, resolve
from headstart.pretraining.objectives import OBJECTIVES
from headstart.transfer.config import TransferConfig

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))
KINDS = {"bert": "bert", "elmo": "elmo", "word2vec": "skipgram", "words": "skipgram"}
HOUSE = ("words-mini", "elmo-mini", "bert-mini")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_resolve(path: Path) -> None:
    kind = KINDS[path.stem.split("-")[0]]
    given = read_toml(path)
    defaults = OBJECTIVES[kind].defaults(None, given)
    defaults["training"].pop("epochs", None)
    resolve(OBJECTIVES[kind].config, overlay(defaults, given))


@pytest.fixture(scope="module")
def greek(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    parts = ["η γάτα", "ο σκύλος", "κανείς"], ["αγαπά", "βλέπει", "ξεχνά"], ["την ταινία", "τον κήπο", "2 τραγούδια"]
    lines = [" ".join([*(rng.choice(part) for part in parts), "."]) for _ in range(300)]
    path = tmp_path_factory.mktemp("greek") / "text.txt"
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("names", [HOUSE, HOUSE[1:]], ids=["from its own word vectors", "from those of the package"])
def test_the_models_of_the_house_can_be_made_of_text_in_another_script(
    names: tuple[str, ...], greek: Path, house: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No recipe is changed but for its length: a text of another script shares at most numbers and marks."""
    monkeypatch.chdir(tmp_path)
    for name in names:
        recipe, kind = ROOT / "recipes" / f"{name}.toml", KINDS[name.split("-")[0]]
        *_, finished = headstart.pretrain(kind, greek, out=name, config=recipe, steps=2, cache=tmp_path / "cache")
        assert finished.scores["perplexity"] > 1
        assert "γάτα" in headstart.load(name).words("η γάτα αγαπά")


def keys_of(model: type[Section]) -> set[str]:
    keys: set[str] = set()
    for name, field in model.model_fields.items():
        inner = field.annotation
        is_section = isinstance(inner, type) and issubclass(inner, Section)
        keys |= keys_of(inner) if is_section else {name}
    return keys


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_every_setting_is_documented(kind: str) -> None:
    document = (ROOT / "docs" / "pretraining.md").read_text(encoding="utf-8")
    missing = {key for key in keys_of(OBJECTIVES[kind].config) - {"kind", "size", "seed"} if f"`{key}`" not in document}
    assert not missing


def test_every_setting_of_a_transfer_is_documented() -> None:
    document = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
    missing = {key for key in keys_of(TransferConfig) if f"`{key}`" not in document}
    assert not missing
