from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

from headstart.tasks.conll import read_columns
from headstart.tasks.tag_scores import EntityCounts, accuracy_counts, counts_by_type, entity_counts

CONLL2003 = Path(__file__).parents[3] / "shared" / "data" / "conll2003"


def test_counts_by_hand() -> None:
    gold = ["B-PER", "I-PER", "O", "B-LOC"]
    predicted = ["B-PER", "O", "O", "B-LOC"]
    assert entity_counts(gold, predicted) == (1, 2, 2)
    assert accuracy_counts(gold, predicted) == (3, 4)
    by_type = counts_by_type([gold, ["B-PER"]], [predicted, ["B-ORG"]])
    assert by_type == {"LOC": (1, 1, 1), "ORG": (0, 1, 0), "PER": (0, 1, 2)}
    assert EntityCounts(1, 2, 4).precision == 0.5
    assert EntityCounts(1, 2, 4).recall == 0.25
    assert EntityCounts(1, 2, 4).f1 == pytest.approx(1 / 3)
    assert EntityCounts(0, 0, 0).f1 == 0
    with pytest.raises(ValueError, match="4 gold tags and 1 predicted"):
        entity_counts(gold, ["O"])


def test_counts_are_those_of_seqeval_on_random_corpora() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = pytest.importorskip("seqeval.metrics", reason="needs seqeval")
    rng = random.Random(3)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    gold = [rng.choices(tags, k=8) for _ in range(200)]
    predicted = [[tag if rng.random() < 0.8 else rng.choice(tags) for tag in row] for row in gold]
    total = EntityCounts(
        *map(sum, zip(*(entity_counts(a, b) for a, b in zip(gold, predicted, strict=True)), strict=True))
    )
    assert total.precision == pytest.approx(metrics.precision_score(gold, predicted))
    assert total.recall == pytest.approx(metrics.recall_score(gold, predicted))
    assert total.f1 == pytest.approx(metrics.f1_score(gold, predicted))
    theirs = metrics.classification_report(gold, predicted, output_dict=True)
    for type, counts in counts_by_type(gold, predicted).items():
        assert counts.f1 == pytest.approx(theirs[type]["f1-score"])


@pytest.mark.skipif(not CONLL2003.exists(), reason="the CoNLL-2003 files are not on this machine")
def test_conll2003_has_its_published_entities() -> None:
    gold = [sentence.tags or () for sentence in read_columns(CONLL2003 / "eng.testa")]
    counts = counts_by_type(gold, gold)
    assert {type: some.gold for type, some in counts.items()} == {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}
