"""The published BERT, with transformers' as the reference: every layer, both losses, every gradient."""

import pytest
import torch
from torch import Tensor

from headstart.batches.batch import MaskedBatch
from headstart.encoders.bert import Bert, BertConfig
from headstart.heads.language_model import MaskedLanguageModel

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


def in_our_names(their: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by transformers' names (weights or gradients alike) -> ours."""
    names = {
        "encoder.words": "bert.embeddings.word_embeddings",
        "encoder.positions": "bert.embeddings.position_embeddings",
        "encoder.segments": "bert.embeddings.token_type_embeddings",
        "encoder.norm": "bert.embeddings.LayerNorm",
        "encoder.pooler": "bert.pooler.dense",
        "masked.dense": "cls.predictions.transform.dense",
        "masked.norm": "cls.predictions.transform.LayerNorm",
        "masked": "cls.predictions",
        "next": "cls.seq_relationship",
    }
    for k in range(CONFIG.layers):
        ours, block = f"encoder.blocks.{k}", f"bert.encoder.layer.{k}"
        names |= {
            f"{ours}.attention_out": f"{block}.attention.output.dense",
            f"{ours}.attention_norm": f"{block}.attention.output.LayerNorm",
            f"{ours}.inner": f"{block}.intermediate.dense",
            f"{ours}.outer": f"{block}.output.dense",
            f"{ours}.norm": f"{block}.output.LayerNorm",
        }
    found = {
        f"{ours}.{kind}": their[f"{name}.{kind}"]
        for ours, name in names.items()
        for kind in ("weight", "bias")
        if f"{name}.{kind}" in their
    }
    for k in range(CONFIG.layers):
        attention = f"bert.encoder.layer.{k}.attention.self"
        for kind in ("weight", "bias"):
            parts = [their[f"{attention}.{part}.{kind}"] for part in ("query", "key", "value")]
            found[f"encoder.blocks.{k}.query_key_value.{kind}"] = torch.cat(parts)
    return found


def test_layers_losses_and_gradients_agree() -> None:
    reference = theirs()
    model = MaskedLanguageModel(Bert(CONFIG, V)).eval()
    model.load_state_dict(in_our_names(dict(reference.named_parameters())), strict=True)

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
    expected = in_our_names({name: parameter.grad for name, parameter in reference.named_parameters()})
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, expected[name], atol=1e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )
