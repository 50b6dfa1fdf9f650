"""The page that describes the API, made of the API's own schema: plain HTML without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from headstart.config import Table
from headstart.serving.limits import Limits

TEMPLATE = "reference.html.j2"
PLAIN = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "nothing"}
UNITS = {"string": " characters", "array": " items"}
LEAST, MOST = ("minLength", "minItems", "minimum"), ("maxLength", "maxItems", "maximum")


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a body or of an answer, or one parameter. default: as JSON; None: it has none."""

    name: str
    type: str
    meaning: str
    required: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class Route:
    """A path with what is sent and what comes back. example: a body as JSON, or None where none is sent."""

    method: str
    path: str
    summary: str
    sent: list[Field]
    example: str | None
    answered: list[Field]


def reference_page(schema: Table, limits: Limits) -> str:
    """schema: OpenAPI's."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("headstart.serving").joinpath(TEMPLATE).read_text(encoding="utf-8"))
    told = [(f"{getattr(limits, name):,}", field.description) for name, field in Limits.model_fields.items()]
    parts = [(name, fields_of(schema["components"]["schemas"][name])) for name in part_names(schema)]
    return template.render(
        version=schema["info"]["version"],
        routes=list(routes_of(schema)),
        parts=parts,
        limits=told,
        statuses=list(statuses_of(schema)),
    )


def part_names(schema: Table) -> Iterator[str]:
    """Of schemas that are parts of others; those of whole bodies and answers stand with their routes."""
    whole = set()
    for methods in schema["paths"].values():
        for operation in methods.values():
            found = content_of(operation.get("requestBody", {})), content_of(operation["responses"]["200"])
            whole |= {name_in(one) for one in found if "$ref" in one}
    yield from (name for name in schema["components"]["schemas"] if name not in whole)


def routes_of(schema: Table) -> Iterator[Route]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            body = resolved(schema, content_of(operation.get("requestBody", {})))
            answer = resolved(schema, content_of(operation["responses"]["200"]))
            parameters = [
                field_of(one["name"], one["schema"], one["required"]) for one in operation.get("parameters", [])
            ]
            examples = body.get("examples", [])
            yield Route(
                method.upper(),
                path,
                operation.get("description", ""),
                [*parameters, *fields_of(body)],
                json.dumps(examples[0]) if examples else None,
                fields_of(answer),
            )


def statuses_of(schema: Table) -> Iterator[tuple[str, str]]:
    """Those other than 200, which are the same for every path that has any."""
    found: dict[str, str] = {}
    for methods in schema["paths"].values():
        for operation in methods.values():
            found |= {status: one["description"] for status, one in operation["responses"].items() if status != "200"}
    yield from sorted(found.items())


def content_of(described: Table) -> Table:
    found: Table = described.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def resolved(schema: Table, part: Table) -> Table:
    found: Table = schema["components"]["schemas"][name_in(part)] if "$ref" in part else part
    return found


def name_in(reference: Table) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def fields_of(part: Table) -> list[Field]:
    required = part.get("required", [])
    return [field_of(name, own, name in required) for name, own in part.get("properties", {}).items()]


def field_of(name: str, own: Table, required: bool) -> Field:
    default = json.dumps(own["default"]) if "default" in own else None
    return Field(name, type_of(own), own.get("description", ""), required, default)


def type_of(own: Table) -> str:
    """Of a schema, in words."""
    if "$ref" in own:
        return name_in(own)
    if "anyOf" in own:
        return " or ".join(map(type_of, own["anyOf"]))
    if "enum" in own:
        return " or ".join(map(json.dumps, own["enum"]))
    kind = str(own.get("type", "anything"))
    bounds = bounds_of(own, UNITS.get(kind, ""))
    if kind == "array" and "prefixItems" in own:
        return f"[{', '.join(map(type_of, own['prefixItems']))}]"
    if kind == "array":
        return f"list{bounds} of {type_of(own['items'])}"
    if kind == "object":
        values = own.get("additionalProperties")
        return f"object of {type_of(values)}" if isinstance(values, dict) else "object"
    return PLAIN.get(kind, kind) + bounds


def bounds_of(own: Table, unit: str) -> str:
    least, most = (next((int(own[key]) for key in keys if key in own), None) for keys in (LEAST, MOST))
    if most is None:
        return "" if least is None else f" ({least:,} or more{unit})"
    return f" (at most {most:,}{unit})" if least is None else f" ({least:,} to {most:,}{unit})"
