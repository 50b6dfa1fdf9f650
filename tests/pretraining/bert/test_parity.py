"""The published BERT, with transformers' as the reference: every layer, both losses, every gradient."""

from pathlib import Path

import pytest
import torch

from headstart.encoders.bert import Bert, BertConfig
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.weights.bert_names import in_their_names, plain_names

transformers = pytest.importorskip("transformers")

V = 50
CONFIG = BertConfig(layers=3, width=24, heads=4, inner=40, positions=20)


def theirs() -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=V,
        hidden_size=CONFIG.width,
        num_hidden_layers=CONFIG.layers,
        num_attention_heads=CONFIG.heads,
        intermediate_size=CONFIG.inner,
        max_position_embeddings=CONFIG.positions,
        initializer_range=0.2,
    )
    model = transformers.BertForPreTraining(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name or "LayerNorm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def test_layers_losses_and_gradients_agree() -> None:
    reference = theirs()
    model = MaskedLanguageModel(Bert(CONFIG, V)).eval()
    their_weights = plain_names(dict(reference.named_parameters()), Path())
    places = in_their_names(model.state_dict())
    assert places.keys() == their_weights.keys()
    for name, place in places.items():
        place.copy_(their_weights[name].detach())

    B, T = 4, 11
    ids = torch.randint(0, V, (B, T))
    mask = torch.arange(T) < torch.tensor([[11], [7], [9], [4]])
    segments = (torch.arange(T) > 2).long().expand(B, T)
    is_next = torch.tensor([True, False, False, True])
    positions = torch.tensor([1, 3, 11 + 2, 22 + 5, 33 + 1])
    gold = torch.randint(0, V, (len(positions),))
    labels = torch.full((B * T,), -100).index_copy(0, positions, gold).view(B, T)

    out = reference(
        ids,
        attention_mask=mask.long(),
        token_type_ids=segments,
        labels=labels,
        next_sentence_label=(~is_next).long(),
        output_hidden_states=True,
    )
    states = model.encoder.hidden_states(ids, mask, segments)
    assert len(states) == CONFIG.layers + 1
    for ours, their in zip(states, out.hidden_states, strict=True):
        torch.testing.assert_close(ours[mask], their[mask], atol=1e-5, rtol=1e-5)

    terms = model(MaskedBatch(ids, mask, segments, positions, gold, is_next))
    loss = terms["masked"].total / terms["masked"].count + terms["next"].total / terms["next"].count
    torch.testing.assert_close(loss, out.loss, atol=1e-5, rtol=1e-5)
    right = out.prediction_logits.flatten(0, 1)[positions].argmax(dim=1) == gold
    assert terms["masked"].correct == int(right.sum())

    loss.backward()
    out.loss.backward()
    expected = plain_names(dict(reference.named_parameters()), Path())
    for name, gradient in in_their_names({name: p.grad for name, p in model.named_parameters()}).items():
        torch.testing.assert_close(
            gradient, expected[name].grad, atol=1e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )
