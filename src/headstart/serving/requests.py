"""The bodies of requests, and of the answers to them. What is too long, too much or of another type is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_TEXTS, MOST_CHARACTERS = 1_000, 1_000_000
"""Whatever a server's own limits are: those of the schema."""
LONGEST_ATTENDED = 300
"""Characters: attention has a number for each head and each pair of words."""
Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
Model = Annotated[str, Field(min_length=1, max_length=200, description="The name of a model, as /api/models lists it.")]
Most = Annotated[int, Field(ge=1, le=100, description="How many to give.")]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, protected_namespaces=())


def shown_with(example: dict[str, Any]) -> ConfigDict:
    """The settings of a body whose schema has an example."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class RepresentBody(Body):
    model_config = shown_with({"model": "bert-mini", "texts": ["A bank by the river.", "A bank lends money."]})
    model: Model
    texts: Texts
    """Each has its own vectors."""
    layers: Literal["top", "all"] | Annotated[int, Field(ge=-100, le=100)] = "top"
    """The top layer, all of them, or the one with this number, from 0."""
    pool: Literal["mean", "words"] = "mean"
    """A vector for each text, the mean of its words', or one for each word."""


class NeighboursBody(Body):
    model_config = shown_with({"model": "words-mini", "word": "film", "most": 3})
    model: Model
    word: Annotated[str, Field(min_length=1, max_length=200)]
    most: Most = 8


class FillBody(Body):
    model_config = shown_with({"model": "bert-mini", "text": "The [MASK] was very good.", "most": 3})
    model: Model
    text: Text
    """With [MASK] where something is to be filled in."""
    most: Most = 5


class NextBody(Body):
    model_config = shown_with({"model": "elmo-mini", "text": "the film was", "most": 3})
    model: Model
    text: Text
    """The words so far."""
    most: Most = 5
    backward: bool = False
    """Whether to give the words before the text instead."""


class ScoreBody(Body):
    model_config = shown_with({"model": "elmo-mini", "texts": ["the film was good .", "film the good was ."]})
    model: Model
    texts: Texts
    """Sentences, each with a word at least."""


class ContextsBody(Body):
    model_config = shown_with({"first": "A bank by the river.", "second": "A bank lends money.", "word": "bank"})
    first: Text
    """A sentence."""
    second: Text
    """Another one that shares a word with it."""
    word: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The word to compare; left out, the longest that both have."""


class OccurrencesBody(Body):
    model_config = shown_with({"model": "bert-mini", "text": "A bank by the river.", "word": "bank", "most": 3})
    model: Model
    text: Text
    """A sentence."""
    word: Annotated[str, Field(min_length=1, max_length=200)]
    """One of its words; the first occurrence counts."""
    most: Most = 5


class AttentionBody(Body):
    model_config = shown_with({"model": "bert-mini", "text": "A bank lends money.", "layer": 1})
    model: Model
    text: Annotated[str, Field(max_length=LONGEST_ATTENDED, description="A sentence.")]
    layer: Annotated[int, Field(ge=1, le=100)]
    """From 1: the one whose heads are given."""


class PredictBody(Body):
    model_config = shown_with({"model": "sentiment", "inputs": [{"text": "A warm, funny film."}]})
    model: Model
    inputs: Annotated[list[dict[str, Text]], Field(min_length=1, max_length=MOST_TEXTS)]
    """What to answer: objects with the keys that /api/models names as `asks`, such as {"text": "..."}."""


class Facts(Body):
    """A model that is served."""

    name: str
    kind: str
    """static, elmo, bert, or task."""
    title: str
    can: list[str]
    """What it may be asked for: the last part of the paths of this API."""
    layers: int | None = None
    width: int | None = None
    vocabulary: int | None = None
    task: str | None = None
    asks: list[str] | None = None
    """The texts that one input of a prediction consists of."""
    labels: list[str] | None = None


class ModelsAnswer(Body):
    models: list[Facts]


class RepresentedText(Body):
    words: list[str]
    vectors: list[Any]
    """One for each word, or one; of several layers, one for each layer in these."""


class RepresentAnswer(Body):
    texts: list[RepresentedText]


class GuessAnswer(Body):
    word: str
    probability: float


class GuessesAnswer(Body):
    guesses: list[list[GuessAnswer]]
    """For each place that was asked about, the most probable first."""


class ScoreAnswer(Body):
    scores: list[dict[str, Any]]
    """Of each text, as `headstart score --json` gives it: an ELMo's perplexities, or a BERT's pseudo-perplexities."""


class NeighbourAnswer(Body):
    word: str
    cosine: float


class NeighboursAnswer(Body):
    neighbours: list[NeighbourAnswer]


class ModelContexts(Body):
    model: str
    kind: str
    cosines: list[float]
    """Of the word's two vectors, one for each layer, the input layer first."""


class ContextsAnswer(Body):
    word: str
    models: list[ModelContexts]


class OccurrenceAnswer(Body):
    word: str
    cosine: float
    """Of vectors less the mean of all in the text."""
    sentence: str
    start: int
    """Where the word stands in the sentence, in characters."""
    end: int


class OccurrencesAnswer(Body):
    layer: int
    searched: int
    """Words of the text."""
    occurrences: list[OccurrenceAnswer]
    """The nearest first."""


class AttentionAnswer(Body):
    units: list[str]
    """[CLS], the words, [SEP]."""
    heads: list[list[list[float]]]
    """Of each head and each unit, how much it attends to every unit; these sum to 1."""


class LayerWeights(Body):
    """How a task model reads the layers of one encoder."""

    model: str
    task: str
    encoder: str
    kind: str
    """static, elmo or bert."""
    how: str
    """frozen, finetune or gradual."""
    place: Literal["input", "output"]
    """Where the task network meets the mix: as what it reads, or beside what it gives."""
    weights: list[float] | None
    """One for each layer, the input layer first; they sum to 1."""
    gamma: float | None
    note: str
    """Why there are no weights; empty where there are."""


class LayersAnswer(Body):
    mixes: list[LayerWeights]


class PredictAnswer(Body):
    task: str
    answers: list[list[dict[str, Any]]]
    """Of each input, its answer, or one for each of its sentences, as `headstart predict --json` gives it."""
    truncated: int
    """Inputs of which only a part was read."""


class RunFacts(Body):
    name: str
    kind: str
    state: Literal["running", "finished", "stopped"]
    step: int


class RunsAnswer(Body):
    """What is under the folder that --runs names."""

    runs: list[RunFacts]
    comparisons: list[str]


class CurveBody(Body):
    model_config = shown_with({"run": "elmo"})
    run: Annotated[str, Field(max_length=1_000, description="The name of a run, as /api/runs lists it.")]


class CurveAnswer(Body):
    loss: list[tuple[int, float]]
    evaluations: dict[str, list[tuple[int, float]]]
    finished: bool


class Refusal(Body):
    """Why a request was refused, in a sentence."""

    detail: str
