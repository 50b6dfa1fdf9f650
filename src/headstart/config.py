"""Settings: TOML tables and `--set a.b=c` are validated into frozen, strict models; typos get a suggestion."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from headstart.errors import ConfigError

OFF = "off"
DEEPEST = 50
DEEP_KEY = re.compile(rf"(?<![\w'\"-])(?:[\w'\"-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
"""tomllib takes minutes and gigabytes for the key of a damaged file that has thousands of parts."""
TYPE_TAGS = frozenset({"str", "int", "float", "bool", "none"})
Table = dict[str, Any]
Depth = Annotated[int, Field(ge=1, le=1_000)]
"""A number of layers, bounded far above any model: a damaged file can ask for more, and building that would hang."""
Width = Annotated[int, Field(ge=1, le=1 << 20)]
"""Of vectors, or a number of cells, filters or positions."""
ModelT = TypeVar("ModelT", bound="Section")
EntryT = TypeVar("EntryT")


class Section(BaseModel):
    """One table of the configuration, declared beside the code it configures. A field's docstring is its help text."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def cache_home() -> Path:
    """The cache folder for shards, vocabularies and downloads."""
    return Path(os.environ.get("HEADSTART_HOME") or Path.home() / ".cache" / "headstart")


def pick(table: Mapping[str, EntryT], name: str, kind: str) -> EntryT:
    """table[name], or a ConfigError that suggests the nearest name."""
    if name in table:
        return table[name]
    raise ConfigError(f"No {kind} called '{name}'.{nearest(name, table)}")


def nearest(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    return f" Did you mean '{near[0]}'?" if near else f" There are: {', '.join(known)}."


def read_toml(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8")
        if DEEP_KEY.search(text):
            raise ValueError(f"a key has more than {DEEPEST} parts")
        return tomllib.loads(text)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such configuration file.") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number too long, or tables too deep
        raise ConfigError(f"{path}: not a TOML file ({error}).") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """`encoder.layers=3` -> (["encoder", "layers"], 3). A value that is not valid TOML is taken as a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes SECTION.KEY=VALUE, such as encoder.layers=3; got '{text}'.")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    return key.strip().split("."), parsed


def assign(table: Table, keys: list[str], value: Any) -> None:
    """table[a][b] = value, in place; missing tables on the way are created."""
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"'{'.'.join(keys)}' cannot be set: '{key}' is a value, not a section.")
    table[keys[-1]] = value


def settings_table(settings: Mapping[str, Any] | Sequence[str]) -> Table:
    """{"a.b": 1} or ["a.b=1"] as the nested table {"a": {"b": 1}}."""
    table: Table = {}
    if isinstance(settings, Mapping):
        pairs = [(key.split("."), value) for key, value in settings.items()]
    else:
        pairs = [parse_assignment(text) for text in settings]
    for keys, value in pairs:
        assign(table, keys, value)
    return table


def overlay(base: Table, *others: Mapping[str, Any]) -> Table:
    """Merge tables recursively; later ones win."""
    merged = dict(base)
    for other in others:
        for key, value in other.items():
            both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = overlay(merged[key], value) if both_tables else value
    return merged


def resolve(model: type[ModelT], table: Table, where: str = "the configuration") -> ModelT:
    """Validate a table against a model; the first problem becomes a ConfigError of one sentence."""
    check_keys(model, table, [])
    try:
        return model.model_validate(without_off(table))
    except ValidationError as error:
        problems = error.errors()
        # A union reports each type that it tried; that a number is not finite says more than that it is no string.
        first = next((problem for problem in problems if problem["type"] == "finite_number"), problems[0])
        raise ConfigError(sentence(first, where)) from error


def sentence(problem: ErrorDetails, where: str) -> str:
    """pydantic's report as one sentence, without its own terms."""
    message = lower_first(problem["msg"]).replace("input should be", "must be").rstrip(".")
    # In a union, pydantic appends the type that it tried: ("training", "budget", "float").
    loc = [str(part) for part in problem["loc"] if part not in TYPE_TAGS]
    place = f"'{'.'.join(loc)}' in {where}" if loc else f"In {where}"
    # A validator of a whole section gets all of its settings; its message names the one that matters.
    got = "" if isinstance(problem["input"], Mapping | Section) else f"; got {problem['input']!r:.200}"
    return f"{place}: {message}{got}."


def check_keys(model: type[Section], table: Table, path: list[str]) -> None:
    fields = model.model_fields
    for key, value in table.items():
        if key not in fields:
            where = f"[{'.'.join(path)}]" if path else "the configuration"
            raise ConfigError(f"Unknown key '{key}' in {where}.{nearest(key, fields)}")
        inner = fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            if not isinstance(value, dict):
                raise ConfigError(f"'{'.'.join([*path, key])}' is a section with keys; got the value {value!r}.")
            check_keys(inner, value, [*path, key])


def without_off(table: Mapping[str, Any]) -> Table:
    """Replace the word "off", which stands for None in TOML."""
    return {
        key: without_off(value) if isinstance(value, Mapping) else None if value == OFF else value
        for key, value in table.items()
    }


def settings_of(section: Section) -> Table:
    """All settings as a table from which `resolve` rebuilds the section.

    A None is written as "off", unless it is the default: then the key is left out.
    """
    table: Table = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            table[name] = settings_of(value)
        elif value is not None or field.default is not None:
            table[name] = OFF if value is None else value
    return table


def lower_first(message: str) -> str:
    """pydantic's message as the end of a sentence."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def to_toml(table: Mapping[str, Any]) -> str:
    """A nested table as TOML. TOML has no null, so entries that are None are left out."""
    return tomli_w.dumps(without_none(table))


def without_none(table: Mapping[str, Any]) -> Table:
    return {
        key: without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }
