from __future__ import annotations

import gzip
import tracemalloc
import warnings
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors

from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import ConfigError, DataError
from headstart.pretrained import Pretrained
from headstart.progress import Progress
from headstart.text.tokenizer import WordTokenizer, load_tokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.weights import vector_blocks
from headstart.weights.vector_blocks import parse_decimals
from headstart.weights.vector_files import write_glove, write_word2vec
from headstart.weights.vectors import looks_like_vectors, read_vectors, read_word_list

REAL = Path(__file__).parents[3] / "shared" / "data" / "vectors"
WRITERS: dict[str, Callable[[Pretrained, Path], None]] = {
    "text": write_word2vec,
    "binary": lambda pretrained, path: write_word2vec(pretrained, path, binary=True),
    "glove": write_glove,
}


def read(path: Path, words: Collection[str] | None = None) -> Pretrained:
    reading = read_vectors(path, words)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


def table(pretrained: Pretrained) -> dict[str, list[float]]:
    vectors = pretrained.encoder.vectors.detach().numpy()
    return dict(zip(pretrained.tokenizer.vocabulary.words, vectors.tolist(), strict=True))


def words_of(pretrained: Pretrained) -> dict[str, list[float]]:
    return {word: vector for word, vector in table(pretrained).items() if word not in SPECIALS}


def by_gensim(path: Path, *, binary: bool, no_header: bool) -> KeyedVectors:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # gensim leaves the file open where it counts the lines itself
        return KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=no_header)


def binary(*records: tuple[bytes, list[float]], end: bytes = b"", header: bytes | None = None) -> bytes:
    first = header or f"{len(records)} {len(records[0][1])}\n".encode()
    return first + b"".join(word + b" " + np.array(vector, "<f4").tobytes() + end for word, vector in records)


def pretrained_of(words: list[str], vectors: np.ndarray) -> Pretrained:
    encoder = Static(StaticConfig(dim=vectors.shape[1]), len(words) + len(SPECIALS))
    with torch.no_grad():
        encoder.vectors[len(SPECIALS) :] = torch.from_numpy(vectors)
    counts = np.concatenate([np.zeros(len(SPECIALS), np.int64), np.arange(len(words), 0, -1)])
    return Pretrained(encoder, WordTokenizer(Vocabulary((*SPECIALS, *words), counts)))


CAT_DOG = {"cat": [1.0, -2.5, 0.25], "dog": [0.0, 4.0, -1e-05]}
SAME = {
    "glove": b"cat 1 -2.5 0.25\ndog 0 4.0 -1e-05\n",
    "no end of the last line": b"cat 1 -2.5 0.25\ndog 0 4.0 -1e-05",
    "header": b"2 3\ncat 1 -2.5 0.25\ndog 0 4.0 -1e-05\n",
    "space before every line's end": b"2 3\ncat 1 -2.5 0.25 \ndog 0 4.0 -1e-05 \n",
    "CRLF": b"2 3\r\ncat 1 -2.5 0.25\r\ndog 0 4.0 -1e-05\r\n",
    "tabs": b"cat\t1\t-2.5\t0.25\ndog\t0\t4.0\t-1e-05\n",
    "tab, then spaces": b"cat\t1 -2.5 0.25\ndog\t0 4.0 -1e-05\n",
    "header with a tab": b"2\t3\ncat\t1\t-2.5\t0.25\ndog\t0\t4.0\t-1e-05\n",
    "two spaces": b"cat  1 -2.5  0.25\n  dog 0 4.0 -1e-05\n",
    "byte order mark": b"\xef\xbb\xbfcat 1 -2.5 0.25\ndog 0 4.0 -1e-05\n",
    "byte order mark and header": b"\xef\xbb\xbf2 3\ncat 1 -2.5 0.25\ndog 0 4.0 -1e-05\n",
    "blank lines": b"cat 1 -2.5 0.25\n\ndog 0 4.0 -1e-05\n\n\x0b\n",
    "binary": binary((b"cat", CAT_DOG["cat"]), (b"dog", CAT_DOG["dog"])),
    "binary with line ends": binary((b"cat", CAT_DOG["cat"]), (b"dog", CAT_DOG["dog"]), end=b"\n"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", SAME)
@pytest.mark.parametrize("block", [7, 1 << 19])
def test_every_form_gives_the_same_vectors(
    tmp_path: Path, form: str, packed: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_blocks, "BLOCK_BYTES", block)
    path = tmp_path / "vectors.bin"  # the name says nothing
    path.write_bytes(gzip.compress(SAME[form]) if packed else SAME[form])
    assert looks_like_vectors(path)
    found = read(path)
    assert found.kind == "static"
    assert found.notices == ()
    assert words_of(found) == {word: np.float32(vector).tolist() for word, vector in CAT_DOG.items()}


def test_a_name_in_gz_is_not_taken_at_its_word(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(SAME["glove"])
    assert words_of(read(path)).keys() == CAT_DOG.keys()


def test_marks_counts_and_the_average_word(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"a 1 2\nb 3 6\n")
    found = read(path)
    assert table(found) == {"<S>": [0, 0], "</S>": [0, 0], "<UNK>": [2, 4], "a": [1, 2], "b": [3, 6]}
    assert found.tokenizer.vocabulary.counts.tolist() == [0, 0, 0, 2, 1]
    np.testing.assert_array_equal(found.represent(["A zebra b"])[0], [[[1, 2], [2, 4], [3, 6]]])


@pytest.mark.parametrize(
    ("text", "unknown", "words"),
    [
        (b"a 1 2\n<S> 3 4\n</S> 5 6\n<UNK> 7 8\n", [7, 8], ["a"]),
        (b"a 1 2\n<unk> 7 8\n</S> 5 6\n<S> 3 4\n", [7, 8], ["a", "<unk>"]),
        (b"<unk> 9 9\na 1 2\n<UNK> 7 8\n<S> 3 4\n</S> 5 6\n", [7, 8], ["<unk>", "a"]),
        (b"<UNK> 7 8\n<unk> 9 9\na 1 2\n<S> 3 4\n</S> 5 6\n", [7, 8], ["<unk>", "a"]),
    ],
)
def test_marks_in_the_file_give_their_vectors(
    tmp_path: Path, text: bytes, unknown: list[float], words: list[str]
) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(text)
    found = read(path)
    assert found.encoder.vectors[:3].tolist() == [[3, 4], [5, 6], unknown]
    assert list(words_of(found)) == words
    assert found.tokenizer.lowercase
    assert found.notices == ()
    few = read(path, ["a"])
    assert list(words_of(few)) == ["a"]
    assert few.encoder.vectors[2].tolist() == unknown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 1 2\n. . . 3 4\nb 5 6\n", ["a", ". . .", "b"]),
        ("a 1 2\nat name@domain.com 3 4\n", ["a", "at name@domain.com"]),
        ("2000 1 2\n1,000 3 4\n0.5 5 6\n", ["2000", "1,000", "0.5"]),
        ("boeing 747\t1\t2\na\t3\t4\n", ["boeing 747", "a"]),
        ("a\u00a0b 1 2\n\u0085 3 4\n\u2028 5 6\n\x1c 7 8\n", ["a\u00a0b", "\u0085", "\u2028", "\x1c"]),
        ("\ufffd 1 2\nнога 3 4\n中 5 6\n", ["\ufffd", "нога", "中"]),
    ],
)
def test_odd_words(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(text.encode())
    found = read(path)
    assert list(words_of(found)) == words
    assert list(words_of(found).values()) == [[2 * i + 1, 2 * i + 2] for i in range(len(words))]
    found.tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).fingerprint == found.tokenizer.fingerprint


@pytest.mark.parametrize(("text", "lowercase"), [("the 1 2\nété 3 4\n", True), ("the 1 2\nÉté 3 4\n", False)])
def test_lowercase_if_no_word_has_a_capital(tmp_path: Path, text: str, lowercase: bool) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text, encoding="utf-8")
    assert read(path).tokenizer.lowercase is lowercase
    assert read(path, ["the"]).tokenizer.lowercase is lowercase


def test_repeated_words_are_told_once_and_the_first_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"5 2\na 1 2\nb 3 4\na 5 6\na 7 8\nb 9 9\n")
    found = read(path)
    assert words_of(found) == {"a": [1, 2], "b": [3, 4]}
    assert found.notices == ("v.txt: 3 entries repeat a word, such as 'a'; the first vector of each word was kept.",)


@pytest.mark.parametrize(
    ("content", "left_out"),
    [
        (b"a 1 2\n\xff\xfe 3 4\nb 5 6\n", rb"b'\xff\xfe'"),
        (b"a 1 2\n 3 4\nb 5 6\n", b"b''"),
        (binary((b"a", [1, 2]), (b"x\ny", [3, 4]), (b"b", [5, 6])), rb"b'x\ny'"),
        (binary((b"a", [1, 2]), (b"x\ty", [3, 4]), (b"b", [5, 6]), end=b"\n"), rb"b'x\ty'"),
    ],
)
def test_words_that_no_vocabulary_can_hold_are_left_out(tmp_path: Path, content: bytes, left_out: bytes) -> None:
    path = tmp_path / "v"
    path.write_bytes(content)
    found = read(path)
    assert words_of(found) == {"a": [1, 2], "b": [5, 6]}
    assert len(found.notices) == 1
    assert f"1 words were left out, such as {left_out.decode()}:" in found.notices[0]


VECTOR = np.array([1, 2], "<f4").tobytes()
BAD = {
    "empty": (b"", r"v: the file is empty"),
    "blank": (b"\n \n", r"v: the file is empty"),
    "ragged, short": (b"a 1 2\nb 3 4\nc 5\nd 7 8\n", r"v:3: wanted a word and 2 numbers, as most .*; got 1 .* 'c 5'"),
    "ragged, long": (b"a 1 2\nb 3 4 5\nc 5 6\n", r"v:2: wanted a word and 2 numbers, .*; got 3 after the word"),
    "ragged by a header": (b"2 2\na 1 2\nb 3\n", r"v:3: wanted a word and 2 numbers, as the header says; got 1"),
    "ragged, with two spaces": (b"a 1 2\nb 3 4\nc  3\n", r"v:3: wanted a word and 2 numbers, .*; got 1"),
    "ragged, with tabs": (b"a\t1\t2\nb\t3\nc\t4\t5\n", r"v:2: wanted a word and 2 numbers, .*; got 1"),
    "cut in the last line": (b"a 1 2\nb 3 4\nc 5", r"v:3: .* got 1 .*the file was cut short"),
    "not a number": (b"a 1 2\nb 3 4x\nc 5 6\n", r"v:2: wanted a number, got '4x' in the vector of 'b'"),
    "two points": (b"a 1 2\nb 3 4.5.6\nc 5 6\n", r"v:2: wanted a number, got '4.5.6'"),
    "a sign alone": (b"a 1 2\nb 3 -\nc 5 6\n", r"v:2: wanted a number, got '-'"),
    "nan": (b"a 1 2\nb nan 4\n", r"v:2: the vector of 'b' has a number that is nan"),
    "infinite": (b"a 1 2\nb 3 -inf\n", r"v:2: the vector of 'b' has a number that is -inf"),
    "too large for float32": (b"a 1 2\nb 3 1e39\n", r"v:2: the vector of 'b' has a number that is inf as a float32"),
    "fewer than promised": (b"3 2\na 1 2\nb 3 4\n", r"v:1: the header says 3 words, but the file has 2"),
    "more than promised": (b"1 2\na 1 2\nb 3 4\n", r"v:1: the header says 1 words, but the file has 2"),
    "a header alone": (b"3 2\n", r"v:1: the header says 3 words, but the file has 0"),
    "a header of nothing": (b"0 2\n", r"v: has no words"),
    "no width": (b"3 0\na\n", r"v:1: this is not a file of word vectors"),
    "no word is UTF-8": (b"\xff 1 2\n\xfe 3 4\n", r"v: none of its words can be used.*not UTF-8"),
    "prose": (b"It was late.\nNobody came to the door.\n", r"v:1: this is not a file of word vectors.*'It was late.'"),
    "one word a line": (b"the\ncat\n", r"v:1: this is not a file of word vectors"),
    "numbers, then prose": (b"12 34\nIt was late.\nNobody came.\n", r"v:2: this is not .* 34 numbers, as the header"),
    "zip": (b"PK\x03\x04\0\0", r"v: this is a zip archive; unpack it"),
    "noise": (bytes(range(256)) * 40, r"v:1: this is not a file of word vectors"),
    "damaged gzip": (b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff\xff", r"v: damaged"),
    "binary cut in a vector": (
        binary((b"a", [1, 2]), (b"b", [3, 4]))[:-3],
        r"v: byte 14: wanted a word, a space and 8 bytes of numbers; .*cut short",
    ),
    "binary cut in a word": (b"2 2\na " + VECTOR + b"be", r"v: byte 14: wanted a word, a space and 8 bytes"),
    "binary cut between words": (b"2 2\na " + VECTOR, r"v:1: the header says 2 words, but the file has 1"),
    "binary with more": (b"1 2\na " + VECTOR + b"b " + VECTOR, r"v:1: the header says 1 words, .* has 2"),
    "binary nan": (binary((b"a", [1, 2]), (b"b", [np.nan, 4])), r"v: byte 14: the vector of 'b' has a number .* nan"),
    "binary without words": (b"9 1\na " + b"\0" * 300_000, r"v: byte 10: wanted a word, a space and 4 bytes"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_place(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path)


def test_a_gzip_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.gz"
    rng = np.random.default_rng(0)
    text = b"".join(b"w%d %b\n" % (i, b" ".join(rng.normal(size=9).astype("S"))) for i in range(900))
    path.write_bytes(gzip.compress(text)[:-2000])
    assert looks_like_vectors(path)
    with pytest.raises(DataError, match=r"v.gz: damaged or cut short"):
        read(path)


def test_what_is_there_but_no_file_of_vectors(tmp_path: Path) -> None:
    (tmp_path / "counts.tsv").write_text("the\t5\ncat\t2\n")
    (tmp_path / "text.txt").write_text("It was late.\nNobody came to the door at 9\n")
    (tmp_path / "labels.tsv").write_text("a good film\t1\na bad film\t0\n")
    (tmp_path / "a.json").write_text('{"a": [1, 2, 3]}\n')
    (tmp_path / "empty").touch()
    assert not any(map(looks_like_vectors, [*tmp_path.iterdir(), tmp_path, tmp_path / "absent"]))
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError, match="cannot be read"):
            read(path)


@pytest.mark.parametrize("form", ["glove", "header", "binary", "tabs"])
def test_only_the_wanted_words_are_kept(tmp_path: Path, form: str) -> None:
    path = tmp_path / "v"
    path.write_bytes(SAME[form])
    found = read(path, {"dog", "zebra", "Cat"})
    assert words_of(found) == {"dog": np.float32(CAT_DOG["dog"]).tolist()}
    assert table(found)["<UNK>"] == words_of(found)["dog"]
    assert found.notices == ("v has 1 of the 3 wanted words.",)
    with pytest.raises(DataError, match=r"none of the 2 wanted words, such as 'Cat'"):
        read(path, {"zebra", "Cat"})
    with pytest.raises(DataError, match=r"none of the 0 wanted words"):
        read(path, [])


def test_word_list(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffcat\r\n\n . . .\ncat\nété\u00a0\n".encode())
    assert read_word_list(path) == ["cat", ". . .", "été\u00a0"]
    path.write_bytes(b"\n\n")
    with pytest.raises(DataError, match=r"words.txt: the list has no words"):
        read_word_list(path)
    path.write_bytes(b"cat\n\xff\n")
    with pytest.raises(DataError, match=r"words.txt:2: not UTF-8"):
        read_word_list(path)


def test_decimals_are_those_of_float() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=2000) * 10.0 ** rng.integers(-12, 9, 2000)
    shown = [f"{value:.{digits}{how}}" for value in drawn for digits, how in ((3, "f"), (6, "g"), (9, "e"), (17, "g"))]
    by_hand = ["0", "-0", "-0.0", "5.", ".5", "+1", "-.25", "007", "999999999999999", "9999999999999999", "1e-45"]
    fields = [*by_hand, *shown, *map(repr, drawn.tolist())]
    found = parse_decimals(" ".join(fields).encode())
    expected = np.array([float(field) for field in fields]).astype(np.float32)
    np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))
    for wrong in ("", "-", ".", "-.", "1-2", "1.2.3", "--1", "1,5", "x"):
        with pytest.raises(ValueError, match="float"):
            parse_decimals(f"1 {wrong} 2".encode())


@pytest.fixture(scope="module")
def every_kind() -> Pretrained:
    """Vectors from random bits, so of every size a float32 can have, and words that need care."""
    bits = np.random.default_rng(2).integers(-(2**31), 2**31, 3000 * 7, dtype=np.int64).astype(np.int32)
    vectors = bits.view(np.float32)
    vectors[~np.isfinite(vectors)] = -0.0
    extremes = [np.finfo(np.float32).max, np.finfo(np.float32).tiny, 1e-45, -0.0, 0.1, 1 / 3, 16777216]
    vectors[:7] = np.array(extremes, np.float32)
    words = ["2000", "é", "中文", "\u2028", "\u0085", "a\u00a0b", "The", "<unk>", "</s>", "0.5", "-1"]
    return pretrained_of([*words, *(f"w{i}" for i in range(3000 - len(words)))], vectors.reshape(3000, 7))


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_written_and_read_again_every_bit_is_there(
    tmp_path: Path, every_kind: Pretrained, form: str, ending: str
) -> None:
    path = tmp_path / "new folder" / f"vectors{ending}"
    WRITERS[form](every_kind, path)
    assert list(path.parent.iterdir()) == [path]
    # gzip's mark, and no time of writing, so that the same vectors give the same file
    assert (path.read_bytes()[:8] == b"\x1f\x8b\x08\0\0\0\0\0") == bool(ending)
    again = read(path)
    assert again.tokenizer.vocabulary.words == every_kind.tokenizer.vocabulary.words
    assert torch.equal(again.encoder.vectors.view(torch.int32), every_kind.encoder.vectors.view(torch.int32))
    first = path.read_bytes()
    WRITERS[form](again, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_gensim_reads_what_was_written(tmp_path: Path, every_kind: Pretrained, form: str, ending: str) -> None:
    path = tmp_path / f"vectors.txt{ending}"
    WRITERS[form](every_kind, path)
    theirs = by_gensim(path, binary=form == "binary", no_header=form == "glove")
    assert tuple(theirs.index_to_key) == every_kind.tokenizer.vocabulary.words
    np.testing.assert_array_equal(theirs.vectors, every_kind.encoder.vectors.detach().numpy())


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_gensim_wrote_is_read(tmp_path: Path, form: str, ending: str) -> None:
    vectors = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
    theirs = KeyedVectors(4)
    theirs.add_vectors([f"w{i}" for i in range(50)], vectors)
    path = tmp_path / f"vectors{ending}"
    theirs.save_word2vec_format(str(path), binary=form == "binary", write_header=form != "glove")
    found = read(path)
    assert list(words_of(found)) == theirs.index_to_key
    np.testing.assert_array_equal(found.encoder.vectors.detach()[3:].numpy(), vectors)


def test_text_has_the_fewest_digits(tmp_path: Path) -> None:
    vectors = pretrained_of(["a", ". . ."], np.array([[0.1, -2.5], [1e-5, 3]], np.float32))
    with torch.no_grad():
        vectors.encoder.vectors[:3] = 0
    write_word2vec(vectors, tmp_path / "v.txt")
    marks = "<S> 0.0 0.0\n</S> 0.0 0.0\n<UNK> 0.0 0.0\n"
    assert (tmp_path / "v.txt").read_text() == f"5 2\n{marks}a 0.1 -2.5\n. . . 1e-05 3.0\n"
    write_glove(vectors, tmp_path / "g.txt")
    assert (tmp_path / "g.txt").read_text() == f"{marks}a 0.1 -2.5\n. . . 1e-05 3.0\n"
    assert table(read(tmp_path / "g.txt")) == table(vectors)


@pytest.mark.parametrize(
    ("word", "form", "message"),
    [
        (". . .", "binary", "a space ends the word"),
        ("a\tb", "binary", "a tab"),
        ("a\nb", "text", "a line break"),
        ("", "glove", "empty"),
        ("a ", "glove", "ends with a space"),
        ("boeing 747", "text", "would be read as a number"),
    ],
)
def test_words_that_would_not_come_back_are_not_written(tmp_path: Path, word: str, form: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        WRITERS[form](pretrained_of([word], np.ones((1, 2), np.float32)), tmp_path / "v")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written(tmp_path: Path) -> None:
    broken = pretrained_of(["a", "b"], np.array([[1, 2], [3, np.nan]], np.float32))
    with pytest.raises(DataError, match="The vector of 'b' has a nan"):
        write_glove(broken, tmp_path / "v")
    bert = Bert(BertConfig(layers=1, heads=1, width=4, inner=4), 10)
    with pytest.raises(ConfigError, match="this is a bert"):
        write_word2vec(Pretrained(bert, broken.tokenizer), tmp_path / "v")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["text", "gzip", "binary"])
def test_a_large_file_is_streamed(tmp_path: Path, form: str) -> None:
    path = tmp_path / "large"
    vector = np.linspace(-1, 1, 300, dtype=np.float32)
    lines = 60_000_000 // (1200 if form == "binary" else 3000)
    if form == "binary":
        body = vector.astype("<f4").tobytes()
        path.write_bytes(b"%d 300\n" % lines + b"".join(b"w%d %b" % (i, body) for i in range(lines)))
    else:
        body = b" ".join(vector.astype("S"))
        text = b"".join(b"w%d %b\n" % (i, body) for i in range(lines))
        path.write_bytes(gzip.compress(text, 1) if form == "gzip" else text)
        del text
    tracemalloc.start()
    steps: list[Progress] = []
    try:
        reading = read_vectors(path, {"w7", f"w{lines - 1}"})
        while True:
            steps.append(next(reading))
    except StopIteration as end:
        found = end.value
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert list(words_of(found)) == ["w7", f"w{lines - 1}"]
    np.testing.assert_array_equal(found.encoder.vectors.detach()[3:].numpy(), [vector, vector])
    assert peak < 8_000_000
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert len(done) > 50
    assert steps[-1] == Progress("vectors", path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize(
    ("name", "words"), [("glove.6B.300d.subset.txt.gz", 3165), ("word2vec.gnews.300d.top1000.txt.gz", 1000)]
)
def test_published_vectors(tmp_path: Path, name: str, words: int) -> None:
    path = REAL / name
    if not path.exists():
        pytest.skip("shared/data/vectors is not there")
    theirs = by_gensim(path, binary=False, no_header=name.startswith("glove"))
    found = read(path)
    assert len(words_of(found)) == words
    assert list(words_of(found)) == theirs.index_to_key
    np.testing.assert_array_equal(found.encoder.vectors.detach()[3:].numpy(), theirs.vectors)
    assert found.tokenizer.lowercase
    for form, write in WRITERS.items():
        write(found, tmp_path / form)
        assert torch.equal(read(tmp_path / form).encoder.vectors, found.encoder.vectors)
