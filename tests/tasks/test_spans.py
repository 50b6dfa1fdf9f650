from __future__ import annotations

import itertools
import random
import warnings
from pathlib import Path
from typing import get_args

import pytest

from headstart.errors import DataError
from headstart.tasks.conll import read_columns
from headstart.tasks.spans import (
    Scheme,
    Span,
    convert,
    illegal_places,
    legal_transitions,
    scheme_of,
    spans_of,
    tag_names,
    tags_of,
)

CONLL2003 = Path(__file__).parents[3] / "shared" / "data" / "conll2003"
ENTITY_SCHEMES: list[Scheme] = [scheme for scheme in get_args(Scheme) if scheme != "plain"]


def random_spans(rng: random.Random, length: int) -> list[Span]:
    spans, place = [], 0
    while place < length:
        size = min(rng.randint(1, 4), length - place)
        if rng.random() < 0.6:
            spans.append(Span(place, place + size, rng.choice(["PER", "LOC", "a-b"])))
        place += size
    return spans


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-PER", [(0, 1, "PER")]),
        ("I-PER I-PER O I-PER", [(0, 2, "PER"), (3, 4, "PER")]),
        ("I-PER B-PER I-PER", [(0, 1, "PER"), (1, 3, "PER")]),
        ("I-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),
        ("B-PER I-LOC I-LOC", [(0, 1, "PER"), (1, 3, "LOC")]),
        ("S-PER S-PER B-LOC E-LOC", [(0, 1, "PER"), (1, 2, "PER"), (2, 4, "LOC")]),
        ("U-PER B-LOC I-LOC L-LOC", [(0, 1, "PER"), (1, 4, "LOC")]),
        ("E-PER I-PER E-PER B-PER", [(0, 1, "PER"), (1, 3, "PER"), (3, 4, "PER")]),
        ("B-PER S-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("B I O B", [(0, 2, ""), (3, 4, "")]),
        ("B-a-b I-a-b I-a", [(0, 2, "a-b"), (2, 3, "a")]),
        ("I-PER . I-PER", [(0, 1, "PER"), (2, 3, "PER")]),
    ],
)
def test_spans_by_hand(tags: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of(tags.split()) == spans


def test_spans_of_any_sequence_are_those_of_seqeval() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="needs seqeval")
    rng = random.Random(0)
    tags = ["O", *(f"{prefix}-{type}" for prefix in "BIES" for type in ("PER", "LOC"))]
    sequences = [rng.choices(tags, k=rng.randint(1, 9)) for _ in range(5000)]
    sequences += [list(some) for some in itertools.product(["O", "B-X", "I-X", "B-Y", "I-Y"], repeat=4)]
    for sequence in sequences:
        theirs = [(start, end + 1, type) for type, start, end in metrics.get_entities(sequence)]
        assert spans_of(sequence) == theirs, sequence


@pytest.mark.parametrize("scheme", ENTITY_SCHEMES)
def test_every_scheme_writes_entities_legally_and_exactly(scheme: Scheme) -> None:
    rng = random.Random(1)
    for _ in range(500):
        length = rng.randint(0, 12)
        spans = random_spans(rng, length)
        tags = tags_of(spans, length, scheme)
        assert spans_of(tags) == spans
        assert illegal_places(tags, scheme) == []
        for other in ENTITY_SCHEMES:
            assert convert(convert(tags, other), scheme) == tags


@pytest.mark.parametrize("scheme", ENTITY_SCHEMES)
def test_sequences_are_legal_just_when_they_survive_being_written_again(scheme: Scheme) -> None:
    names = tag_names([["O", "B-X", "B-Y"]], scheme)
    start, transition, end = legal_transitions(names, scheme)
    for length in (1, 2, 3):
        for ids in itertools.product(range(len(names)), repeat=length):
            allowed = start[ids[0]] and end[ids[-1]]
            allowed = allowed and all(transition[a, b] for a, b in itertools.pairwise(ids))
            tags = [names[i] for i in ids]
            assert allowed == (convert(tags, scheme) == tags), tags
            assert allowed == (not illegal_places(tags, scheme))


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O I-PER I-PER B-PER", "iob1"),
        ("I-NP I-VP", "iob1"),
        ("O B-PER I-PER", "bio"),
        ("B-PER O", "bio"),
        ("O O", "bio"),
        ("O B-PER I-PER O I-LOC O B-LOC O B-LOC", "bio"),
        ("B-PER E-PER O", "bioes"),
        ("S-PER O", "bioes"),
        ("B-PER L-PER O", "bilou"),
        ("U-PER O", "bilou"),
        ("O B I", "bio"),
        ("DT NN VBZ", "plain"),
        ("O NN B-PER", "plain"),
        ("-LRB- IN", "plain"),
        ("", "plain"),
    ],
)
def test_the_scheme_is_recognised(tags: str, scheme: Scheme) -> None:
    assert scheme_of([tags.split()]) == scheme


def test_two_schemes_at_once_are_an_error() -> None:
    with pytest.raises(DataError, match="mix BIOES"):
        scheme_of([["S-PER"], ["U-PER"]])


def test_every_random_corpus_is_recognised() -> None:
    rng = random.Random(2)
    for scheme in ENTITY_SCHEMES:
        corpus = [tags_of(random_spans(rng, 20), 20, scheme) for _ in range(20)]
        assert scheme_of(corpus) == scheme


def test_tag_names_are_complete() -> None:
    assert tag_names([["S-PER", "O"]], "bioes") == ["O", "B-PER", "E-PER", "I-PER", "S-PER"]
    assert tag_names([["I-PER"], ["I-LOC"]], "iob1") == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert tag_names([["NN", "DT"]], "plain") == ["DT", "NN"]


def test_plain_tags_follow_each_other_freely() -> None:
    start, transition, end = legal_transitions(["DT", "NN"], "plain")
    assert start.all()
    assert transition.all()
    assert end.all()
    assert convert(["I-X", "NN"], "plain") == ["I-X", "NN"]


@pytest.mark.skipif(not CONLL2003.exists(), reason="the CoNLL-2003 files are not on this machine")
def test_conll2003_goes_through_every_scheme_and_back() -> None:
    gold = [sentence.tags or () for sentence in read_columns(CONLL2003 / "eng.testa")]
    assert scheme_of(gold) == "iob1"
    for scheme in ENTITY_SCHEMES:
        assert all(convert(convert(tags, scheme), "iob1") == list(tags) for tags in gold)
