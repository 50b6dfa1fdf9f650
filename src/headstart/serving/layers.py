"""The routes that look into the layers: where the heads of a BERT look, and which layers each task reads."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from fastapi import APIRouter

from headstart.inspection.attend import attend
from headstart.pretrained import Pretrained
from headstart.serving.api import REFUSALS, Answering
from headstart.serving.models import ServedTask
from headstart.serving.requests import AttentionAnswer, AttentionBody, LayersAnswer, LayerWeights
from headstart.text.formats import clean

DECIMALS = 4


def layer_routes(answering: Answering) -> APIRouter:
    api = APIRouter(prefix="/api", responses=REFUSALS)
    models = answering.models

    @api.post("/attention")
    async def attention(body: AttentionBody) -> AttentionAnswer:
        """How much each word of a sentence attends to every other, in each head of a layer of a BERT."""
        pretrained = models.encoder(body.model, "attention")
        compute = partial(heads_of, pretrained, body.layer)
        found: AttentionAnswer = await answering.alone(("attention", body.model, body.layer), compute, clean(body.text))
        return found

    @api.get("/layers")
    async def layers() -> LayersAnswer:
        """The weights with which each task model mixes the layers of its encoders, as it learned them."""
        tasks = [one for one in models if isinstance(one, ServedTask)]
        return LayersAnswer(mixes=[weights for task in tasks for weights in weights_of(task)])

    return api


def heads_of(pretrained: Pretrained, layer: int, text: str) -> AttentionAnswer:
    found = attend(pretrained, text, layer, at_words=True)
    return AttentionAnswer(units=list(found.units), heads=found.probabilities[0].round(DECIMALS).tolist())


def weights_of(task: ServedTask) -> list[LayerWeights]:
    found = []
    for kind, mix in task.mixes():
        table = asdict(mix)
        weights = None if mix.weights is None else list(mix.weights)
        found.append(LayerWeights(**table | {"model": table.pop("run"), "kind": kind, "weights": weights}))
    return found
