from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import DataError
from headstart.tasks.coref_documents import (
    CorefDocument,
    genre_of,
    repeated_mentions,
    sorted_chains,
    without_repeats,
)
from headstart.tasks.coref_reading import read_documents

DATA = Path(__file__).parents[3] / "shared" / "data"
BEGIN, END = "#begin document (d); part 000\n", "#end document\n"
# CoNLL-2012's layout: document, part, number, word, POS, parse, lemma, frame, sense, speaker, names, one column per
# predicate of the sentence, edges.
CONLL_2012 = """\
#begin document (bn/cnn/00/cnn_0001); part 001
bn/cnn/00/cnn_0001   1   0    Anna   NNP   (TOP(S(NP*)       -    -   -   Speaker#1   (PERSON)   (ARG0*)    (12)
bn/cnn/00/cnn_0001   1   1   likes   VBZ        (VP*      like   01   1   Speaker#1       *         (V*)       -
bn/cnn/00/cnn_0001   1   2     her   PRP   (NP(NP*)          -    -   -   Speaker#1       *       (ARG1*   (3|(12)
bn/cnn/00/cnn_0001   1   3     dog    NN         *)))        -    -   -   Speaker#1       *           *)       3)

bn/cnn/00/cnn_0001   1   0      It   PRP  (TOP(FRAG*))       -    -   -   Speaker#2       *       (3)

#end document
"""


def file_of(folder: Path, text: str, name: str = "some.conll") -> Path:
    path = folder / name
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows(*cells: str, tab: str = "\t") -> str:
    """A sentence of words a, b, c, ... with these last cells."""
    found = [tab.join(["d", "0", str(n), chr(97 + n), "NN", cell]) for n, cell in enumerate(cells)]
    return "".join(f"{line}\n" for line in found) + "\n"


def only(path: Path) -> CorefDocument:
    (document,) = read_documents(path).documents
    return document


def test_the_columns_of_conll_2012_by_hand(tmp_path: Path) -> None:
    path = file_of(tmp_path, CONLL_2012)
    document = only(path)
    assert document == CorefDocument(
        name="bn/cnn/00/cnn_0001",
        part="001",
        words=("Anna", "likes", "her", "dog", "It"),
        sentences=((0, 4), (4, 5)),
        chains=(((0, 1), (2, 3)), ((2, 4), (4, 5))),
        genre="bn",
        speakers=("Speaker#1",) * 4 + ("Speaker#2",),
        where=f"{path}:1",
    )
    assert document.columns is not None
    assert document.columns.ids == ("12", "3")


@pytest.mark.parametrize("none", ["-", "_", "*", ""])
@pytest.mark.parametrize("name", ["some.conll", "some.conll.gz", "some.v4_gold_conll"])
def test_several_documents_of_a_file_and_every_sign_for_no_edge(tmp_path: Path, none: str, name: str) -> None:
    text = f"{BEGIN}{rows('(1', none, '1)|(2)')}{rows('(2)', none)}{END}"
    other = f"\n#begin document e\n# a comment\n{rows('(1)')}{END}\n"
    first, second = read_documents(file_of(tmp_path, text + other, name)).documents
    assert first.words == ("a", "b", "c", "a", "b")
    assert first.sentences == ((0, 3), (3, 5))
    assert first.chains == (((0, 3),), ((2, 3), (3, 4)))
    assert (first.name, first.part, second.name, second.part) == ("d", "000", "e", "0")
    assert second.chains == (((0, 1),),)
    assert (first.genre, first.speakers) == (None, None)


def test_nested_crossing_and_repeated_mentions(tmp_path: Path) -> None:
    nested = only(file_of(tmp_path, f"{BEGIN}{rows('(1|(1|(2)', '1)', '1)')}{END}"))
    assert nested.chains == (((0, 1),), ((0, 2), (0, 3)))
    crossing = only(file_of(tmp_path, f"{BEGIN}{rows('(1', '(2|1)', '2)')}{END}"))
    assert crossing.chains == (((0, 2),), ((1, 3),))


def test_repeated_mentions_are_kept_counted_and_told(tmp_path: Path) -> None:
    path = file_of(tmp_path, f"{BEGIN}{rows('(1|(2', '1)|2)', '(1)', '(2)|(2)')}{END}")
    found = read_documents(path)
    assert found.documents[0].chains == (((0, 2), (2, 3)), ((0, 2), (3, 4), (3, 4)))
    assert len(found.repeated) == 2
    assert found.notices(path) == [
        f"{path}: 2 mentions are in two chains, or twice in one: 'a b' in d, words 0 to 2; 'd' in d, words 3 to 4. The "
        f"scores count them as the reference scorer does; training takes each in the first of its chains."
    ]
    assert without_repeats(found.documents[0].chains or ()) == (((0, 2), (2, 3)), ((3, 4),))
    once = file_of(tmp_path, f"{BEGIN}{rows('(1)', '(1)')}{END}")
    assert read_documents(once).notices(once) == []


def test_a_document_of_one_word_and_one_of_50_000(tmp_path: Path) -> None:
    assert only(file_of(tmp_path, f"{BEGIN}{rows('-')}{END}")).chains == ()
    path = file_of(tmp_path, BEGIN + rows("(1", "1)", "-", "(2)", "-") * 10_000 + END)
    before = time.perf_counter()
    document = only(path)
    assert time.perf_counter() - before < 10
    assert len(document.words) == 50_000
    assert [len(chain) for chain in document.chains or ()] == [10_000, 10_000]


def test_windows_line_ends(tmp_path: Path) -> None:
    windows = only(file_of(tmp_path, f"{BEGIN}{rows('(1', '1)')}{END}".replace("\n", "\r\n")))
    assert (windows.words, windows.chains, windows.part) == (("a", "b"), (((0, 2),),), "000")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEGIN + rows("(1", "-", "(2)") + END, ":2: '(1' begins a mention that is never ended. End it with '1)'"),
        (BEGIN + rows("(1", "1)") + rows("-", "7)") + END, ":6: '7)' ends a mention of chain 7, but none is open"),
        (BEGIN + rows("(1", "1)|1)") + END, ":3: '1)' ends a mention of chain 1, but none is open"),
        (BEGIN + rows("(1)"), ":1: this document is not ended in this file"),
        (BEGIN + rows("(1)") + BEGIN + rows("-") + END, ":1: this document is not ended before line 4 begins another"),
        (BEGIN + rows("(1)") + END + BEGIN + rows("(1)"), ":5: this document is not ended in this file"),
        (rows("(1)") + END, ":1: is not in a document: 'd\\t0\\t0\\ta\\tNN\\t(1)'"),
        (BEGIN + rows("-") + END + rows("(1)"), ":5: is not in a document"),
        (END, ":1: is not in a document"),
        (BEGIN + END, ":1: this document holds no word"),
        (BEGIN + "d\t0\ta\n" + END, ":2: has 3 columns: 'd\\t0\\ta'. Each word needs at least 5"),
        (BEGIN + "d 0 0 a NN -\nd 0 1 b -\n" + END, ":3: has 5 columns, but line 2 of the same sentence has 6"),
        (BEGIN + "d\t0\t0\t\tNN\t-\n" + END, ":2: column 4, the word, is empty"),
        (BEGIN + rows("NN") + END, ":2: the last column is 'NN', but the edges of mentions are wanted"),
        (BEGIN + rows("(1|") + END, ":2: the last column is '(1|'"),
        ("", ": holds no document"),
        ("\n\n", ": holds no document"),
    ],
)
def test_broken_columns_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_documents(file_of(tmp_path, text))
    assert f"some.conll{message}" in str(caught.value)


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_documents(tmp_path / "none.conll")
    latin = tmp_path / "latin.conll"
    latin.write_bytes(BEGIN.encode() + b"d\t0\t0\t\xe9t\xe9\tNN\t-\n" + END.encode())
    with pytest.raises(DataError, match=r"latin\.conll:2: not UTF-8"):
        read_documents(latin)
    (tmp_path / "wide.conll").write_bytes((BEGIN + rows("-") + END).encode("utf-16"))
    with pytest.raises(DataError, match="is UTF-16"):
        read_documents(tmp_path / "wide.conll")
    packed = file_of(tmp_path, BEGIN + rows("(1)", "-") * 400 + END, "cut.conll.gz")
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_documents(packed)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        file_of(tmp_path, f"#begin document ({name}); part 0\n{rows('(1)')}{END}", f"{name}.conll")
    (tmp_path / "deeper").mkdir()
    file_of(tmp_path, json.dumps({"document": "c", "sentences": [["x"]], "chains": []}), "deeper/c.jsonl")
    file_of(tmp_path, "not a document", "README.md")
    assert [document.name for document in read_documents(tmp_path).documents] == ["a", "b", "c"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="this folder holds no file of documents"):
        read_documents(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "genre"),
    [
        ("bn/cnn/00/cnn_0001", "bn"),
        ("wb/a2e/00/a2e_0000", "wb"),
        ("GUM_academic_art", "academic"),
        ("105_persuasion_brat", None),
        ("xx/cnn", None),
        ("", None),
    ],
)
def test_the_genre_is_told_by_the_name(name: str, genre: str | None) -> None:
    assert genre_of(name) == genre


# --- JSON lines -------------------------------------------------------------------------------------------------------

RECORD: dict[str, Any] = {
    "document": "d",
    "sentences": [["Anna", "left"], ["She", "ran"]],
    "chains": [[[2, 3], [0, 1]]],
}


def json_file(folder: Path, *records: object, name: str = "some.jsonl") -> Path:
    return file_of(folder, "".join(json.dumps(record) + "\n" for record in records), name)


def test_json_lines(tmp_path: Path) -> None:
    path = json_file(tmp_path, RECORD, {"sentences": [[], ["x"]], "chains": [[]]}, name="some.jsonl.gz")
    first, second = read_documents(path).documents
    assert first == CorefDocument(
        "d", "0", ("Anna", "left", "She", "ran"), ((0, 2), (2, 4)), (((0, 1), (2, 3)),), where=f"{path}:1"
    )
    assert second == CorefDocument("line 2", "0", ("x",), ((0, 1),), (), where=f"{path}:2")


def test_clusters_of_end_to_end_models_have_the_last_word(tmp_path: Path) -> None:
    record = {"doc_key": "nw/x_0", "sentences": RECORD["sentences"], "clusters": [[[0, 1], [2, 2]]]}
    speakers = [["A", "A"], ["B", "B"]]
    for given in (speakers, ["A", "B"]):
        document = only(json_file(tmp_path, {**record, "speakers": given}, name="some.jsonlines"))
        assert document.chains == (((0, 2), (2, 3)),)
        assert (document.name, document.genre, document.speakers) == ("nw/x_0", "nw", ("A", "A", "B", "B"))
    assert only(json_file(tmp_path, {**record, "speakers": ["", ""], "genre": "wb"})).genre == "wb"
    assert only(json_file(tmp_path, {**record, "speakers": ["", ""]})).speakers is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentences": "Anna left"}, "'sentences' must be lists of words"),
        ({"sentences": ["Anna left"]}, "'sentences' must be a list of strings"),
        ({"sentences": [[""]]}, "'sentences' must hold strings, none of them empty"),
        ({"sentences": [[]]}, "this document holds no word"),
        ({"chains": [[[0, 5]]]}, "without end, counted from 0 over the 4 words of the document; got [0, 5]"),
        ({"chains": [[[1, 1]]]}, "got [1, 1]"),
        ({"chains": [[[-1, 1]]]}, "got [-1, 1]"),
        ({"chains": [[[0, True]]]}, "got [0, True]"),
        ({"chains": [[0, 1]]}, "got 0"),
        ({"chains": [[0.5]]}, "got 0.5"),
        ({"chains": {}}, "'chains' must be a list of lists of mentions"),
        ({"clusters": []}, "needs either 'chains' or 'clusters'; has both"),
        ({"document": ["Anna"]}, "the document's name must be text"),
        ({"speakers": ["A"]}, "'speakers' must have a name for each of the 2 sentences"),
        ({"speakers": [["A"], ["B", "B"]]}, "'speakers' must have a name"),
    ],
)
def test_broken_json_lines_are_told_with_their_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_documents(json_file(tmp_path, RECORD, {**RECORD, **change}))
    assert "some.jsonl:2: " in str(caught.value)
    assert message in str(caught.value)


def test_json_lines_without_chains_are_for_prediction(tmp_path: Path) -> None:
    path = json_file(tmp_path, {"sentences": [["a"]]})
    with pytest.raises(DataError, match="needs either 'chains' or 'clusters'; has neither, but sentences"):
        read_documents(path)
    assert read_documents(path, labelled=False).documents[0].chains is None
    with pytest.raises(DataError, match="not JSON"):
        read_documents(file_of(tmp_path, "{", "bad.jsonl"))


def test_chains_are_sorted() -> None:
    assert sorted_chains([[(5, 6), (2, 3)], [(0, 9), (0, 1)]]) == (((0, 1), (0, 9)), ((2, 3), (5, 6)))
    assert repeated_mentions([((0, 1), (0, 1)), ((2, 3),), ((2, 3),)]) == [(0, 1), (2, 3)]


# --- the corpora ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "documents", "sentences", "words", "mentions", "chains", "repeated"),
    [
        ("ontogum_coref/train.conll.gz", 177, 10_224, 177_410, 23_320, 5_311, 6),
        ("ontogum_coref/dev.conll.gz", 29, 1_534, 27_048, 3_700, 819, 1),
        ("litbank_coref/train", 80, 6_852, 169_181, 23_238, 6_571, 0),
        ("litbank_coref/dev", 10, 923, 20_654, 2_926, 723, 0),
    ],
)
def test_the_corpora_have_as_much_as_their_makers_say(
    name: str, documents: int, sentences: int, words: int, mentions: int, chains: int, repeated: int
) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"shared/data/{name} is not there")
    found = read_documents(DATA / name)
    every = [chain for document in found.documents for chain in document.chains or ()]
    assert len(found.documents) == documents
    assert sum(len(document.sentences) for document in found.documents) == sentences
    assert sum(len(document.words) for document in found.documents) == words
    assert (sum(map(len, every)), len(every), len(found.repeated)) == (mentions, chains, repeated)
    assert all(document.genre is not None for document in found.documents) == name.startswith("ontogum")
