from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.tasks.conll import TaggedSentence, read_columns, read_jsonl, read_tagged

CONLL2003 = Path(__file__).parents[3] / "shared" / "data" / "conll2003"
WORDS = ["Rome", "«été»", "#", "a\u00a0b", "🙂", "3.14", "\u2028", "-", "=", "x" * 50]


def file_of(folder: Path, text: str, name: str = "some.conll") -> Path:
    path = folder / name
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def generated(rng: random.Random, tabs: bool) -> tuple[str, list[tuple[list[str], list[str]]]]:
    """A column file with every liberty that the format leaves, and its sentences."""
    end = rng.choice(["\n", "\r\n"])
    parts, sentences = [rng.choice(["", "\ufeff"]), rng.choice(["", end, f"-DOCSTART- -X- O O{end}{end}"])], []
    for _ in range(rng.randint(1, 5)):
        if tabs and rng.random() < 0.5:
            parts.append(f"# text = anything at all{end}")
        words = [rng.choice(WORDS[3:] if place == 0 else WORDS) for place in range(rng.randint(1, 6))]
        tags = [rng.choice(["O", "B-PER", "I-LOC"]) for _ in words]
        for word, tag in zip(words, tags, strict=True):
            gaps = ["\t"] * 3 if tabs else [" " * rng.randint(1, 3) for _ in range(3)]
            after = "" if tabs else rng.choice(["", "", " "])
            parts.append(f"{word}{gaps[0]}NN{gaps[1]}I-NP{gaps[2]}{tag}{after}{end}")
        parts.append(rng.choice([end, end + end, f" {end}"]))
        if rng.random() < 0.2:
            parts.append(f"-DOCSTART- -X- O O{end}{end}")
        sentences.append((words, tags))
    text = "".join(parts)
    return (text.rstrip("\r\n ") if rng.random() < 0.4 else text), sentences


@pytest.mark.parametrize("tabs", [False, True])
@pytest.mark.parametrize("name", ["some.conll", "some.conll.gz"])
def test_every_liberty_of_the_format_is_read(tmp_path: Path, tabs: bool, name: str) -> None:
    rng = random.Random(0)
    for _ in range(60):
        text, expected = generated(rng, tabs)
        path = file_of(tmp_path, text, name)
        sentences = read_columns(path)
        assert [(list(s.words), list(s.tags or ())) for s in sentences] == expected
        assert [s.tags for s in read_columns(path, column=1)] == [("NN",) * len(words) for words, _ in expected]
        lines = [line.removeprefix("\ufeff").rstrip("\r") for line in text.split("\n")]
        assert all(line in lines for s in sentences for line in s.lines or ())


def test_columns_by_hand(tmp_path: Path) -> None:
    path = file_of(tmp_path, "-DOCSTART- -X- O\n\nIn  IN O\r\nRome NNP   B-LOC \n\n\nYes UH O")
    assert read_columns(path) == [
        TaggedSentence(("In", "Rome"), ("O", "B-LOC"), f"{path}:3"),
        TaggedSentence(("Yes",), ("O",), f"{path}:7"),
    ]
    assert [s.tags for s in read_columns(path, column=1)] == [("IN", "NNP"), ("UH",)]
    assert [s.tags for s in read_columns(path, column=-2)] == [("IN", "NNP"), ("UH",)]
    assert [s.lines for s in read_columns(path)] == [("In  IN O", "Rome NNP   B-LOC "), ("Yes UH O",)]


def test_a_number_sign_is_a_word_or_begins_a_comment(tmp_path: Path) -> None:
    path = file_of(tmp_path, "# id = 7\n# # O\n5 CD O\n# # O\n\n#begin document (x); part 000\n1 CD O\n#end document\n")
    assert [s.words for s in read_columns(path)] == [("#", "5", "#"), ("1",)]


def test_conllu_has_words_in_the_second_column_and_lines_that_are_none(tmp_path: Path) -> None:
    def line(id: str, form: str, tag: str) -> str:
        return "\t".join([id, form, "_", tag, *"_" * 6]) + "\n"

    rows = [
        ("1-2", "vámonos", "_"),
        ("1", "vamos", "VERB"),
        ("2", "nos", "PRON"),
        ("2.1", "x", "_"),
        ("3", "a b", "ADP"),
    ]
    path = file_of(tmp_path, "# sent_id = 1\n" + "".join(line(*row) for row in rows) + "\n")
    assert read_columns(path) == [TaggedSentence(("vamos", "nos", "a b"), ("VERB", "PRON", "ADP"), f"{path}:3")]


def test_words_alone_have_no_tags(tmp_path: Path) -> None:
    path = file_of(tmp_path, "In\nRome\n")
    assert read_columns(path, tag_required=False) == [TaggedSentence(("In", "Rome"), None, f"{path}:1")]
    with pytest.raises(DataError, match=r"some\.conll:1: has 1 columns, none of them the tag: 'In'"):
        read_columns(path)
    with pytest.raises(DataError, match="none of them the tag"):
        read_columns(file_of(tmp_path, "In O\n"), column=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("In O\nRome NNP B-LOC\n", ":2: has 3 columns, separated by spaces, but line 1 has 2: 'Rome NNP B-LOC'"),
        ("In\tO\n\nRome B-LOC\n", ":3: has 1 columns, separated by tabs, but line 1 has 2"),
        ("In\tO\nRome\t\n", ":2: column 2 is empty"),
        ("", ": holds no sentence"),
        ("-DOCSTART- O\n\n\n", ": holds no sentence"),
    ],
)
def test_broken_columns_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_columns(file_of(tmp_path, text))
    assert f"some.conll{message}" in str(caught.value)


def test_a_missing_file_and_latin1_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_columns(tmp_path / "none")
    (tmp_path / "latin").write_bytes(b"In O\n\xe9t\xe9 O\n")
    with pytest.raises(DataError, match="latin:2: not UTF-8"):
        read_columns(tmp_path / "latin")


def test_a_long_document_is_one_sentence(tmp_path: Path) -> None:
    path = file_of(tmp_path, "word NN O\n" * 50_000)
    (sentence,) = read_columns(path)
    assert len(sentence.words) == 50_000


@pytest.mark.parametrize(("words", "tags"), [("words", "tags"), ("tokens", "labels"), ("tokens", "ner_tags")])
def test_json_lines(tmp_path: Path, words: str, tags: str) -> None:
    rows = [{"id": 1, words: ["In", "Rome"], tags: ["O", "B-LOC"]}, {"id": 2, words: ["Yes"], tags: ["O"]}]
    path = file_of(tmp_path, "\ufeff" + "".join(json.dumps(row) + "\n" for row in rows), "some.jsonl.gz")
    expected = [
        TaggedSentence(("In", "Rome"), ("O", "B-LOC"), f"{path}:1"),
        TaggedSentence(("Yes",), ("O",), f"{path}:2"),
    ]
    assert read_jsonl(path) == read_tagged(path) == expected
    assert read_jsonl(path, words, tags) == expected


def test_a_word_of_json_lines_has_no_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text(r'{"words": ["New\nYork", "fell\r\n", "a\rb"], "tags": ["B-LOC", "O\n", "O"]}' + "\n")
    (found,) = read_tagged(path)
    assert (found.words, found.tags) == (("New York", "fell", "a b"), ("B-LOC", "O", "O"))


def test_json_lines_choose_the_exact_names_first(tmp_path: Path) -> None:
    row = {"labels": ["X"], "tokens": ["x"], "tags": ["T"], "words": ["w"]}
    path = file_of(tmp_path, json.dumps(row), "some.jsonl")
    assert read_jsonl(path) == [TaggedSentence(("w",), ("T",), f"{path}:1")]
    assert read_jsonl(path, tags_field="labels")[0].tags == ("X",)


def test_json_lines_without_tags(tmp_path: Path) -> None:
    path = file_of(tmp_path, '{"words": ["a"]}\n', "some.jsonl")
    assert read_jsonl(path, with_tags=False)[0].tags is None
    with pytest.raises(DataError, match=r"some\.jsonl:1: has no column 'tags' or 'labels' or 'ner_tags'"):
        read_jsonl(path)
    path = file_of(tmp_path, '{"words": ["a"], "tags": null}\n', "some.jsonl")
    assert read_jsonl(path, with_tags=False)[0].tags is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a", "b"], "tags": ["O"]}', ":2: has 2 words in 'words' but 1 tags in 'tags'"),
        ('{"words": [], "tags": []}', ":2: 'words' holds no word"),
        ('{"words": "a b", "tags": ["O"]}', ":2: 'words' must be a list of strings"),
        ('{"words": ["a"], "tags": [3]}', ":2: 'tags' must hold strings, none of them empty; got 3"),
        ('{"words": [" "], "tags": ["O"]}', ":2: 'words' must hold strings"),
        ('{"words": ["a"], "tags": null}', ":2: 'tags' must be a list of strings"),
        ('{"words": ["a"]}', ":2: has no key 'tags'"),
        ("[]", ":2: expected a JSON object"),
    ],
)
def test_broken_json_lines_are_told_with_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = file_of(tmp_path, '{"words": ["a"], "tags": ["O"]}\n' + line + "\n", "some.jsonl")
    with pytest.raises(DataError) as caught:
        read_jsonl(path)
    assert f"some.jsonl{message}" in str(caught.value)


@pytest.mark.skipif(not CONLL2003.exists(), reason="the CoNLL-2003 files are not on this machine")
def test_conll2003_has_its_published_size() -> None:
    sentences = read_tagged(CONLL2003 / "eng.testa")
    assert (len(sentences), sum(len(s.words) for s in sentences)) == (3250, 51362)
