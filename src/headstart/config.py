"""Settings: TOML tables and `--set a.b=c` become frozen, strict models; an unknown key names its nearest known one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from headstart.errors import ConfigError

OFF = "off"
Table = dict[str, Any]
ModelT = TypeVar("ModelT", bound="Section")
EntryT = TypeVar("EntryT")


class Section(BaseModel):
    """One table of the configuration, declared beside the code it configures. The text under a field is its help."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


def cache_home() -> Path:
    """Where shards, vocabularies and downloads are kept between runs."""
    return Path(os.environ.get("HEADSTART_HOME") or Path.home() / ".cache" / "headstart")


def pick(table: Mapping[str, EntryT], name: str, kind: str) -> EntryT:
    """The entry of a table, or an error that names the nearest one."""
    if name in table:
        return table[name]
    raise ConfigError(f"No {kind} called '{name}'.{nearest(name, table)}")


def nearest(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    return f" Did you mean '{near[0]}'?" if near else f" There are: {', '.join(known)}."


def read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such configuration file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error}).") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """`encoder.layers=3` -> (["encoder", "layers"], 3). The value is TOML; anything that is not TOML is a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes SECTION.KEY=VALUE, such as encoder.layers=3; got '{text}'.")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    return key.strip().split("."), parsed


def assign(table: Table, keys: list[str], value: Any) -> None:
    """table[a][b] = value, in place, making the tables between."""
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
    """Later tables win, key by key, to any depth."""
    merged = dict(base)
    for other in others:
        for key, value in other.items():
            both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = overlay(merged[key], value) if both_tables else value
    return merged


def resolve(model: type[ModelT], table: Table, where: str = "the configuration") -> ModelT:
    """Build a strict model from a table; the first thing wrong with it becomes one sentence."""
    check_keys(model, table, [])
    try:
        return model.model_validate(without_off(table))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or where
        raise ConfigError(f"'{key}' in {where}: {lower_first(first['msg'])}; got {first['input']!r}.") from error


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
    """TOML has no None: the word "off" stands for it."""
    return {
        key: without_off(value) if isinstance(value, Mapping) else None if value == OFF else value
        for key, value in table.items()
    }


def settings_of(section: Section) -> Table:
    """Every setting as a table that resolves to the same again: "off" where None is not what leaving it out means."""
    table: Table = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            table[name] = settings_of(value)
        elif value is not None or field.default is not None:
            table[name] = OFF if value is None else value
    return table


def lower_first(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def to_toml(table: Mapping[str, Any]) -> str:
    """The TOML of nested tables of plain values. None is left out."""
    lines: list[str] = []
    write_table(table, [], lines)
    return "\n".join(lines).strip() + "\n"


def write_table(table: Mapping[str, Any], path: list[str], lines: list[str]) -> None:
    if path:
        lines += ["", f"[{'.'.join(path)}]"]
    for key, value in table.items():
        if value is not None and not isinstance(value, Mapping):
            lines.append(f"{key} = {toml_value(value)}")
    for key, value in table.items():
        if isinstance(value, Mapping):
            write_table(value, [*path, key], lines)


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return toml_string(str(value))


def toml_string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
