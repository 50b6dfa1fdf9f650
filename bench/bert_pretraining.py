"""BERT mini, masked words and next sentence, 32 x 128, vocabulary 30,522: ours against transformers with AdamW."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertConfig as PeerConfig
from transformers import BertForPreTraining

from bench.measure import Measurement, OneBatch, in_turns
from headstart.batches.batch import MaskedBatch
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.heads.language_model import MaskedLanguageModel
from headstart.training.neural import NeuralLearner
from headstart.training.optim import OptimizerConfig

B, T, V = 32, 128, 30_522
MASK_RATE = 0.15


def random_batch() -> MaskedBatch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, V, (B, T), generator=generator)
    n = round(MASK_RATE * T)
    hidden = torch.cat([torch.randperm(T - 1, generator=generator)[:n] + 1 + row * T for row in range(B)])
    gold = ids.flatten()[hidden]
    segments = (torch.arange(T) >= T // 2).long().expand(B, T)
    is_next = torch.rand(B, generator=generator) < 0.5
    return MaskedBatch(ids, torch.ones(B, T, dtype=torch.bool), segments, hidden, gold, is_next)


def run(data: Path | None = None) -> list[Measurement]:
    batch = random_batch()
    encoder = Bert(BertConfig(**BERT_SIZES["mini"]), V)
    learner = NeuralLearner(
        MaskedLanguageModel(encoder), OneBatch(batch), None, OptimizerConfig(), accumulate=1, seed=0
    )
    peer = BertForPreTraining(
        PeerConfig(vocab_size=V, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
    ).train()
    optimizer = torch.optim.AdamW(peer.parameters(), lr=1e-4, weight_decay=0.01)
    labels = torch.full((B * T,), -100).scatter(0, batch.positions, batch.gold).view(B, T)

    def ours() -> int:
        return learner.step(0, 0.1).units

    def theirs() -> int:
        loss = peer(
            input_ids=batch.ids,
            attention_mask=batch.mask.long(),
            token_type_ids=batch.segments,
            labels=labels,
            next_sentence_label=(~batch.is_next).long(),
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return B * T

    mine, other = in_turns(ours, theirs)
    return [Measurement("BERT mini pretraining step, 32 x 128", "tokens/s", mine, other, "transformers + AdamW", 2.5)]
