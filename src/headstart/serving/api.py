"""The routes under /api: a request becomes items of a kind of work, which the batcher computes with those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Response

from headstart.errors import ConfigError, DataError
from headstart.inspection.fill import Guess, fill
from headstart.inspection.neighbours import word_neighbours
from headstart.inspection.next_words import next_words
from headstart.inspection.score import WordScorer, scorer_of
from headstart.serving.batching import Batcher, Work
from headstart.serving.computing import (
    Represented,
    answers,
    contexts_of,
    one_by_one,
    represented,
    scored,
    size_in_copies,
    size_of,
)
from headstart.serving.limits import Limits
from headstart.serving.models import Models, ServedEncoder
from headstart.serving.requests import (
    ContextsAnswer,
    ContextsBody,
    CurveAnswer,
    CurveBody,
    Facts,
    FillBody,
    GuessAnswer,
    GuessesAnswer,
    ModelContexts,
    ModelsAnswer,
    NeighbourAnswer,
    NeighboursAnswer,
    NeighboursBody,
    NextBody,
    PredictAnswer,
    PredictBody,
    Refusal,
    RepresentAnswer,
    RepresentBody,
    RepresentedText,
    RunFacts,
    RunsAnswer,
    ScoreAnswer,
    ScoreBody,
)
from headstart.serving.runs import Shelf
from headstart.text.formats import clean

ReadT = TypeVar("ReadT")

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is no JSON."},
    401: {"model": Refusal, "description": "The server was started with a token, and the request does not have it."},
    403: {"model": Refusal, "description": "The server has another name, or a page of another site asked."},
    404: {"model": Refusal, "description": "No model of that name is served."},
    408: {"model": Refusal, "description": "The body did not arrive in time."},
    413: {"model": Refusal, "description": "The body is too long."},
    415: {"model": Refusal, "description": "The body is not said to be JSON."},
    422: {"model": Refusal, "description": "The body is not what was wanted, or the model cannot do this."},
    429: {"model": Refusal, "description": "This client has too many requests under way."},
    503: {"model": Refusal, "description": "The server has too much to do; try again after Retry-After seconds."},
}

REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
MOST_KEYS_TOLD = 5


@dataclass(frozen=True, slots=True)
class Answering:
    """What the routes share."""

    models: Models
    batcher: Batcher
    limits: Limits
    shelf: Shelf
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by who reads logs, which may be long, so that only one is in memory at a time."""

    async def each(
        self,
        kind: tuple[object, ...],
        compute: Callable[[list[Any]], Sequence[Any]],
        items: Sequence[Any],
        accept: Callable[[Sequence[Any]], None] = lambda results: None,
        size: Callable[[Any], int] = size_of,
    ) -> list[Any]:
        return await self.batcher.ask(Work(kind, compute, size), items, self.limits.seconds, accept)

    async def alone(self, kind: tuple[object, ...], compute: Callable[[Any], Any], item: Any) -> Any:
        """For what is not computed together with other requests, but in their turn."""
        (found,) = await self.each(kind, partial(one_by_one, compute), [item])
        return found

    async def read(self, reader: Callable[..., ReadT], *given: str) -> ReadT:
        async with self.reading:
            return await asyncio.to_thread(reader, *given)

    def check_numbers(self) -> Callable[[Sequence[Represented]], None]:
        """Of one answer: refuses more numbers than it may have."""
        count = 0

        def check(results: Sequence[Represented]) -> None:
            nonlocal count
            count += sum(one.vectors.size for one in results)
            if count > self.limits.numbers:
                raise DataError(
                    f"The vectors have more than {self.limits.numbers:,} numbers. Ask for fewer texts, one layer, or "
                    "pool 'mean'."
                )

        return check

    def check(self, texts: Sequence[str], where: str) -> None:
        if len(texts) > self.limits.texts:
            raise DataError(f"{where}: {len(texts):,} texts; at most {self.limits.texts:,} are taken in one request.")
        for number, text in enumerate(texts):
            if len(text) > self.limits.characters:
                raise DataError(
                    f"{where}: text {number + 1} has {len(text):,} characters; at most {self.limits.characters:,} are "
                    "taken. Split it."
                )


def routes(answering: Answering) -> APIRouter:
    api = APIRouter(prefix="/api", responses=REFUSALS)
    models, shelf = answering.models, answering.shelf

    @api.get("/models", response_model_exclude_none=True)
    async def list_models() -> ModelsAnswer:
        """What is served, and what each may be asked for."""
        return ModelsAnswer(models=[Facts(**one.facts()) for one in models])

    @api.post("/represent")
    async def represent(body: RepresentBody) -> RepresentAnswer:
        """The vectors of texts, or of each of their words."""
        answering.check(body.texts, "texts")
        pretrained = models.encoder(body.model, "represent")
        compute = partial(represented, pretrained, body.layers, body.pool)
        kind = ("represent", body.model, body.layers, body.pool)
        found = await answering.each(kind, compute, body.texts, answering.check_numbers())
        return RepresentAnswer(texts=[RepresentedText(words=one.words, vectors=one.vectors.tolist()) for one in found])

    @api.post("/contexts")
    async def contexts(body: ContextsBody) -> ContextsAnswer:
        """How alike a word's vectors are in two sentences, in every layer of every encoder that is served."""
        answering.check([body.first, body.second], "sentences")
        encoders = [one for one in models if isinstance(one, ServedEncoder)]
        if not encoders:
            raise ConfigError("No encoder is served here, only task models.")
        found = []
        word = body.word
        for one in encoders:
            compute = partial(contexts_of, one.pretrained)
            both = await answering.alone(("contexts", one.name), compute, (clean(body.first), clean(body.second), word))
            word = both.word  # the same for all
            kind = one.pretrained.encoder.kind
            found.append(ModelContexts(model=one.name, kind=kind, cosines=list(both.cosines)))
        return ContextsAnswer(word=str(word), models=found)

    @api.post("/neighbours")
    async def neighbours(body: NeighboursBody) -> NeighboursAnswer:
        """The words of the vocabulary with the nearest vectors."""
        pretrained = models.encoder(body.model, "neighbours")
        compute = partial(word_neighbours, pretrained, most=body.most)
        found = await answering.alone(("neighbours", body.model, body.most), compute, body.word)
        return NeighboursAnswer(neighbours=[NeighbourAnswer(word=one.word, cosine=one.cosine) for one in found])

    @api.post("/fill")
    async def fill_in(body: FillBody) -> GuessesAnswer:
        """What a BERT expects for each [MASK] of a text."""
        answering.check([body.text], "text")
        pretrained = models.encoder(body.model, "fill")
        found = await answering.alone(
            ("fill", body.model, body.most), partial(fill, pretrained, most=body.most), clean(body.text)
        )
        return GuessesAnswer(guesses=[as_guesses(guesses) for guesses in found])

    @api.post("/next")
    async def next_word(body: NextBody) -> GuessesAnswer:
        """The words that an ELMo expects after a text, or before it."""
        answering.check([body.text], "text")
        pretrained = models.encoder(body.model, "next")
        compute = partial(next_words, pretrained, most=body.most, backward=body.backward)
        found = await answering.alone(("next", body.model, body.most, body.backward), compute, clean(body.text))
        return GuessesAnswer(guesses=[as_guesses(found)])

    @api.post("/score")
    async def score(body: ScoreBody) -> ScoreAnswer:
        """How probable sentences are to a language model. ELMo's perplexity and BERT's do not compare."""
        answering.check(body.texts, "texts")
        pretrained = models.encoder(body.model, "score")
        scorer = scorer_of(pretrained)
        size = len if isinstance(scorer, WordScorer) else size_in_copies
        found = await answering.each(("score", body.model), partial(scored, scorer, pretrained), body.texts, size=size)
        return ScoreAnswer(scores=[one.as_table() for one in found])

    @api.get("/runs")
    async def list_runs() -> RunsAnswer:
        """Trainings, running or done, and comparisons."""
        runs = await answering.read(shelf.runs)
        return RunsAnswer(
            runs=[RunFacts(**facts) for facts in runs], comparisons=await answering.read(shelf.comparisons)
        )

    @api.post("/curve")
    async def curve(body: CurveBody) -> CurveAnswer:
        """The loss of a training and its evaluations, as far as it has come."""
        return CurveAnswer(**asdict(await answering.read(shelf.curve, body.run)))

    @api.get("/report", response_class=Response)
    async def report(comparison: Annotated[str, Query(max_length=1_000)]) -> Response:
        """The report of a comparison, as a page by itself that can load and run nothing."""
        page = await answering.read(shelf.report, comparison)
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

    @api.post("/predict")
    async def predict(body: PredictBody) -> PredictAnswer:
        """A task model's answers."""
        model = models.task(body.model)
        for number, given in enumerate(body.inputs, 1):
            check_keys(given, model.task.asks, f"inputs: number {number}")
        answering.check([text for given in body.inputs for text in given.values()], "inputs")
        found = await answering.each(("predict", body.model), partial(answers, model), body.inputs)
        return PredictAnswer(
            task=model.task.name, answers=[lines for lines, _ in found], truncated=sum(cut for _, cut in found)
        )

    return api


def check_keys(given: Mapping[str, str], wanted: Sequence[str], where: str) -> None:
    if set(given) != set(wanted):
        keys = ", ".join(f"{key:.60}" for key in sorted(given)[:MOST_KEYS_TOLD]) or "none"
        raise DataError(f"{where} has the keys {keys}; wanted {' and '.join(wanted)}.")


def as_guesses(guesses: Sequence[Guess]) -> list[GuessAnswer]:
    return [GuessAnswer(word=one.piece, probability=one.probability) for one in guesses]
