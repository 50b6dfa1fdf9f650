"""Every recipe is a configuration that resolves, and every key of the configuration stands in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from headstart.config import Section, overlay, read_toml, resolve
from headstart.pretraining.objectives import OBJECTIVES
from headstart.transfer.config import TransferConfig

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_resolve(path: Path) -> None:
    kind = {"bert": "bert", "elmo": "elmo", "word2vec": "skipgram"}[path.stem.split("-")[0]]
    given = read_toml(path)
    defaults = OBJECTIVES[kind].defaults(None, given)
    defaults["training"].pop("epochs", None)
    resolve(OBJECTIVES[kind].config, overlay(defaults, given))


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
