"""A classifier behind HTTP as a tutorial has it: FastAPI, uvicorn and transformers' pipeline, one text a request.

    python -m bench.peers.pipeline_server --model FOLDER --port N [--calls threads|loop]

threads: a plain function, which FastAPI calls in one of its forty threads. loop: a coroutine, so that requests are
computed one after the other, and nothing else happens meanwhile.
"""

from __future__ import annotations

import argparse
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import pipeline

PATH = "/predict"
CALLS = ("threads", "loop")


class Body(BaseModel):
    text: str


class Answer(BaseModel):
    label: str
    score: float


def build_app(classify: Any, calls: str) -> FastAPI:
    app = FastAPI()

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    def answer(body: Body) -> Answer:
        return Answer(**classify(body.text, truncation=True)[0])

    async def answer_in_loop(body: Body) -> Answer:
        return answer(body)

    app.post(PATH)(answer if calls == "threads" else answer_in_loop)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.pipeline_server", description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls", choices=CALLS, default=CALLS[0])
    given = parser.parse_args()
    classify = pipeline("text-classification", model=given.model, device="cpu")
    uvicorn.run(build_app(classify, given.calls), host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
