import random
from itertools import pairwise

import pytest

from headstart.text.words import split_words, word_spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know a well-known 3.14 or 1,000.50, ok?", "I don't know a well - known 3.14 or 1,000.50 , ok ?"),
        ("l’homme ... -- !!! a.b", "l’homme ... -- !!! a . b"),
        ("the U.S. and e.g. J.R.R.Tolkien.", "the U.S. and e.g. J.R.R. Tolkien ."),
        ("他们very好。カタカナ", "他 们 very 好 。 カタカナ"),
        ("हिन्दी में cafe\u0301", "हिन्दी में cafe\u0301"),
        ("see http://a.b/c?d=1). and www.x.org, now", "see http://a.b/c?d=1 ) . and www.x.org , now"),
        ("j.doe@x.co.uk and @you, a @-@ b @ c", "j.doe@x.co.uk and @you , a @-@ b @ c"),
        ("<unk> </S> a<b a <3", "<unk> </S> a < b a < 3"),
        ("it 's n't 'quoted' _so_ x_y", "it 's n't ' quoted ' _ so _ x _ y"),
        ("👍🏽 👩‍👩‍👧❤️ 🇩🇪🇫🇷 1️⃣ ★★★ 😂😂", "👍🏽 👩‍👩‍👧 ❤️ 🇩🇪 🇫🇷 1️⃣ ★★★ 😂😂"),
        ("a\x00b\u200bc\ufeff", "a b c"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("", ""),
    ],
)
def test_words(text, words):
    assert split_words(text) == words.split()


def test_both_functions_agree_and_lose_no_visible_character():
    rng = random.Random(3)
    alphabet = "abzAZ019 \n\t.,'’-–!?@_:/<>()\"éßİ中日かहि्\u0301\u200d\u00ad👍🏽🇩🇪½²\u3000"
    for _ in range(3000):
        text = "".join(rng.choices(alphabet, k=rng.randrange(40)))
        spans = word_spans(text)
        assert split_words(text) == [text[first:last] for first, last in spans]
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        outside = set(text) - set("".join(text[first:last] for first, last in spans))
        assert all(character.isspace() or character in "\u200d\u00ad" for character in outside)


def test_long_runs_without_space_are_split_too():
    assert split_words("abc," * 1000) == ["abc", ","] * 1000
