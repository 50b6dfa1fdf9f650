"""BERT mini, masked words and next sentence, 32 x 128, vocabulary 30,522: ours against transformers with AdamW.

A whole training step on one random batch, each side with its own optimiser as it comes. The losses without dropout
agree to 1e-4 of their value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from bench.measure import Measurement, OneBatch, Setting, Side, check_close, in_turns
from bench.operations import TRAINING, bert, softmax
from bench.remote import Remote
from headstart.cli.allocator import tune_allocator
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.neural import NeuralLearner
from headstart.training.optim import OptimizerConfig
from headstart.training.seeding import freshly_initialised
from headstart.weights.bert_names import tensors_of, with_prefix

B, T, V = 32, 128, 30_522
MASK_RATE = 0.15
TOLERANCE = 1e-4
MINI = BertConfig(**BERT_SIZES["mini"])


def random_batch() -> MaskedBatch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, V, (B, T), generator=generator)
    n = round(MASK_RATE * T)
    hidden = torch.cat([torch.randperm(T - 1, generator=generator)[:n] + 1 + row * T for row in range(B)])
    gold = ids.flatten()[hidden]
    segments = (torch.arange(T) >= T // 2).long().expand(B, T)
    is_next = torch.rand(B, generator=generator) < 0.5
    return MaskedBatch(ids, torch.ones(B, T, dtype=torch.bool), segments, hidden, gold, is_next)


def transformers_twin(model: MaskedLanguageModel) -> Any:
    """transformers' BertForPreTraining with the same weights."""
    from transformers import BertConfig as PeerConfig
    from transformers import BertForPreTraining

    config = PeerConfig(
        vocab_size=V,
        hidden_size=MINI.width,
        num_hidden_layers=MINI.layers,
        num_attention_heads=MINI.heads,
        intermediate_size=MINI.inner,
    )
    peer = BertForPreTraining(config)
    parts = {"encoder": model.encoder, "masked": model.masked, "next": model.next}
    weights = {with_prefix(name): tensor for name, tensor in tensors_of(parts).items()}
    found = peer.load_state_dict(weights, strict=False)  # its decoder is the word embeddings and its own bias again
    strangers = [name for name in found.missing_keys if not name.startswith("cls.predictions.decoder")]
    if strangers or found.unexpected_keys:
        raise RuntimeError(f"the weights do not fit transformers' BERT: {strangers + found.unexpected_keys}")
    return peer


def inputs_of(batch: MaskedBatch) -> dict[str, Any]:
    return {
        "input_ids": batch.ids,
        "attention_mask": batch.mask.long(),
        "token_type_ids": batch.segments,
        "labels": torch.full((B * T,), -100).scatter(0, batch.positions, batch.gold).view(B, T),
        "next_sentence_label": (~batch.is_next).long() if batch.is_next is not None else None,
    }


def new_model() -> MaskedLanguageModel:
    return freshly_initialised(0, lambda: MaskedLanguageModel(Bert(MINI, V)))


def transformers_step() -> Callable[[], float]:
    peer = transformers_twin(new_model()).train()
    inputs = inputs_of(random_batch())
    optimizer = torch.optim.AdamW(peer.parameters(), lr=1e-4, weight_decay=0.01)

    def theirs() -> float:
        peer(**inputs).loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return B * T

    return theirs


def run(setting: Setting) -> Iterator[Measurement]:
    tune_allocator()  # as `pretrain` does; the peer has a process of its own
    batch, model = random_batch(), new_model()
    with torch.no_grad():
        mine = sum(term.total / term.count for term in model.eval()(batch).values())
        their = transformers_twin(model).eval()(**inputs_of(batch)).loss
        check_close("losses", mine / their, torch.ones(()), TOLERANCE)
    learner = NeuralLearner(model, OneBatch(batch), None, OptimizerConfig(), accumulate=1, seed=0)

    def ours() -> int:
        return learner.step(0, 0.1).units

    rates = in_turns({"ours": Side(ours), "transformers": Side(Remote(transformers_step))}, setting.repeats)
    head = 2 * MINI.width**2 + softmax(MINI.width, V)
    yield Measurement(
        work=f"BERT mini pretraining step, {B} x {T}",
        unit="tokens/s",
        ours=rates["ours"],
        peer=rates["transformers"],
        peer_name="transformers + AdamW",
        goal=3.0,
        flops_per_unit=TRAINING * (bert(MINI, [T]) + MASK_RATE * head),
    )
