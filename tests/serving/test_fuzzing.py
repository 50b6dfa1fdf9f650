"""Requests that follow the schema, and requests that break it, made up by a fuzzer: no answer is a 5xx."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from tests.serving.conftest import Running

TRIES = 40
SERVED = {
    "/api/attention": "bert",
    "/api/represent": "elmo",
    "/api/fill": "bert",
    "/api/next": "elmo",
    "/api/score": "bert",
    "/api/neighbours": "static",
}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_no_request_breaks_the_server(server: Running, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and operation.method != "post":
            continue  # without a body, there is little to break
        try_requests(operation.as_strategy(generation_mode=mode))
        tried.add(operation.path)
    assert {*SERVED, "/api/contexts", "/api/predict"} <= tried


def try_requests(strategy: Any) -> None:
    @settings(
        max_examples=TRIES,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def each(case: Any) -> None:
        if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
            case.body["model"] = SERVED.get(case.path, "classify")  # a made-up name would be refused at once
        answer = case.call(timeout=30)
        assert answer.status_code < 500, (case.body, answer.status_code, answer.text)
        if answer.status_code >= 400:
            assert isinstance(answer.json()["detail"], str)

    each()
