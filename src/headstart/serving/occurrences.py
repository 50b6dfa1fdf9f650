"""Where else a word is used as it is in a sentence: the routes, and the texts that are indexed for them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from fastapi import APIRouter

from headstart.errors import DataError
from headstart.inspection.neighbours import Occurrence, nearest_occurrences
from headstart.inspection.occurrence_search import OccurrenceIndex
from headstart.inspection.occurrence_text import MarkedWord, encoded
from headstart.inspection.occurrences import occurrence_index
from headstart.pretrained import Pretrained
from headstart.progress import Notice, Progress
from headstart.serving.api import REFUSALS, Answering
from headstart.serving.models import Models, Served, ServedEncoder
from headstart.serving.requests import OccurrenceAnswer, OccurrencesAnswer, OccurrencesBody
from headstart.text.formats import clean

WORDS = 200_000
"""Occurrences indexed, by default: a minute or so for each encoder of the package."""


def with_indexes(
    models: Models, among: Sequence[str | Path], words: int = WORDS, cache: Path | None = None
) -> Generator[Progress | Notice, None, Models]:
    """The models, each contextual encoder with an index of a text; word vectors need none."""
    served: list[Served] = []
    for one in models:
        if among and isinstance(one, ServedEncoder) and one.pretrained.encoder.contextual:
            index = yield from occurrence_index(one.pretrained, among, words=words, cache=cache)
            served.append(replace(one, index=index))
        else:
            served.append(one)
    return Models(served)


def occurrence_routes(answering: Answering) -> APIRouter:
    api = APIRouter(prefix="/api", responses=REFUSALS)
    models = answering.models

    @api.post("/occurrences")
    async def occurrences(body: OccurrencesBody) -> OccurrencesAnswer:
        """The words in the text of --among that are nearest to a word of a sentence, in an encoder's top layer."""
        answering.check([body.text], "text")
        pretrained, index = models.index(body.model)
        compute = partial(nearest, pretrained, index, body.most)
        asked = (clean(body.text), body.word)
        found = await answering.alone(("occurrences", body.model, body.most), compute, asked)
        return OccurrencesAnswer(
            layer=index.layer, searched=len(index), occurrences=[OccurrenceAnswer(**one.as_table()) for one in found]
        )

    return api


def nearest(pretrained: Pretrained, index: OccurrenceIndex, most: int, asked: tuple[str, str]) -> list[Occurrence]:
    return nearest_occurrences(pretrained, index, marked(pretrained, *asked), most)


def marked(pretrained: Pretrained, text: str, word: str) -> MarkedWord:
    """The first occurrence of a word in a text, in any case."""
    _, bounds = encoded(pretrained, text)
    same = [text[start:end].lower() == word.lower() for start, end in bounds]
    if not any(same):
        raise DataError(f"'{word}' is not a word of the text.")
    start, end = bounds[int(np.argmax(same))].tolist()
    return MarkedWord(text, start, end)
