from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from headstart.comparison.events import RowPretraining
from headstart.comparison.own_encoders import PRETRAINING, Recipe, check_recipe, pretrain_own, recipes
from headstart.errors import BudgetError, ConfigError
from headstart.pretraining.events import Finished
from headstart.pretraining.loop import Step
from headstart.pretraining.pretrain import Event
from headstart.progress import Notice


def seconds(kinds: set[str]) -> dict[str, float | None]:
    return {recipe.kind: recipe.seconds for recipe in recipes(kinds, 1000.0, {})}


def test_word_vectors_take_a_fifth_and_the_others_divide_the_rest() -> None:
    assert seconds({"bert", "elmo", "static"}) == pytest.approx({"static": 200.0, "elmo": 400.0, "bert": 400.0})
    assert seconds({"bert", "static"}) == pytest.approx({"static": 200.0, "bert": 800.0})
    assert seconds({"bert", "elmo"}) == pytest.approx({"elmo": 500.0, "bert": 500.0})
    assert seconds({"static"}) == pytest.approx({"static": 200.0})


def test_settings_reach_their_kind_and_a_length_replaces_the_time() -> None:
    given = {"text": {"one_per_line": True}, "bert": {"size": "mini", "training": {"steps": 3}}}
    elmo, bert = recipes({"elmo", "bert"}, 100.0, given)
    assert (elmo.size, elmo.settings, elmo.seconds) == ("tiny", {"text": {"one_per_line": True}}, 50.0)
    assert (bert.size, bert.seconds) == ("mini", None)
    assert bert.settings == {
        **PRETRAINING["bert"].settings,
        "text": {"one_per_line": True},
        "training": {"steps": 3},
    }


def test_language_models_start_from_the_word_vectors() -> None:
    static, elmo, bert = recipes({"static", "elmo", "bert"}, 100.0, {"elmo": {"vectors": "off"}}, Path("words"))
    assert "vectors" not in static.settings
    assert (elmo.settings["vectors"], bert.settings["vectors"]) == ("off", "words")


def test_settings_of_an_unknown_kind_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'bert'"):
        recipes({"bert"}, 100.0, {"bret": {}})


SMALL = {"tokenizer": {"min_count": 1}, "objective": {"dim": 8}}


def run(recipe: Recipe, corpus: Path, folder: Path) -> Generator[RowPretraining | Event, None, None]:
    return pretrain_own(recipe, [str(corpus)], folder / "static", cache=folder / "cache", workers=1)


def test_a_machine_too_slow_for_its_share_gets_more_time(corpus: Path, tmp_path: Path) -> None:
    events = list(run(Recipe("static", None, SMALL, seconds=0.3), corpus, tmp_path))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert any("leaves no time to train" in text and "Trying again with 1 s." in text for text in notices)
    assert isinstance(events[-1], Finished)
    assert (tmp_path / "static" / "weights.safetensors").exists()


def test_a_stop_after_more_time_was_given_is_gone_on_from(corpus: Path, tmp_path: Path) -> None:
    recipe = Recipe("static", None, SMALL, seconds=0.3)
    begun = run(recipe, corpus, tmp_path)
    while not isinstance(next(begun), Step):
        pass
    begun.close()
    check_recipe(recipe, [str(corpus)], tmp_path / "static")
    events = list(run(recipe, corpus, tmp_path))
    assert any(isinstance(event, Notice) and event.text.startswith("Going on from step") for event in events)
    assert isinstance(events[-1], Finished)


def test_a_time_of_the_users_own_is_not_lengthened(corpus: Path, tmp_path: Path) -> None:
    recipe = Recipe("static", None, {**SMALL, "training": {"budget": 0.3}}, seconds=None)
    with pytest.raises(BudgetError, match=r"such as --set pretrain\.static\.training\.budget="):
        list(run(recipe, corpus, tmp_path))
