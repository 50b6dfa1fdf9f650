from __future__ import annotations

from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.tasks.coref_documents import Chain, CorefDocument, PronounExample
from headstart.tasks.coref_inputs import CorefInputConfig, read_unresolved
from headstart.tasks.coref_reading import read_documents
from headstart.tasks.gap import gap_counts, gap_scores, names_found, words_at

DATA = Path(__file__).parents[3] / "shared" / "data" / "gap"
HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
TEXT = "Dr. Ann Lee met Eve Fox's aunt when she fell."
#       Dr .  Ann Lee met Eve Fox 's aunt when she fell .
ROW = ["one", TEXT, "she", "36", "Ann Lee", "4", "TRUE", "Eve Fox", "16", "FALSE", "http://x"]
SHE, ANN, EVE = (10, 11), (2, 4), (5, 7)


def table(folder: Path, *rows: list[str], header: str = HEADER) -> Path:
    path = folder / "gap.tsv"
    path.write_text(header + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def one(folder: Path) -> CorefDocument:
    (document,) = read_documents(table(folder, ROW)).documents
    return document


def changed(**cells: str) -> list[str]:
    names = HEADER.strip().split("\t")
    return [cells.get(name.replace("-", "_"), cell) for name, cell in zip(names, ROW, strict=True)]


def test_an_example_by_hand(tmp_path: Path) -> None:
    document = one(tmp_path)
    assert (document.name, document.text, document.chains) == ("one", TEXT, None)
    assert document.where == f"{tmp_path / 'gap.tsv'}:2"
    assert document.pronoun == PronounExample((36, 39), (4, 11), (16, 23), "feminine", True, False)
    places = (document.pronoun.pronoun, document.pronoun.a, document.pronoun.b)
    assert tuple(words_at(document, place) for place in places) == (SHE, ANN, EVE)
    (unresolved,) = read_unresolved(str(tmp_path / "gap.tsv"), CorefInputConfig())
    assert unresolved.pronoun is None


@pytest.mark.parametrize(
    ("chains", "found"),
    [
        ((), (False, False)),
        ((((0, 4), SHE),), (True, False)),  # the mention contains the name
        ((((2, 3), SHE),), (True, False)),  # the mention is part of the name
        (((ANN, EVE), (SHE, (4, 5))), (False, False)),  # the names are in another chain
        (((ANN, EVE),), (False, False)),  # the pronoun is in no chain
        (((ANN, EVE, SHE),), (True, True)),
        ((((3, 6), SHE),), (False, False)),  # it only overlaps with both
        ((((5, 9), SHE),), (False, True)),
        (((ANN, (9, 11)),), (False, False)),  # no mention is the pronoun alone
        (((SHE,),), (False, False)),
    ],
)
def test_chains_are_mapped_onto_the_names(tmp_path: Path, chains: tuple[Chain, ...], found: tuple[bool, bool]) -> None:
    document = one(tmp_path)
    assert names_found(document, chains) == found
    assert gap_counts(document, chains) == (int(found[0]), sum(found), 1)


def test_scores_by_gender_and_their_ratio(tmp_path: Path) -> None:
    he = changed(ID="two", Text=TEXT.replace("she", "he"), Pronoun="He".lower())
    both = changed(ID="three", Pronoun="she", B_coref="TRUE")
    documents = read_documents(table(tmp_path, ROW, he, both)).documents
    right: tuple[Chain, ...] = ((ANN, SHE),)
    scores = gap_scores(documents, [right, ((ANN, EVE, SHE),), right])
    # she: 2 right of 2 predicted and 3 gold; he: 1 right of 2 predicted and 1 gold.
    assert scores["feminine"] == pytest.approx(2 * 2 / 5)
    assert scores["masculine"] == pytest.approx(2 * 1 / 3)
    assert scores["f1"] == pytest.approx(2 * 3 / 8)
    assert scores["bias"] == pytest.approx((4 / 5) / (2 / 3))
    assert gap_scores(documents, [(), right, ()])["bias"] is None
    assert gap_scores([], []) == {"f1": 0.0, "masculine": 0.0, "feminine": 0.0, "bias": None}
    with pytest.raises(DataError, match="is no example of GAP"):
        gap_counts(CorefDocument("d", "0", ("a",), ((0, 1),), (), where="here"), ())


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"Pronoun": "it"}, "the pronoun 'it' is none of GAP's: he, him, his, she, her, hers"),
        ({"Pronoun_offset": "35"}, "'Pronoun-offset' is '35', but 'she' does not stand at that character"),
        ({"A_offset": "-4"}, "'A-offset' is '-4'"),
        ({"B_offset": "x"}, "'B-offset' is 'x'"),
        ({"B_offset": "99999"}, "'B-offset' is '99999'"),
        ({"B_offset": "9" * 5_000}, "'B-offset' is '9999999999999999999"),
        ({"A": ""}, "'A-offset' is '4', but '' does not stand"),
        ({"A_coref": "yes"}, "'A-coref' must be TRUE or FALSE, got 'yes'"),
    ],
)
def test_broken_rows_are_told_with_their_line(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_documents(table(tmp_path, ROW, changed(**cells)))
    assert "gap.tsv:3: " in str(caught.value)
    assert message in str(caught.value)


def test_other_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gap\.tsv:1: has no column 'A-coref'; there are: ID, Text"):
        read_documents(table(tmp_path, header=HEADER.replace("A-coref\t", "")))
    with pytest.raises(DataError, match="has 2 columns"):
        read_documents(table(tmp_path, ["one", TEXT]))
    with pytest.raises(DataError, match="holds no document"):
        read_documents(table(tmp_path))


@pytest.mark.parametrize(
    ("name", "counts"), [("development", (2000, 874, 925, 201)), ("validation", (454, 187, 205, 62))]
)
def test_gap_as_published(name: str, counts: tuple[int, int, int, int]) -> None:
    path = DATA / f"gap-{name}.tsv"
    if not path.exists():
        pytest.skip("shared/data/gap is not there")
    documents = read_documents(path).documents
    examples = [document.pronoun for document in documents if document.pronoun is not None]
    neither = sum(not (example.a_coref or example.b_coref) for example in examples)
    found = sum(example.a_coref for example in examples), sum(example.b_coref for example in examples)
    assert (len(documents), *found, neither) == counts
    assert [example.gender for example in examples].count("feminine") == len(documents) // 2
    gold = [gold_chains(document, example) for document, example in zip(documents, examples, strict=True)]
    assert gap_scores(documents, gold) == {"f1": 1.0, "masculine": 1.0, "feminine": 1.0, "bias": 1.0}


def gold_chains(document: CorefDocument, example: PronounExample) -> tuple[Chain, ...]:
    places = [example.pronoun, *([example.a] if example.a_coref else []), *([example.b] if example.b_coref else [])]
    return (tuple(words_at(document, place) for place in places),)
