"""Runs that cannot fit are refused before anything is allocated."""

from __future__ import annotations

import pytest

from headstart.config import overlay, resolve
from headstart.errors import ConfigError
from headstart.pretraining.memory import available_bytes, check_memory
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
    # its softmax, BERT mini a row of its embeddings, each four times.
    numbers = {"skipgram": 300, "cbow": 300, "glove": 400}
    width = config.encoder.projection if name == "elmo" else config.encoder.width if name == "bert" else 0
    assert per_word == 4 * numbers.get(name, 4 * (width + 1))
