"""Words for several masks and of several pieces: the beam against every answer there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from headstart.errors import ConfigError, DataError
from headstart.inspection.fill import fill
from headstart.inspection.fill_words import Filled, Filling, fill_words
from headstart.inspection.language_models import MaskedLM
from headstart.pretrained import Pretrained

RESTS = ("flower", "set", "n", "s")
WORDS = {
    **{word: (word,) for word in ("the", "sun", "su", "flower", "set", ".")},
    **{f"{begin}{rest}": (begin, f"##{rest}") for begin in ("the", "sun", "flower", "set") for rest in RESTS},
    **{f"su{rest}": ("su", f"##{rest}") for rest in RESTS if rest != "n"},
}
"""Every word of one piece or two, by the pieces that spell it: su + ##n is the piece sun. A full stop is a word."""


def every_answer(pretrained: Pretrained, text: str, pieces: int) -> list[Filling]:
    """By a plain loop: one encoding of the whole text for each piece of each answer."""
    model = MaskedLM.of(pretrained)
    found = []
    masks = text.count("[MASK]")
    allowed = {word: spelled for word, spelled in WORDS.items() if len(spelled) <= pieces}
    for words in itertools.product(allowed, repeat=masks):
        ids = [model.tokenizer.cls, *model.tokenizer.encode(text).ids.tolist(), model.tokenizer.sep]
        total = 0.0
        for word in words:
            place = ids.index(model.tokenizer.mask)
            spelled = [model.tokenizer.id(piece) for piece in allowed[word]]
            ids[place : place + 1] = [model.tokenizer.mask] * len(spelled)
            for offset, piece in enumerate(spelled):
                total += chances(model, tuple(ids), place + offset)[piece]
                ids[place + offset] = piece
        found.append(Filling(words, sum(len(allowed[word]) for word in words), total))
    return sorted(found, key=lambda one: -one.per_piece)


SEEN: dict[tuple[tuple[int, ...], int], list[float]] = {}


def chances(model: MaskedLM, ids: tuple[int, ...], place: int) -> list[float]:
    if (ids, place) not in SEEN:
        with torch.no_grad():
            mask = torch.ones(1, len(ids), dtype=torch.bool)
            top = model.encoder.hidden_states(torch.tensor([ids]), mask)[-1][0, place]
            SEEN[ids, place] = model.logits(top).log_softmax(-1).tolist()
    return SEEN[ids, place]


@pytest.mark.parametrize(
    ("text", "pieces"), [("the [MASK] .", 2), ("the [MASK] is [MASK]", 1), ("[MASK] sun [MASK] .", 2)]
)
def test_a_wide_beam_finds_the_best_of_all_answers(tiny_bert: Pretrained, text: str, pieces: int) -> None:
    wanted = every_answer(tiny_bert, text, pieces)[:10]
    found = fill_words(tiny_bert, text, 10, pieces=pieces, beam=1_000).together
    assert [(one.words, one.pieces) for one in found] == [(one.words, one.pieces) for one in wanted]
    assert [one.log_probability for one in found] == pytest.approx([one.log_probability for one in wanted], abs=1e-4)


def test_a_beam_of_one_takes_the_best_piece_each_time(tiny_bert: Pretrained) -> None:
    (found,) = fill_words(tiny_bert, "[MASK] sun [MASK]", 5, beam=1).together
    first = fill_words(tiny_bert, "[MASK] sun [MASK]").alone[0][0]
    second = fill_words(tiny_bert, f"{first.piece} sun [MASK]").alone[0][0]
    assert found.words == (first.piece, second.piece)
    assert found.log_probability == pytest.approx(np.log(first.probability * second.probability), abs=1e-5)


def test_a_single_mask_of_one_piece_has_the_probabilities_of_fill_without_parts_of_words(tiny_bert: Pretrained) -> None:
    text = "the [MASK] ."
    pieces = fill(tiny_bert, text, 100)[0]
    whole = [(one.piece, one.probability) for one in pieces if not one.piece.startswith(("##", "["))]
    found = fill_words(tiny_bert, text, 100)
    assert [one.piece for one in found.alone[0]] == [word for word, _ in whole]
    assert [one.probability for one in found.alone[0]] == pytest.approx([p for _, p in whole], abs=1e-6)
    assert [one.words for one in found.together] == [(word,) for word, _ in whole]


def test_a_text_that_longer_words_would_make_too_long_is_refused(tiny_bert: Pretrained) -> None:
    text = " ".join(["sun"] * 13 + ["[MASK]"])  # 16 with its marks
    assert fill_words(tiny_bert, text).together
    with pytest.raises(DataError, match=r"With 2 pieces .* the text has 17 .* reads 16"):
        fill_words(tiny_bert, text, pieces=2)


@pytest.mark.parametrize(
    ("arguments", "says"), [({"pieces": 0}, "--pieces"), ({"beam": 0}, "beam"), ({"most": 0}, "0")]
)
def test_counts_are_one_or_more(tiny_bert: Pretrained, arguments: dict[str, int], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        fill_words(tiny_bert, "the [MASK]", **arguments)


def test_shown_as_json_and_in_a_notebook() -> None:
    filled = Filled("a [MASK] b [MASK]", (), (Filling(("<", "sunset"), 3, -6.0),))
    assert filled.with_words(filled.together[0]) == "a < b sunset"
    assert filled.as_table()["together"] == [
        {"words": ["<", "sunset"], "pieces": 3, "log_probability": -6.0, "log_probability_per_piece": -2.0}
    ]
    assert "<td>&lt;, sunset</td><td>-6.00</td><td>-2.00</td><td>3</td>" in filled._repr_html_()
