"""Runs that cannot fit are refused before anything is allocated."""

from __future__ import annotations

import pytest
from torch import nn

from headstart.config import overlay, resolve
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.errors import ConfigError
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.elmo.objective import ElmoLanguageModel
from headstart.pretraining.memory import available_bytes, check_memory
from headstart.pretraining.neural import BYTES_PER_PARAMETER
from headstart.pretraining.objectives import OBJECTIVES


def test_what_exceeds_memory_by_far_is_refused_with_both_figures() -> None:
    check_memory(15 * 10**9, available=8 * 10**9)
    with pytest.raises(ConfigError, match=r"needs 17 GB .* but 8\.0 GB are available"):
        check_memory(17 * 10**9, available=8 * 10**9)
    assert available_bytes() > 10**8


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_estimate_grows_with_the_vocabulary_by_its_rows(name: str) -> None:
    pretraining = OBJECTIVES[name]
    config = resolve(pretraining.config, overlay(pretraining.defaults(None, {}), {}))
    per_word = pretraining.training_bytes(config, 1_001) - pretraining.training_bytes(config, 1_000)
    # A row of the tables, its gradient or sums, and a bias: word2vec 3 x 100 floats, GloVe 4 x 100, ELMo mini a row of
    # its softmax and one of its table, BERT mini a row of its embeddings, each four times.
    numbers = {"skipgram": 300, "cbow": 300, "glove": 400}
    width = config.encoder.projection if name == "elmo" else config.encoder.width if name == "bert" else 0
    tables = 2 if name == "elmo" else 1
    assert per_word == 4 * numbers.get(name, 4 * (tables * width + 1))


@pytest.mark.parametrize(("name", "size"), [("elmo", "tiny"), ("elmo", "mini"), ("bert", "tiny"), ("bert", "mini")])
def test_the_estimate_is_close_to_the_parameters_that_there_are(name: str, size: str) -> None:
    pretraining = OBJECTIVES[name]
    config = resolve(pretraining.config, pretraining.defaults(size, {}))
    V = 2_000
    model: nn.Module
    if name == "elmo":
        model = ElmoLanguageModel(Elmo(config.encoder, V), V)
    else:
        model = MaskedLanguageModel(Bert(config.encoder, V))
    there_are = BYTES_PER_PARAMETER * sum(p.numel() for p in model.parameters())
    assert 0.9 * there_are < pretraining.training_bytes(config, V) <= there_are
