import json
import random
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer
from headstart.text.wordpiece_learning import learn_wordpiece
from headstart.text.wordpiece_loading import load_wordpiece

BERT_VOCAB = Path(__file__).parents[3] / "shared" / "data" / "bert_vocab" / "bert-base-uncased-vocab.txt"

LETTERS = [
    "a",
    "b",
    "c",
    "e",
    "i",
    "n",
    "o",
    "s",
    "t",
    "1",
    "9",
    "é",
    "ß",
    "Ω",
    "中",
    "文",
    "か",
    "😀",
    ".",
    ",",
    "'",
    "-",
]
WORDS = ["the", "The", "cat", "Cat", "nation", "café", "un", "##able", "##ation", "http", "one"]
PIECES = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]


def generated_lines(n: int) -> list[str]:
    """Lines with accents, CJK, emoji, addresses, control characters, odd spaces, marks and very long words."""
    rng = random.Random(7)
    parts = [
        *[
            "the",
            "The",
            "cats",
            "nations",
            "CAFÉ",
            "cafe\u0301",
            "Éa",
            "unable",
            "一二中文ab",
            "か",
            "😀",
            "👍🏽",
            "[MASK]",
        ],
        *[
            "http://one.net/a-b?c=1",
            "a@b.co",
            "a" * 100,
            "b" * 101,
            "don't",
            "...",
            "a.b,c",
            "[SEP]x",
            "[UNK",
            "½",
            "ǅ",
        ],
        *[
            "\x00",
            "a\x07b",
            "c\x1cd",
            "e\x0bf",
            "\x85",
            "\u200b",
            "a\u200db",
            "\u00a0",
            "\u3000",
            "\u2028",
            "\ufffd",
            "\u00ad",
        ],
        *[
            "ΑΣ",
            "İi",
            "ﬁ",
            "Å",
            "x²",
            "$5",
            "^_^",
            "~",
            "`",
            "|",
            "＋",
            "“q”",
            "—",
            "한국",
            "ประ",
            "हि",
            "\U0001f1e9",
            "\ue000",
        ],
    ]
    glue = [" ", " ", " ", "  ", "", "\n", "\t", "\r\n"]
    return ["".join(rng.choice(parts) + rng.choice(glue) for _ in range(rng.randrange(12))) for _ in range(n)]


def write_vocab(folder: Path) -> Path:
    path = folder / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    return path


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("vocabulary", ["small", "bert"])
def test_ids_equal_those_of_transformers(tmp_path, vocabulary, lowercase):
    transformers = pytest.importorskip("transformers")
    if vocabulary == "bert" and not BERT_VOCAB.is_file():
        pytest.skip("shared/data/bert_vocab is not there")
    path = BERT_VOCAB if vocabulary == "bert" else write_vocab(tmp_path)
    reference = transformers.BertTokenizerFast(vocab_file=str(path), do_lower_case=lowercase)
    tokenizer = load_wordpiece(path, lowercase=lowercase)
    lines = generated_lines(400)
    expected = [reference(line, add_special_tokens=False)["input_ids"] for line in lines]
    assert [tokenizer.encode(line).ids.tolist() for line in lines] == expected
    for _ in range(2):  # the second time from memory
        found = tokenizer.encode_sentences(lines)
        assert found.ids.tolist() == [id for ids in expected for id in ids]
        assert found.lengths.tolist() == [len(ids) for ids in expected]
        assert found.extras == []


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("added", [[], ["the##cat", "nat"], ["##able"]])
def test_ids_alone_are_those_of_the_encoding(tmp_path, lowercase, added):
    tokenizer = load_wordpiece(write_vocab(tmp_path), lowercase=lowercase)
    tokenizer.backend.add_tokens(added)
    tokenizer = WordPieceTokenizer(tokenizer.backend, lowercase)
    lines = ["", " ", "\x0b", "##able un##able # ##", "unable,unable", "the##cat nations", *generated_lines(400)]
    for _ in range(2):  # the second time from memory
        for line in lines:
            whole, found = tokenizer.encode(line), tokenizer.encode_ids(line)
            assert found.ids.tolist() == whole.ids.tolist()
            assert found.words.tolist() == whole.words.tolist()
            assert (found.ids.dtype, found.words.dtype) == (whole.ids.dtype, whole.words.dtype)


def test_spans_point_into_the_text_as_given(tmp_path):
    tokenizer = load_wordpiece(write_vocab(tmp_path), lowercase=True)
    text = "  Cafe\u0301s, THE  中cats"
    encoding = tokenizer.encode(text)
    assert [text[first:last] for first, last in encoding.spans.tolist()][-4:] == ["THE", "中", "cat", "s"]
    assert encoding.words.tolist()[-4:] == [2, 3, 4, 4]
    assert text[slice(*encoding.spans[encoding.words == 1][0])] == ","
    assert tokenizer.encode("").spans.shape == (0, 2)


def test_a_lone_surrogate_is_read_as_the_replacement_character(tmp_path):
    tokenizer = load_wordpiece(write_vocab(tmp_path), lowercase=True)
    for text in ("the cat \ud800", "ca\udfffts the", "\ud800"):
        plain = text.translate(dict.fromkeys(range(0xD800, 0xE000), "\ufffd"))
        found, wanted = tokenizer.encode(text), tokenizer.encode(plain)
        assert found.text == text
        assert found.spans.tolist() == wanted.spans.tolist()
        for ids in (tokenizer.encode(text), tokenizer.encode_ids(text), tokenizer.encode_sentences([text])):
            assert ids.ids.tolist() == wanted.ids.tolist()
        assert tokenizer.encode_words(text.split()).ids.tolist() == tokenizer.encode_words(plain.split()).ids.tolist()


def test_marks_keep_their_ids_in_text(tmp_path):
    tokenizer = load_wordpiece(write_vocab(tmp_path))
    encoding = tokenizer.encode("the [MASK] cat")
    assert encoding.ids.tolist() == [tokenizer.id("the"), tokenizer.mask, tokenizer.id("cat")]
    assert encoding.words.tolist() == [0, 1, 2]
    assert (tokenizer.pad, tokenizer.unknown, tokenizer.cls, tokenizer.sep, tokenizer.mask) == (0, 1, 2, 3, 4)
    assert tokenizer.id("absent") == tokenizer.unknown


TEXTS = ["The nation sat on the mat, and the nations sat on mats.", "A cat; some cats! Caféś 中文 in stations."] * 20


@pytest.mark.parametrize("lowercase", [True, False])
def test_learning_twice_gives_the_same_pieces(lowercase):
    rng = random.Random(1)
    texts = ["".join(rng.choices("abcdefgh", k=rng.randrange(1, 9))) for _ in range(2000)] + TEXTS
    learned = [learn_wordpiece(texts, size=400, lowercase=lowercase, exact=True) for _ in range(4)]
    assert learned[0].pieces[:5] == list(SPECIALS)
    assert len(learned[0]) == len(set(learned[0].pieces)) == 400
    assert all(tokenizer.pieces == learned[0].pieces for tokenizer in learned)
    assert len({tokenizer.fingerprint for tokenizer in learned}) == 1


def test_learning_finds_frequent_words_and_spells_the_rest():
    tokenizer = learn_wordpiece(iter(TEXTS), size=120, lowercase=True)
    assert tokenizer.encode("The nation").units == ["the", "nation"]
    spelled = tokenizer.encode("tame")
    assert "[UNK]" not in spelled.units
    assert "".join(spelled.units).replace("##", "") == "tame"


def test_more_pieces_than_the_text_gives():
    fewer = learn_wordpiece(TEXTS, size=5000, lowercase=True)
    assert len(fewer) < 200
    with pytest.raises(DataError, match=rf"gives {len(fewer)} pieces.*tokenizer.size to at most {len(fewer)}"):
        learn_wordpiece(TEXTS, size=5000, lowercase=True, exact=True)


def test_no_room_and_no_text():
    with pytest.raises(DataError, match="has no room"):
        learn_wordpiece(TEXTS, size=6, lowercase=True)
    with pytest.raises(DataError, match="no character"):
        learn_wordpiece([" "], size=60, lowercase=True)


@pytest.mark.parametrize("lowercase", [True, False])
def test_saved_in_the_form_others_read(tmp_path, lowercase):
    transformers = pytest.importorskip("transformers")
    tokenizer = learn_wordpiece(TEXTS, size=150, lowercase=lowercase)
    tokenizer.save(tmp_path)
    loaded = load_wordpiece(tmp_path)
    assert loaded.pieces == tokenizer.pieces
    assert loaded.lowercase is lowercase
    assert loaded.fingerprint == tokenizer.fingerprint
    (tmp_path / "only").mkdir()
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).rename(tmp_path / "only" / name)
    assert load_wordpiece(tmp_path / "only").fingerprint == tokenizer.fingerprint
    theirs = transformers.BertTokenizer.from_pretrained(str(tmp_path / "only"))
    for text in TEXTS[:2]:
        assert theirs.encode(text, add_special_tokens=False) == tokenizer.encode(text).ids.tolist()


def test_a_vocabulary_without_capitals_is_uncased(tmp_path):
    path = write_vocab(tmp_path)
    assert not load_wordpiece(path).lowercase
    uncased = dict.fromkeys(piece if piece in SPECIALS else piece.lower() for piece in PIECES)
    path.write_text("".join(f"{piece}\n" for piece in uncased))
    assert load_wordpiece(path).lowercase


def test_files_that_are_not_wordpiece(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\na\n")
    with pytest.raises(DataError, match=r"has no piece \[CLS\], \[SEP\], \[MASK\]"):
        load_wordpiece(path)
    path.write_text("\n".join([*SPECIALS, "a", "b", "a"]))
    with pytest.raises(DataError, match=r"vocab.txt:8: the piece 'a' is already on line 6"):
        load_wordpiece(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_wordpiece(tmp_path / "absent.txt")
    json_path = tmp_path / "tokenizer.json"
    json_path.write_text(json.dumps({"model": {"type": "BPE"}}))
    with pytest.raises(DataError, match="needed, got one of type BPE"):
        load_wordpiece(tmp_path)
    for broken in ("{", "[]", '{"model": {"type": "WordPiece"}}'):
        json_path.write_text(broken)
        with pytest.raises(DataError, match=r"tokenizer\.json: (not a tokenizer|the tokenizers library cannot)"):
            load_wordpiece(json_path)


@pytest.mark.parametrize("id", [2**31, -1, "7", None, 2.0])
def test_ids_with_a_gap_are_refused_before_the_library_aborts_the_process(id, tmp_path):
    learn_wordpiece(TEXTS, size=150, lowercase=True).save(tmp_path)
    description = json.loads((tmp_path / "tokenizer.json").read_text())
    description["model"]["vocab"]["the"] = id
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))
    with pytest.raises(DataError, match="the ids of the pieces must be the whole numbers from 0, without a gap"):
        load_wordpiece(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_json_nested_too_deeply_is_one_sentence(name, tmp_path):
    learn_wordpiece(TEXTS, size=150, lowercase=True).save(tmp_path)
    (tmp_path / name).write_text('{"a":' * 100_000)
    if name != "tokenizer.json":
        (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=f"{name}: .*recursion"):
        load_wordpiece(tmp_path)


def test_casing_that_contradicts_the_file(tmp_path):
    learn_wordpiece(TEXTS, size=150, lowercase=True).save(tmp_path)
    with pytest.raises(DataError, match="has lowercase = True, but False was asked for"):
        load_wordpiece(tmp_path, lowercase=False)
