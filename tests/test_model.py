import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.rows import TextBatch
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.kernels.spelling import WORD_PADDING
from headstart.encoders.registry import ENCODERS
from headstart.encoders.representations import Representations
from headstart.errors import ConfigError
from headstart.heads.classify import ClassifyHead
from headstart.heads.classify import ClassifyHeadConfig as NetworkConfig
from headstart.heads.pool import POOLS
from headstart.heads.recurrent import CELLS
from headstart.mix import MIXES, MixConfig
from headstart.model import PLACES, Model, build_reader, check_fit, widths_for_head

C, V = 3, 40
HOWS = ["frozen", "finetune", "gradual"]
LENGTHS = [6, 3, 4, 6, 5]
MakeModel = Callable[..., Model]
MakeBatch = Callable[..., TextBatch]


def built(encoder: Encoder, mix: MixConfig, network: NetworkConfig) -> Model:
    readers = [build_reader(encoder, mix)]
    head = ClassifyHead(*widths_for_head(readers), C, network)
    check_fit(mix, head)
    return Model(readers, head)


@pytest.fixture
def model(tiny_encoder: Callable[..., Encoder]) -> MakeModel:
    """(kind, mix, network) -> a model with a tiny encoder."""

    def build(kind: str, mix: MixConfig | None = None, network: NetworkConfig | None = None) -> Model:
        encoder = tiny_encoder(kind, V)
        made = built(encoder, mix or MixConfig(), network or NetworkConfig(width=4)).eval()
        with torch.no_grad():  # away from the zeros and ones where gradients vanish
            for parameter in made.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return made

    return build


@pytest.fixture
def batch_for(tiny_ids: Callable[..., Tensor]) -> MakeBatch:
    """(kind, lengths) -> texts of so many tokens, each token but the first a word."""

    def build(kind: str, lengths: list[int] = LENGTHS) -> TextBatch:
        T = max(lengths)
        ids = tiny_ids(kind, len(lengths), T, V - 1)
        if ids.dim() == 3:
            ids[..., 4:] = WORD_PADDING
        mask = torch.arange(T) < torch.tensor(lengths)[:, None]
        starts = torch.arange(1, T).expand(len(lengths), -1).masked_fill(~mask[:, 1:], -1)
        return TextBatch(ids, mask, None, starts)

    return build


def row_of(batch: TextBatch, b: int, n: int) -> TextBatch:
    return TextBatch(batch.ids[b : b + 1, :n], batch.mask[b : b + 1, :n], None, batch.word_starts[b : b + 1, : n - 1])


def settings() -> Iterator[tuple[MixConfig, NetworkConfig]]:
    """Every mix, place and pool with an LSTM; every mix and pool without a cell; every cell and pool with one mix."""
    for mixing, pool in itertools.product(MIXES, POOLS):
        for place in PLACES:
            yield MixConfig(kind=mixing, place=place), NetworkConfig(width=4, pool=pool)
        yield MixConfig(kind=mixing, norm=True), NetworkConfig(cell="none", pool=pool)
    for cell, pool in itertools.product(CELLS, POOLS):
        yield MixConfig(), NetworkConfig(cell=cell, width=8, pool=pool, layers=2)


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_combination_repeats_itself_and_gradients_reach_exactly_what_is_trainable(
    kind: str, model: MakeModel, batch_for: MakeBatch
) -> None:
    batch = batch_for(kind)
    weights = torch.randn(len(LENGTHS), C, generator=torch.Generator().manual_seed(2))
    for mix, network in settings():
        made = model(kind, mix, network)
        with torch.no_grad():
            first = made([batch])
        assert first.shape == (len(LENGTHS), C)
        assert first.isfinite().all(), (mix, network)
        # Where the encoder is cut does not hang on how words are pooled, but for the first position and its pooler.
        for how in HOWS if network.pool in ("max", "first") else ["finetune"]:
            made.train_only(how, 1)
            made.zero_grad(set_to_none=True)
            logits = made([batch])
            torch.testing.assert_close(logits, first, rtol=0, atol=1e-6)
            (logits * weights).sum().backward()
            for name, parameter in made.named_parameters():
                touched = parameter.grad is not None and bool(parameter.grad.any())
                assert touched == parameter.requires_grad, (name, how, mix, network)


@pytest.mark.parametrize("kind", ENCODERS)
def test_training_ways_open_the_encoder_from_its_top(kind: str, model: MakeModel) -> None:
    made = model(kind, network=NetworkConfig(cell="none", pool="first"), mix=MixConfig(kind="last"))
    *encoder, head = made.groups()
    n = len(encoder)

    def trained() -> list[bool]:
        flags = [{parameter.requires_grad for _, parameter in group} for group in [*encoder, head]]
        assert all(len(flag) == 1 for flag in flags)
        return [flag.pop() for flag in flags]

    made.train_only("frozen")
    assert trained() == [False] * n + [True]
    for stages in range(n + 2):
        made.train_only("gradual", stages)
        assert trained() == [False] * max(0, n - stages) + [True] * min(n, stages) + [True]
    made.train_only("finetune")
    assert trained() == [True] * (n + 1)


@pytest.mark.parametrize("kind", ENCODERS)
def test_groups_hold_every_parameter_once_under_its_name(kind: str, model: MakeModel) -> None:
    made = model(kind, MixConfig(place="both"))
    *encoder, head = made.groups()
    grouped = [pair for group in [*encoder, head] for pair in group]
    assert len(grouped) == len({id(parameter) for _, parameter in grouped})
    assert dict(grouped) == dict(made.named_parameters())
    assert all(name.startswith("readers.0.encoder.") for group in encoder for name, _ in group)
    assert not any(name.startswith("readers.0.encoder.") for name, _ in head)


def test_stages_follow_the_flow_of_the_encoder(model: MakeModel) -> None:
    bottom, *_, top = model("bert").groups()[:-1]
    assert {name.split(".")[3] for name, _ in bottom} == {"words", "positions", "segments", "norm"}
    assert {".".join(name.split(".")[3:5]) for name, _ in top} == {"blocks.1", "pooler.weight", "pooler.bias"}
    stages = model("elmo").groups()[:-1]
    assert [{name.split(".")[3] for name, _ in stage} for stage in stages] == [{"characters"}, {"layers"}, {"layers"}]


def test_the_pooler_is_trained_only_where_it_is_used(model: MakeModel) -> None:
    used = model("bert", MixConfig(kind="last"), NetworkConfig(cell="none", pool="first"))
    unused = model("bert", MixConfig(kind="last"), NetworkConfig(cell="none", pool="mean"))
    for made, expected in ((used, True), (unused, False)):
        made.train_only("finetune")
        assert {p.requires_grad for p in made.only_reader.encoder.pooler.parameters()} == {expected}  # type: ignore[union-attr]


def test_bert_is_classified_as_published(model: MakeModel, batch_for: MakeBatch) -> None:
    made = model("bert", MixConfig(kind="last"), NetworkConfig(cell="none", pool="first"))
    batch = batch_for("bert")
    first = torch.cat([torch.zeros(len(LENGTHS), 1, dtype=torch.int64), batch.word_starts], dim=1)
    logits = made([TextBatch(batch.ids, batch.mask, None, first)])
    encoder = made.only_reader.encoder
    assert isinstance(encoder, Bert)
    cls = encoder.hidden_states(batch.ids, batch.mask)[-1][:, 0]
    torch.testing.assert_close(logits, made.head.output(torch.tanh(encoder.pooler(cls))))


@pytest.mark.parametrize(
    ("mix", "standardise"),
    [
        *((MixConfig(kind=kind), False) for kind in MIXES if kind != "last"),
        (MixConfig(kind="last", norm=True), False),
        (MixConfig(kind="last"), True),
    ],
)
def test_the_pooler_never_reads_other_vectors_than_it_was_pretrained_on(
    mix: MixConfig, standardise: bool, model: MakeModel, batch_for: MakeBatch
) -> None:
    made, batch = model("bert", mix, NetworkConfig(cell="none", pool="first")), batch_for("bert")
    if standardise:
        made.only_reader.standardise(
            torch.randn(made.only_reader.encoder.shape), 0.5 + torch.rand(made.only_reader.encoder.shape)
        )
    first = torch.cat([torch.zeros(len(LENGTHS), 1, dtype=torch.int64), batch.word_starts], dim=1)
    R = made.only_reader.encoder(batch.ids, batch.mask).at_words(first)
    mixed = made.only_reader.mixes["input"](
        Representations((R.layers - made.only_reader.shift) * made.only_reader.scale, R.mask)
    )
    logits = made([TextBatch(batch.ids, batch.mask, None, first)])
    torch.testing.assert_close(logits, made.head.output(mixed[:, 0]))
    made.train_only("finetune")
    assert not any(parameter.requires_grad for parameter in made.only_reader.encoder.pooler_parameters())


@pytest.mark.parametrize("kind", ENCODERS)
def test_padding_and_neighbours_change_nothing(kind: str, model: MakeModel, batch_for: MakeBatch) -> None:
    made, batch = model(kind, MixConfig(norm=True, place="both")), batch_for(kind)
    together = made([batch])
    for b, n in enumerate(LENGTHS):
        torch.testing.assert_close(made([row_of(batch, b, n)])[0], together[b], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ENCODERS)
def test_ready_features_give_the_same_logits(kind: str, model: MakeModel, batch_for: MakeBatch) -> None:
    made, batch = model(kind), batch_for(kind)
    R = made.only_reader.encoder(batch.ids, batch.mask).at_words(batch.word_starts)
    with torch.no_grad():
        torch.testing.assert_close(made.read([R]), made([batch]), atol=1e-6, rtol=1e-5)


def test_the_output_place_reads_the_lowest_layer_and_both_places_weigh_apart(
    model: MakeModel, batch_for: MakeBatch
) -> None:
    made, batch = model("elmo", MixConfig(place="output"), NetworkConfig(width=4, pool="mean")), batch_for("elmo")
    R = made.only_reader.encoder(batch.ids, batch.mask).at_words(batch.word_starts)
    expected = made.head(R.layers[0], R.mask, made.only_reader.mixes["output"](R))
    torch.testing.assert_close(made.read([R]), expected)
    both = model("elmo", MixConfig(place="both"))
    assert both.mix_weights()[0]["input"] != both.mix_weights()[0]["output"]


def test_mix_weights_and_penalty_are_those_of_the_mixes(model: MakeModel) -> None:
    made = model("elmo", MixConfig(place="both", pull=0.5))
    learned = made.mix_weights()[0]
    assert list(learned) == ["input", "output"]
    for entry in learned.values():
        assert len(entry["weights"]) == 3
        assert sum(entry["weights"]) == pytest.approx(1)
    expected = 0.5 * sum((s - 1 / 3) ** 2 for entry in learned.values() for s in entry["weights"])
    assert made.penalty().item() == pytest.approx(expected, rel=1e-4)
    assert model("elmo", MixConfig(kind="last", pull=0.5)).mix_weights() == [{}]


def test_a_frozen_encoder_drops_nothing_in_training_and_an_opened_one_does(
    model: MakeModel, batch_for: MakeBatch
) -> None:
    made, batch = model("bert", network=NetworkConfig(width=4, dropout=0.0)), batch_for("bert")
    expected = made([batch])
    made.train_only("frozen")
    made.train()
    logits = made([batch])
    torch.testing.assert_close(logits, expected)
    logits.sum().backward()
    assert all(parameter.grad is None for parameter in made.only_reader.encoder.parameters())  # type: ignore[union-attr]
    made.train_only("gradual", 1)
    assert not torch.allclose(made([batch]), expected)


def test_no_tensor_is_saved_twice(model: MakeModel) -> None:
    made = model("bert", MixConfig(kind="last"), NetworkConfig(cell="none", pool="first"))
    places = [tensor.data_ptr() for tensor in made.state_dict().values()]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("kind", ENCODERS)
def test_eight_examples_are_learned_by_heart(kind: str, model: MakeModel, batch_for: MakeBatch) -> None:
    made, batch = model(kind, network=NetworkConfig(width=8, dropout=0.0)), batch_for(kind, [6, 3, 4, 5, 6, 2, 5, 4])
    gold = torch.arange(8) % C
    made.train_only("finetune")
    optimizer = torch.optim.Adam([p for p in made.parameters() if p.requires_grad], lr=0.03)
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(made([batch]), gold)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


def test_what_cannot_be_built_is_refused(model: MakeModel) -> None:
    with pytest.raises(ConfigError, match=r"mix\.place 'both' .* network\.cell is 'none'"):
        model("static", MixConfig(place="both"), NetworkConfig(cell="none"))
    with pytest.raises(ConfigError, match=r"No way to train called 'finetun'\. Did you mean 'finetune'"):
        model("static").train_only("finetun")
    with pytest.raises(ConfigError, match="number of open layer groups, 0 or more; got None"):
        model("static").train_only("gradual")


@pytest.mark.parametrize("kind", MIXES)
@pytest.mark.parametrize("norm", [False, True])
def test_a_model_that_says_so_reads_the_mean_of_the_words_as_the_words(kind: str, norm: bool, model: MakeModel) -> None:
    made = model("elmo", MixConfig(kind=kind, norm=norm), NetworkConfig(cell="none", pool="mean"))
    assert made.reads_mean_of_words() == (kind != "attention" and not norm)
    assert not model("elmo", network=NetworkConfig(cell="none", pool="max")).reads_mean_of_words()
    assert not model("elmo", network=NetworkConfig(cell="lstm", pool="mean", width=4)).reads_mean_of_words()
    K, D = 3, 8
    made.only_reader.standardise(torch.randn(K, D), torch.rand(K, D) + 0.5)
    mask = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    words = torch.randn(K, len(LENGTHS), 6, D) * mask[..., None]
    means = words.sum(dim=2, keepdim=True) / torch.tensor(LENGTHS)[:, None, None]
    from_words = made.read([Representations(words, mask)])
    from_means = made.read([Representations(means, mask[:, :1])])
    assert torch.allclose(from_words, from_means, atol=1e-5) == made.reads_mean_of_words()


@pytest.mark.parametrize("how", HOWS)
def test_batches_are_divided_for_a_bert_that_is_trained_and_no_recurrent_network(how: str, model: MakeModel) -> None:
    plain = NetworkConfig(cell="none", pool="first")
    for kind, network, wanted in [
        ("bert", plain, True),
        ("elmo", plain, False),
        ("bert", NetworkConfig(width=4), False),
    ]:
        made = model(kind, network=network)
        made.train_only(how, 2)
        assert made.is_data_parallel() == (wanted and how != "frozen")
