import numpy as np

from headstart.text.characters import MAX_CHARACTERS, N_CHARACTERS, character_table, characters_of


def test_a_word_is_its_bytes_between_marks():
    expected = [259, *(byte + 1 for byte in b"caf\xc3\xa9"), 260] + [261] * 43
    assert characters_of("café").tolist() == expected


def test_long_words_keep_their_first_48_bytes():
    assert characters_of("x" * 99).tolist() == [259] + [ord("x") + 1] * 48 + [260]


def test_marks_of_a_sentence():
    assert characters_of("<S>").tolist() == [259, 257, 260] + [261] * 47
    assert characters_of("</S>").tolist() == [259, 258, 260] + [261] * 47


def test_a_table_is_its_words_one_by_one():
    words = ["<S>", "</S>", "<UNK>", "a", "", "naïve", "字" * 30]
    table = character_table(words)
    assert table.shape == (7, MAX_CHARACTERS)
    assert table.dtype == np.int16
    assert 0 < table.min() <= table.max() < N_CHARACTERS
    for row, word in zip(table, words, strict=True):
        np.testing.assert_array_equal(row, characters_of(word))
    assert character_table([]).shape == (0, MAX_CHARACTERS)
