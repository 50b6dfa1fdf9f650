from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest
from pydantic import model_validator

from headstart.config import (
    Section,
    assign,
    overlay,
    parse_assignment,
    pick,
    read_toml,
    resolve,
    settings_of,
    to_toml,
)
from headstart.errors import ConfigError


class Inner(Section):
    layers: int = 2
    name: str | None = None
    clip: float | None = 1.0
    budget: str | float | None = None

    @model_validator(mode="after")
    def both(self) -> Inner:
        if self.name is not None and self.budget is not None:
            raise ValueError("encoder.name and encoder.budget exclude each other")
        return self


class Outer(Section):
    encoder: Inner = Inner()
    seed: int = 0


def test_unknown_key_names_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"Unknown key 'layer' in \[encoder\]\. Did you mean 'layers'\?"):
        resolve(Outer, {"encoder": {"layer": 3}})


def test_unknown_key_without_a_near_one_lists_them_all() -> None:
    with pytest.raises(ConfigError, match="There are: encoder, seed"):
        resolve(Outer, {"zzz": 1})


def test_a_value_of_the_wrong_type_says_key_and_value() -> None:
    with pytest.raises(ConfigError, match=r"'encoder\.layers'.*integer.*got 'three'"):
        resolve(Outer, {"encoder": {"layers": "three"}})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", ["clip", "budget"])
def test_a_number_that_is_not_finite_is_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(Outer, {"encoder": {key: value}})
    assert str(caught.value) == f"'encoder.{key}' in the configuration: must be a finite number; got {value}."


def test_a_message_about_a_whole_section_does_not_print_the_section() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(Outer, {"encoder": {"name": "a", "budget": 3.0}})
    assert str(caught.value) == ("'encoder' in the configuration: encoder.name and encoder.budget exclude each other.")
    with pytest.raises(ConfigError, match=r"^In the configuration: encoder\.name and [^{]*\.$"):
        resolve(Inner, {"name": "a", "budget": 3.0})


def test_an_error_about_a_setting_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Unknown key"):
        resolve(Outer, {"zzz": 1})


def test_a_section_given_as_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="'encoder' is a section"):
        resolve(Outer, {"encoder": 3})


@pytest.mark.parametrize(
    ("text", "keys", "value"),
    [
        ("encoder.layers=3", ["encoder", "layers"], 3),
        ("a=0.5", ["a"], 0.5),
        ("a.b=true", ["a", "b"], True),
        ("a=mini", ["a"], "mini"),
        ('a="3"', ["a"], "3"),
        ("a=[1, 2]", ["a"], [1, 2]),
        ("path=x=y", ["path"], "x=y"),
    ],
)
def test_assignments_are_toml_or_else_strings(text: str, keys: list[str], value: object) -> None:
    assert parse_assignment(text) == (keys, value)


def test_an_assignment_without_equals_is_refused() -> None:
    with pytest.raises(ConfigError, match="--set takes SECTION"):
        parse_assignment("encoder.layers")


def test_assigning_below_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="'seed' is a value"):
        assign({"seed": 1}, ["seed", "x"], 2)


def test_overlay_merges_to_any_depth_and_leaves_its_arguments_alone() -> None:
    base = {"a": {"b": 1, "c": 2}, "d": 3}
    assert overlay(base, {"a": {"b": 9}}, {"d": 4}) == {"a": {"b": 9, "c": 2}, "d": 4}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


def test_toml_round_trip_with_awkward_strings() -> None:
    awkward = 'quote " back \\ tab \t line \n é 日 \x00\x1f\x7f' + "long " * 10_000
    table = {
        "s": awkward,
        "a key": 1,
        "dotted.key": 2,
        "n": 1,
        "f": 1e-05,
        "t": True,
        "l": ["a", "b"],
        "in": {"x": {"y": 2}},
    }
    assert tomllib.loads(to_toml({**table, "off": None})) == table


def test_a_missing_or_broken_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        read_toml(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("a = = 3")
    with pytest.raises(ConfigError, match="not a TOML file"):
        read_toml(broken)


@pytest.mark.parametrize(
    "text",
    ["a." * 100_000 + "b = 1", "a = " + "[" * 100_000, f"a = {'9' * 5_000}", f"a = {'y' * 300_000}", "a = '\x00'"],
    ids=lambda text: text[:6],
)
def test_a_damaged_file_is_one_sentence_at_once(text: str, tmp_path: Path) -> None:
    """tomllib needs minutes and gigabytes for the first of them."""
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match="not a TOML file"):
        read_toml(tmp_path / "config.toml")


def test_pick_suggests() -> None:
    with pytest.raises(ConfigError, match=r"No size called 'smal'\. Did you mean 'small'\?"):
        pick({"small": 1, "large": 2}, "smal", "size")


@pytest.mark.parametrize("clip", [None, 2.5])
def test_settings_round_trip_through_toml_even_where_none_is_not_the_default(clip: float | None) -> None:
    settings = Outer(encoder=Inner(clip=clip), seed=3)
    assert resolve(Outer, tomllib.loads(to_toml(settings_of(settings)))) == settings


def test_off_means_none() -> None:
    assert resolve(Outer, {"encoder": {"clip": "off"}}).encoder.clip is None
