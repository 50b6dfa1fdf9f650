"""The bench and the soak of the server: their arithmetic, and clients that ask a server made up for the test."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable

import pytest
from bench.serving.__main__ import ALONE, MANY, OURS, goals_of
from bench.serving.clients import as_request, ask_for
from bench.serving.figures import Figures, Goal, Run, table
from bench.serving.soak import BAD_REQUESTS, LEFT, Soak, faults, good_request, growth

from headstart.serving.requests import (
    ContextsBody,
    FillBody,
    NeighboursBody,
    NextBody,
    PredictBody,
    RepresentBody,
    ScoreBody,
)

BODIES = {
    "contexts": ContextsBody,
    "fill": FillBody,
    "neighbours": NeighboursBody,
    "next": NextBody,
    "predict": PredictBody,
    "represent": RepresentBody,
    "score": ScoreBody,
}
TEXTS = ["the cat sat on the mat .", "a good film"]


def figures(side: str, clients: int, seconds: list[float], during: float = 10.0) -> Figures:
    return Figures.of(side, clients, [Run(seconds, during)])


def test_figures_are_medians_over_the_runs() -> None:
    runs = [Run([0.001 * n for n in range(1, 101)], 10.0), Run([0.2] * 300, 10.0), Run([0.1] * 200, 10.0)]
    found = Figures.of("ours", 8, runs)
    assert (found.rate, found.rates) == (20.0, (10.0, 30.0, 20.0))
    assert found.milliseconds == pytest.approx((100.0, 100.0, 100.0))
    assert Figures.of("ours", 8, runs[:1]).milliseconds == pytest.approx((50.5, 95.05, 99.01))


def test_goals_compare_rates_and_the_95th_percentiles() -> None:
    rows = [
        figures(OURS, MANY, [0.1] * 400),
        figures("peer", MANY, [0.15] * 100),
        figures(ALONE, 1, [0.01] * 150),
        figures(OURS, 1, [0.1] * 10),
    ]
    beside_alone, faster, sooner = goals_of(rows, ["peer"])
    assert (beside_alone.ratio, beside_alone.reached) == (pytest.approx(400 / 150), True)
    assert (faster.ratio, faster.reached) == (4.0, True)
    assert (sooner.ratio, sooner.reached) == (pytest.approx(1.5), False)
    assert goals_of(rows[2:], ["peer"]) == []
    assert str(Goal("speed", 1.5, 2.0)) == "speed: 1.50 times, wanted 2: MISSED"
    assert "MISSED" not in str(Goal("speed", 2.0, 2.0))
    lines = table(rows).splitlines()
    assert len({line.index(unit) for line, unit in zip(lines[1:], [" ms"] * 4, strict=True)}) == 1


@pytest.fixture
def asked() -> list[bytes]:
    return []


def with_server(asked: list[bytes], use: Callable[[int], Awaitable[object]]) -> object:
    """What `use` gives, with the port of a server that answers whatever it is asked in two pieces."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0] or 0)
                asked.append(await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n")
                await asyncio.sleep(0.001)
                writer.write(b'{"a": "bc"}')
        except (EOFError, ConnectionError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def whole() -> object:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            return await use(server.sockets[0].getsockname()[1])

    return asyncio.run(whole())


def test_clients_ask_one_request_after_the_other_and_time_each(asked: list[bytes]) -> None:
    async def use(port: int) -> object:
        return await ask_for(port, [as_request("/x", {"n": n}, port) for n in range(3)], clients=2, seconds=0.3)

    found = with_server(asked, use)
    assert isinstance(found, dict)
    assert set(found["statuses"]) == {200}
    assert 0 < len(found["seconds"]) == found["statuses"][200] < len(asked)
    assert min(found["seconds"]) >= 0.001
    assert 0.2 < found["counted_seconds"] < 5
    assert {json.loads(body)["n"] for body in asked} == {0, 1, 2}


def test_the_soak_counts_what_it_is_answered_and_who_left(asked: list[bytes]) -> None:
    async def use(port: int) -> Soak:
        soak = Soak(port, TEXTS, time.monotonic() + 1.0)
        await asyncio.gather(*(soak.client(seed) for seed in range(4)))
        return soak

    soak = with_server(asked, use)
    assert isinstance(soak, Soak)
    assert set(soak.statuses) == {200, LEFT}
    assert soak.statuses[200] > 20 * soak.statuses[LEFT] > 0


def test_good_requests_keep_the_schema_and_ask_for_everything() -> None:
    rng, paths = random.Random(0), set()
    for _ in range(200):
        head, _, body = good_request(rng, TEXTS, 80).partition(b"\r\n\r\n")
        path = head.split()[1].decode().removeprefix("/api/")
        BODIES[path].model_validate_json(body)
        assert f"Content-Length: {len(body)}".encode() in head
        paths.add(path)
    assert paths == set(BODIES)
    assert all(len(draw(rng, TEXTS, 80)) > 5 for draw in BAD_REQUESTS for _ in range(20))


def test_faults_are_5xx_growth_and_silence() -> None:
    soak, flat = Soak(0, [], 0.0), [100] * 20
    soak.statuses.update({200: 50, 422: 5, LEFT: 1})
    assert faults(soak, flat, answers_after=True) == []
    assert faults(soak, flat, answers_after=False) == ["no answer after the connections were closed"]
    soak.statuses[503] = 2
    soak.broken["EOFError"] = 1
    grown = [*flat[:10], *([110] * 10)]
    assert growth(grown) == pytest.approx(0.1)
    assert faults(soak, grown, answers_after=True) == ["2 answers with 503", "1 of EOFError", "memory grew by 10.0%"]
