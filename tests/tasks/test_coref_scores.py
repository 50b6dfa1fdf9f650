from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest

from headstart.tasks.coref_documents import Chain, without_singletons
from headstart.tasks.coref_scores import (
    CONLL_F1,
    LEA_F1,
    MENTION_F1,
    TITLES,
    RecallPrecision,
    aligned,
    b_cubed,
    ceaf_e,
    conll_counts,
    lea,
    mentions,
    muc,
    summed_scores,
)

Lists = list[list[int]]
SCORERS = {"muc": muc, "b_cubed": b_cubed, "ceaf_e": ceaf_e, "lea": lea, "mentions": mentions}


def chains(text: str) -> list[Chain]:
    """ "abc de" -> two chains, each letter a mention of its own word."""
    return [tuple((ord(letter), ord(letter) + 1) for letter in chain) for chain in text.split()]


def scores_of(key: str, response: str) -> dict[str, RecallPrecision]:
    sides = aligned(chains(key), chains(response))
    return {name: scorer(sides) for name, scorer in SCORERS.items()}


def test_the_example_of_the_reference_scorers_paper() -> None:
    """Pradhan et al. 2014, figure 1 and section 4: {a,b,c} {d,e,f,g} against {a,b} {c,d} {f,g,h,i}."""
    found = scores_of("abc defg", "ab cd fghi")
    assert found["muc"] == RecallPrecision(2, 5, 2, 5)
    assert found["b_cubed"] == pytest.approx((4 / 3 + 1 / 3 + 1 / 4 + 4 / 4, 7, 4 / 2 + 1 / 2 + 1 / 2 + 4 / 4, 8))
    assert found["ceaf_e"] == pytest.approx((4 / 5 + 4 / 8, 2, 4 / 5 + 4 / 8, 3))
    rounded = {name: (round(s.recall, 2), round(s.precision, 2), round(s.f1, 2)) for name, s in found.items()}
    assert rounded["muc"] == (0.40, 0.40, 0.40)
    assert rounded["b_cubed"][:2] == (0.42, 0.50)
    assert found["b_cubed"].f1 == pytest.approx(0.4545, abs=1e-4)
    assert rounded["ceaf_e"] == (0.65, 0.43, 0.52)
    assert found["mentions"] == RecallPrecision(6, 7, 6, 8)
    # Links: 1 of 3, 1 of 6; and 1 of 1, 0 of 1, 1 of 6.
    assert found["lea"] == pytest.approx((3 / 3 + 4 / 6, 7, 2 + 0 + 4 / 6, 8))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("a bc def", (1.0, 1.0, 1.0)),
        ("a de", (0.6, 0.9, 0.72)),
        ("a bcx defy z", (0.88571, 0.66429, 0.75918)),
        ("a bcx dy z", (0.73333, 0.55, 0.62857)),
        ("a bcxB dy z", (0.68889, 0.51667, 0.59048)),
        ("a bcx dy Bz", (0.73333, 0.55, 0.62857)),
        ("a bcxb dy z", (0.73333, 0.55, 0.62857)),  # b twice in one chain
        ("a bcx dy bz", (0.73333, 0.55, 0.62857)),  # b in two chains
        ("a bcx dy bbbbbbbbbbz", (0.73333, 0.55, 0.62857)),
    ],
)
def test_the_cases_that_the_reference_scorer_is_tested_with(
    response: str, expected: tuple[float, float, float]
) -> None:
    found = scores_of("a bc def", response)["ceaf_e"]
    assert (found.recall, found.precision, found.f1) == pytest.approx(expected, abs=1e-5)


def test_a_response_with_missing_mentions() -> None:
    found = scores_of("a bc def", "a de")
    assert found["b_cubed"] == pytest.approx((7 / 3, 6, 3, 3))
    assert found["muc"] == (1, 3, 1, 1)
    assert found["lea"] == pytest.approx((1 + 0 + 1, 6, 1 + 2, 3))


@pytest.mark.parametrize("name", SCORERS)
def test_traps(name: str) -> None:
    assert scores_of("", "")[name] == (0, 0, 0, 0)
    assert scores_of("", "")[name].f1 == 0.0
    assert scores_of("ab", "")[name].f1 == 0.0
    assert scores_of("", "ab")[name].f1 == 0.0
    assert scores_of("ab", "cd")[name].f1 == 0.0
    assert scores_of("abc de f", "abc de f")[name].f1 == 1.0
    assert scores_of("a b c", "a b c")[name].f1 == (0.0 if name == "muc" else 1.0)  # singletons have no links
    one, many = scores_of("ab cd ef", "abcdef")[name], scores_of("abcdef", "ab cd ef")[name]
    assert one[:2] == pytest.approx(many[2:])  # splitting is merging seen from the other side
    assert one[2:] == pytest.approx(many[:2])
    if name != "mentions":
        assert one.f1 < 1.0


def test_chains_that_split_and_merge() -> None:
    merged, split = scores_of("ab cd", "abcd"), scores_of("abcd", "ab cd")
    assert (merged["muc"].recall, merged["muc"].precision) == (1.0, 2 / 3)
    assert (split["muc"].recall, split["muc"].precision) == (2 / 3, 1.0)
    assert merged["b_cubed"] == pytest.approx((4, 4, 2, 4))
    assert merged["ceaf_e"] == pytest.approx((2 * 2 / 6, 2, 2 * 2 / 6, 1))
    assert merged["lea"] == pytest.approx((4, 4, 4 * 2 / 6, 4))
    crossed = scores_of("ab cd", "ac bd")
    assert (crossed["muc"].f1, crossed["b_cubed"].f1, crossed["ceaf_e"].f1) == (0.0, 0.5, 0.5)
    assert crossed["mentions"].f1 == 1.0


def test_repeated_mentions_of_the_key_stay() -> None:
    """b belongs to the last of its chains, and both chains are as long as they are."""
    found = scores_of("ab bc", "ab c")
    assert found["muc"] == (0, 2, 0, 1)
    assert found["b_cubed"] == pytest.approx((2 / 2 + 1 / 2 + 1 / 2, 4, 2 / 2 + 1 / 2 + 1, 3))
    assert found["mentions"] == (3, 3, 3, 3)


# --- against plain loops ----------------------------------------------------------------------------------------------


def slow_scores(key: Lists, response: Lists) -> dict[str, tuple[float, ...]]:
    """The definitions, mention by mention, on lists that keep repeated mentions."""
    in_key = [m for chain in key for m in chain]
    seen: list[int] = []
    kept: Lists = []
    for chain in response:
        kept.append([])
        for m in chain:
            if m in in_key and m in seen:
                continue
            seen.append(m)
            kept[-1].append(m)
    response = [chain for chain in kept if chain]
    return {
        "muc": slow_muc(key, response),
        "b_cubed": slow_b_cubed(key, response),
        "ceaf_e": slow_ceaf_e(key, response),
        "lea": (*slow_lea(key, response), *slow_lea(response, key)),
        "mentions": slow_mentions(key, response),
    }


def last_with(mention: int, some: Lists) -> int | None:
    return next((n for n in reversed(range(len(some))) if mention in some[n]), None)


def slow_muc(key: Lists, response: Lists) -> tuple[float, ...]:
    right = 0
    for chain in response:
        for place, m in enumerate(chain):
            home = last_with(m, key)
            right += home is not None and any(last_with(other, key) == home for other in chain[place + 1 :])
    return right, sum(len(c) - 1 for c in key), right, sum(len(c) - 1 for c in response)


def slow_b_cubed(key: Lists, response: Lists) -> tuple[float, ...]:
    recalled = precise = 0.0
    for chain in response:
        for m in chain:
            home = last_with(m, key)
            if home is not None:
                common = sum(other in key[home] for other in chain)
                recalled += common / len(key[home])
                precise += common / len(chain)
    return recalled, sum(map(len, key)), precise, sum(map(len, response))


def slow_ceaf_e(key: Lists, response: Lists) -> tuple[float, ...]:
    """The best of all matchings, one by one."""

    def similarity(a: list[int], b: list[int]) -> float:
        return 2 * sum(m in b for m in a) / (len(a) + len(b))

    padded = [*response, *([] for _ in key)]
    best = max(
        sum(similarity(a, b) for a, b in zip(key, chosen, strict=True) if b)
        for chosen in itertools.permutations(padded, len(key))
    )
    return best, len(key), best, len(response)


def slow_lea(own: Lists, others: Lists) -> tuple[float, float]:
    found = 0.0
    for chain in own:
        homes = [last_with(m, others) for m in chain]
        if len(chain) == 1:
            found += homes[0] is not None and len(others[homes[0]]) == 1
        else:
            pairs = list(itertools.combinations(homes, 2))
            found += len(chain) * sum(a is not None and a == b for a, b in pairs) / len(pairs)
    return found, sum(map(len, own))


def slow_mentions(key: Lists, response: Lists) -> tuple[float, ...]:
    a, b = {m for c in key for m in c}, {m for c in response for m in c}
    return len(a & b), len(a), len(a & b), len(b)


def generated(rng: random.Random, mentions: int, most_chains: int, repeats: bool) -> Lists:
    some: Lists = [[] for _ in range(rng.randint(1, most_chains))]
    for m in range(mentions):
        if rng.random() < 0.8:
            rng.choice(some).append(m)
    for _ in range(rng.randint(1, 3) if repeats else 0):
        rng.choice(some).append(rng.randrange(mentions))
    return [chain for chain in some if chain]


@pytest.mark.parametrize("repeats", [(False, False), (False, True), (True, False), (True, True)])
def test_every_score_equals_its_definition_on_generated_documents(repeats: tuple[bool, bool]) -> None:
    rng = random.Random(7)
    for _ in range(150):
        n = rng.randint(1, 9)
        key, response = (generated(rng, n, 4, repeat) for repeat in repeats)
        sides = aligned(*([tuple((m, m + 1) for m in chain) for chain in side] for side in (key, response)))
        slow = slow_scores(key, response)
        for name, scorer in SCORERS.items():
            assert scorer(sides) == pytest.approx(slow[name]), (name, key, response)


def test_the_order_of_chains_and_mentions_does_not_matter() -> None:
    rng = random.Random(3)
    for _ in range(30):
        key, response = chains("abc de f gh"), chains("ab cde fg xy")
        counts = conll_counts(key, response)
        rng.shuffle(key)
        response = [tuple(rng.sample(chain, len(chain))) for chain in response]
        rng.shuffle(response)
        assert conll_counts(key, response) == pytest.approx(counts)


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_the_conll_f1_is_the_mean_of_three_over_summed_counts() -> None:
    pairs = [("abc defg", "ab cd fghi"), ("ab cd", "abcd"), ("", ""), ("ab", "")]
    rows = np.array([conll_counts(chains(key), chains(response)) for key, response in pairs])
    assert rows.shape == (4, len(CONLL_F1.counts))
    totals = summed_scores(*zip(*[(chains(key), chains(response)) for key, response in pairs], strict=True))
    expected = sum(totals[name].f1 for name in ("muc", "b_cubed", "ceaf_e")) / 3
    assert CONLL_F1.of(rows) == pytest.approx(expected)
    resampled = CONLL_F1.value(np.stack([rows.sum(axis=0), rows[[1, 1, 3]].sum(axis=0), np.zeros(rows.shape[1])]))
    assert resampled[0] == pytest.approx(expected)
    assert resampled[2] == 0.0
    assert list(totals) == list(TITLES)
    for metric, name in ((LEA_F1, "lea"), (MENTION_F1, "mentions")):
        assert metric.of(np.array([totals[name]])) == pytest.approx(totals[name].f1)


def test_singletons_count_unless_they_are_dropped_on_both_sides() -> None:
    key, response = [chains("ab c d")], [chains("ab c e")]
    assert summed_scores(key, response)["b_cubed"] == (3, 4, 3, 4)
    assert summed_scores(key, response, singletons=False)["b_cubed"] == (2, 2, 2, 2)
    assert without_singletons(key[0]) == tuple(chains("ab"))


def test_a_long_document_is_scored_in_seconds() -> None:
    rng = random.Random(0)
    key = [tuple((w, w + 1) for w in range(first, first + 4)) for first in range(0, 20_000, 4)]
    words = [(w, w + 1) for w in range(20_000)]
    swapped = {w: rng.choice(words) if rng.random() < 0.1 else w for w in words}
    response = [tuple(dict.fromkeys(swapped[m] for m in chain)) for chain in key]
    before = time.perf_counter()
    counts = conll_counts(key, response)
    assert time.perf_counter() - before < 20
    assert 0.7 < CONLL_F1.of(np.array([counts])) < 1.0
