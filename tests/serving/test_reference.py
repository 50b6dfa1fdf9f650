from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from tests.serving.conftest import Running

from headstart.serving.limits import Limits
from headstart.serving.reference import type_of

SERVED = {"words-mini": "static", "elmo-mini": "elmo", "bert-mini": "bert", "sentiment": "classify"}
"""The models of the examples, as the test's server has them."""
LACKING = {
    "/api/neighbours": ["not in the vocabulary"],
    "/api/curve": ["no run called"],
    "/api/occurrences": ["no text to search", "is not a word"],
}
"""What the test's server may say instead: it has another vocabulary, no such run, and no text to search."""


def test_every_route_and_field_is_on_the_page(server: Running) -> None:
    schema, page = server.ask("/openapi.json").json, unescape(server.ask("/api/docs").body.decode())
    for path, methods in schema["paths"].items():
        for method in methods:
            assert f'id="{method.upper()}{path}"' in page
    for part in schema["components"]["schemas"].values():
        for field, own in part.get("properties", {}).items():
            assert f"<code>{field}</code>" in page
            assert own.get("description", "") in page
    for name, field in Limits.model_fields.items():
        assert field.description
        assert f">{getattr(Limits(), name):,}</th><td>{field.description}</td>" in page, name


def test_the_page_runs_nothing_and_asks_no_other_machine(server: Running) -> None:
    answer = server.ask("/api/docs")
    page = answer.body.decode()
    assert answer.headers["content-type"].startswith("text/html")
    assert "<script" not in page
    assert "style=" not in page
    linked = re.findall(r'(?:href|src)="([^"#]*)', page)
    assert linked
    for path in filter(None, linked):
        assert server.ask(path).status == 200, path


def test_every_body_has_an_example_that_is_answered(server: Running) -> None:
    schema = server.ask("/openapi.json").json
    for path, methods in schema["paths"].items():
        if "post" not in methods:
            continue
        name = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        (example,) = schema["components"]["schemas"][name]["examples"]
        served = example | ({"model": SERVED[example["model"]]} if "model" in example else {})
        answer = server.ask(path, served)
        assert answer.status == 200 or any(part in answer.detail for part in LACKING.get(path, ())), answer


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 1, "maxLength": 2_000}, "text (1 to 2,000 characters)"),
        ({"type": "integer", "maximum": 9.0}, "whole number (at most 9)"),
        ({"type": "array", "minItems": 1, "items": {"type": "number"}}, "list (1 or more items) of number"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "number"}]}, "[whole number, number]"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, '"a" or "b" or nothing'),
        ({"type": "object", "additionalProperties": {"$ref": "#/x/Part"}}, "object of Part"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({}, "anything"),
    ],
)
def test_types_in_words(schema: dict[str, Any], words: str) -> None:
    assert type_of(schema) == words
