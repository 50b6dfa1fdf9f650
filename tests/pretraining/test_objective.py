import math

import pytest
import torch
from torch import Tensor, nn

from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.heads.language_model import LossTerm
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.elmo.batches import LanguageModelBatch
from headstart.pretraining.elmo.objective import ElmoLanguageModel, LanguageModelConfig

SMALL = {"cell": 64, "projection": 16, "filters": [[1, 8], [2, 8], [3, 16]], "highway": 1}
V = 60


def elmo_batch(lengths: list[int]) -> LanguageModelBatch:
    g = torch.Generator().manual_seed(0)
    spelling = torch.randint(1, 262, (V, 50), generator=g)
    T = max(lengths)
    mask = torch.arange(T) < torch.tensor(lengths)[:, None]
    targets = torch.randint(2, V, (len(lengths), T), generator=g)
    targets[:, 0] = 0
    targets[torch.arange(len(lengths)), mask.sum(dim=1) - 1] = 1
    targets = targets * mask
    return LanguageModelBatch(spelling[targets] * mask[..., None], mask, targets)


def masked_batch(B: int, T: int, with_next: bool = True) -> MaskedBatch:
    g = torch.Generator().manual_seed(0)
    ids = torch.randint(5, V, (B, T), generator=g)
    mask = torch.arange(T) < torch.linspace(T // 2, T, B).long()[:, None]
    positions = torch.arange(B) * T + 2
    gold = ids.flatten()[positions]
    ids.view(-1)[positions] = 4
    segments = ((torch.arange(T) > T // 3) & mask).long()
    is_next = torch.arange(B) % 2 == 0 if with_next else None
    return MaskedBatch(ids * mask, mask, segments, positions, gold, is_next)


def elmo_model(config: LanguageModelConfig | None = None, **changes: object) -> ElmoLanguageModel:
    torch.manual_seed(0)
    return ElmoLanguageModel(Elmo(ElmoConfig(**{**SMALL, **changes})), V, config)


def bert_model() -> MaskedLanguageModel:
    torch.manual_seed(0)
    return MaskedLanguageModel(Bert(BertConfig(**BERT_SIZES["tiny"]), V))


def total_of(terms: dict[str, LossTerm]) -> Tensor:
    return torch.stack([term.total / term.count for term in terms.values()]).sum()


def test_each_direction_predicts_the_neighbour_it_has_not_read() -> None:
    model, batch = elmo_model().eval(), elmo_batch([5, 3])
    terms = model(batch)
    top = model.encoder(batch.ids, batch.mask).layers[-1]
    forward, backward = (
        torch.log_softmax(states @ model.head.weight.t() + model.head.bias, dim=-1) for states in top.split(16, dim=-1)
    )
    pairs = [(b, t) for b, n in enumerate([5, 3]) for t in range(n - 1)]
    expected_forward = -sum(forward[b, t, batch.targets[b, t + 1]] for b, t in pairs)
    expected_backward = -sum(backward[b, t + 1, batch.targets[b, t]] for b, t in pairs)
    torch.testing.assert_close(terms["forward"].total, expected_forward)
    torch.testing.assert_close(terms["backward"].total, expected_backward)


@pytest.mark.parametrize("directions", ["both", "forward"])
def test_elmo_terms_count_what_the_batch_says(directions: str) -> None:
    batch = elmo_batch([5, 3])
    terms = elmo_model(directions=directions)(batch)
    assert list(terms) == (["forward", "backward"] if directions == "both" else ["forward"])
    assert all(term.count == batch.counts()[name] for name, term in terms.items())


def test_training_samples_by_the_generator_and_evaluation_is_exact() -> None:
    sampled = elmo_model(LanguageModelConfig(softmax="sampled", samples=10), dropout=0.0)
    full = elmo_model(LanguageModelConfig(softmax="full"), dropout=0.0)
    batch = elmo_batch([5, 3])
    losses = [sampled(batch, torch.Generator().manual_seed(seed))["forward"] for seed in (1, 1, 2)]
    assert losses[0].correct is None
    assert losses[0].total == losses[1].total != losses[2].total
    torch.testing.assert_close(sampled.eval()(batch)["forward"].total, full(batch)["forward"].total)


def test_auto_samples_only_where_it_pays() -> None:
    auto = LanguageModelConfig(samples=100)
    assert auto.samples_of(200) is None
    assert auto.samples_of(201) == 100
    assert LanguageModelConfig(samples=100, softmax="sampled").samples_of(150) == 100
    assert LanguageModelConfig(samples=100, softmax="full").samples_of(900) is None


def test_an_untrained_model_guesses_evenly() -> None:
    assert total_of(bert_model().eval()(masked_batch(4, 12))).item() == pytest.approx(
        math.log(V) + math.log(2), rel=0.1
    )


def test_next_term_is_absent_without_its_labels() -> None:
    terms = bert_model()(masked_batch(4, 12, with_next=False))
    assert list(terms) == ["masked"]


def test_word_embeddings_learn_from_both_their_uses() -> None:
    model, batch = bert_model().eval(), masked_batch(4, 12)
    weight = model.encoder.words.weight
    both = torch.autograd.grad(model(batch)["masked"].total, weight)[0]
    top = model.encoder.hidden_states(batch.ids, batch.mask, batch.segments)[-1]
    hidden = top.flatten(0, 1)[batch.positions]
    as_input = torch.autograd.grad(model.masked(hidden, weight.detach(), batch.gold).total, weight)[0]
    as_output = torch.autograd.grad(model.masked(hidden.detach(), weight, batch.gold).total, weight)[0]
    assert as_input.any()
    torch.testing.assert_close(both, as_input + as_output)


@pytest.mark.parametrize("name", ["elmo", "bert"])
def test_every_parameter_gets_a_gradient(name: str) -> None:
    model, batch = (elmo_model(), elmo_batch([5, 3])) if name == "elmo" else (bert_model(), masked_batch(4, 12))
    total_of(model(batch)).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.parametrize("name", ["elmo", "bert"])
def test_eight_sentences_can_be_learnt_by_heart(name: str) -> None:
    model: nn.Module
    if name == "elmo":
        model, batch = elmo_model(dropout=0.0), elmo_batch([6, 5, 7, 6, 4, 6, 7, 5])
        # From a sentence mark alone, nothing tells which of the eight sentences it opens or ends.
        least = 2 * 8 * math.log(8) / batch.counts()["forward"]
    else:
        model, batch, least = bert_model(), masked_batch(8, 12), 0.0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 if name == "elmo" else 0.001)
    for _ in range(80):
        optimizer.zero_grad()
        total_of(model(batch)).backward()
        optimizer.step()
    model.eval()
    assert total_of(model(batch)).item() < least + 0.1


def test_a_tied_softmax_multiplies_by_the_table_and_teaches_it() -> None:
    """What a head of its own gives whose rows are the table's, divided by the root of the width."""
    tied = ElmoLanguageModel(Elmo(ElmoConfig(**SMALL, tokens="words"), V), V, LanguageModelConfig(tie=True)).eval()
    free = ElmoLanguageModel(Elmo(ElmoConfig(**SMALL, tokens="words"), V), V).eval()
    free.encoder.load_state_dict(tied.encoder.state_dict())
    table = tied.encoder.tokens.weight  # type: ignore[union-attr]
    with torch.no_grad():
        free.head.weight.copy_(table / math.sqrt(SMALL["projection"]))
    batch = elmo_batch([5, 3])
    batch = LanguageModelBatch(batch.targets, batch.mask, batch.targets)
    torch.testing.assert_close(total_of(tied(batch)), total_of(free(batch)))
    assert "weight" not in tied.head.state_dict()
    total_of(tied(batch)).backward()
    assert table.grad.any(dim=1).all()  # the softmax reaches every row, the input only those of the batch
