from __future__ import annotations

import gzip
import json
import random
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from headstart.tasks.coref_documents import Chain, Chains, CorefDocument, Mention, sorted_chains
from headstart.tasks.coref_reading import read_documents
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.coref_writers import (
    ChainColumns,
    ChainPage,
    ChainView,
    chains_as_json,
    columns_of,
    edge_cells,
)

DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = ["ontogum_coref/dev.conll.gz", "ontogum_coref/train.conll.gz"]
FILES += sorted(str(path.relative_to(DATA)) for path in DATA.glob("litbank_coref/*/*.conll")) or ["litbank_coref/dev"]
NO_TASK = cast(Any, None)

DOCUMENT = document_of_text("Anna's dog barked. She fed it.", "story")
ANNA: Chain = ((0, 1), (5, 6))
DOG: Chain = ((0, 3), (7, 8))


def content(path: Path) -> str:
    if not path.exists():
        pytest.skip(f"{path.parent.name} is not there")
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


@cache
def documents_of(name: str) -> list[CorefDocument]:
    return read_documents(DATA / name).documents


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_written_back_byte_for_byte(name: str) -> None:
    """No line differs.

    Written without a look at the old cells, those lines differ that have several edges in another order than ours
    (inner ends, then beginnings, the longest first, then mentions of one word): the corpora follow no one rule. They
    are the same edges, and read the same.
    """
    text = content(DATA / name)
    documents = documents_of(name)
    assert "".join(columns_of(document, document.chains or ()) for document in documents) == text
    for document in documents:
        columns = document.columns
        assert columns is not None
        new = edge_cells(len(document.words), document.chains or (), columns.ids)
        for (line, start, end), cell in zip(columns.cells, new, strict=True):
            old = columns.lines[line][start:end]
            assert (cell or columns.none) == old or ("|" in old and sorted(old.split("|")) == sorted(cell.split("|")))


@pytest.mark.parametrize(
    ("folder", "differing", "several"), [("ontogum_coref", 118, 2_061), ("litbank_coref", 476, 2_136)]
)
def test_how_many_lines_have_their_edges_in_another_order(folder: str, differing: int, several: int) -> None:
    found = total = 0
    for name in (name for name in FILES if name.startswith(folder)):
        content(DATA / name)
        for document in documents_of(name):
            columns = document.columns
            assert columns is not None
            new = edge_cells(len(document.words), document.chains or (), columns.ids)
            old = [columns.lines[line][start:end] for line, start, end in columns.cells]
            found += sum((a or columns.none) != b for a, b in zip(new, old, strict=True))
            total += sum("|" in cell for cell in old)
    assert (found, total) == (differing, several)


def written(folder: Path, text: str, chains: tuple[Chain, ...] | None) -> str:
    path = folder / "some.conll"
    path.write_bytes(text.encode("utf-8"))
    documents = read_documents(path).documents
    return "".join(
        columns_of(document, (document.chains or ()) if chains is None else chains) for document in documents
    )


SPACED = (
    "\n#begin document (bn/a); part 003\r\n"
    "bn/a   3   0   Anna   NNP       (7)\r\n"
    "bn/a   3   1    and    CC         _  \n"
    "bn/a   3   2   Anna   NNP   (7)|(8)\n"
    "\n\n# a comment\n"
    "bn/a   3   0     It   PRP    (8)\n"
    "#end document\n\n"
)


def test_any_layout_is_written_back_as_it_was(tmp_path: Path) -> None:
    assert written(tmp_path, SPACED, None) == SPACED
    twice = SPACED + SPACED.replace("bn/a", "bn/b")
    assert written(tmp_path, twice, None) == twice
    assert written(tmp_path, SPACED.rstrip("\n"), None) == SPACED.rstrip("\n") + "\n"


def test_predicted_chains_replace_the_last_column_alone(tmp_path: Path) -> None:
    assert written(tmp_path, SPACED, (((0, 3), (3, 4)),)) == (
        "\n#begin document (bn/a); part 003\r\n"
        "bn/a   3   0   Anna   NNP       (0\r\n"
        "bn/a   3   1    and    CC         _  \n"
        "bn/a   3   2   Anna   NNP   0)\n"
        "\n\n# a comment\n"
        "bn/a   3   0     It   PRP    (0)\n"
        "#end document\n\n"
    )
    assert "(" not in written(tmp_path, SPACED, ()).replace("(bn/a)", "")


def test_a_text_gets_columns_that_are_read_again(tmp_path: Path) -> None:
    text = ChainColumns(NO_TASK).lines([(DOCUMENT, Chains((ANNA, DOG)))])
    assert text == (
        "#begin document (story); part 000\n"
        "story\t0\t0\tAnna\t(1|(0)\n"
        "story\t0\t1\t's\t-\n"
        "story\t0\t2\tdog\t1)\n"
        "story\t0\t3\tbarked\t-\n"
        "story\t0\t4\t.\t-\n"
        "\n"
        "story\t0\t0\tShe\t(0)\n"
        "story\t0\t1\tfed\t-\n"
        "story\t0\t2\tit\t(1)\n"
        "story\t0\t3\t.\t-\n"
        "\n"
        "#end document\n"
    )
    path = tmp_path / "some.conll"
    path.write_text(text, encoding="utf-8")
    (again,) = read_documents(path).documents
    assert (again.words, again.sentences, again.chains) == (DOCUMENT.words, DOCUMENT.sentences, (ANNA, DOG))
    empty = document_of_text("", "nothing")
    assert columns_of(empty, ()) == "#begin document (nothing); part 000\n#end document\n"


def test_any_chains_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Mentions of two chains may cross, and be the same words; those of one chain are nested or apart."""
    rng = random.Random(11)
    path = tmp_path / "some.conll"
    for _ in range(60):
        length = rng.randint(1, 12)
        words = CorefDocument("d", "0", tuple("abcdefghijkl"[:length]), ((0, length),), None)
        chains = sorted_chains(filter(None, (apart_or_nested(rng, length) for _ in range(rng.randint(0, 4)))))
        path.write_text(columns_of(words, chains), encoding="utf-8")
        (again,) = read_documents(path).documents
        assert again.chains == chains
        assert columns_of(again, chains) == path.read_text(encoding="utf-8")


def apart_or_nested(rng: random.Random, length: int) -> list[Mention]:
    kept: list[Mention] = []
    for _ in range(rng.randint(1, 5)):
        first = rng.randrange(length)
        end = rng.randint(first + 1, length)
        if all(end <= a or b <= first or (a <= first and end <= b) or (first <= a and b <= end) for a, b in kept):
            kept.append((first, end))
    return kept


def test_the_order_of_edges_in_a_cell() -> None:
    chains = [((0, 3), (1, 3)), ((2, 3), (2, 5)), ((2, 4),)]
    assert edge_cells(5, chains, "abc") == ["(a", "(a", "a)|a)|(b|(c|(b)", "c)", "b)"]


def test_json_has_characters_and_is_read_again(tmp_path: Path) -> None:
    found = chains_as_json(DOCUMENT, (ANNA, DOG))
    assert found["text"] == DOCUMENT.text
    assert found["chains"] == [[[0, 1], [5, 6]], [[0, 3], [7, 8]]]
    assert found["mentions"][1] == [
        {"text": "Anna's dog", "start": 0, "end": 10},
        {"text": "it", "start": 27, "end": 29},
    ]
    for mentions in found["mentions"]:
        assert all(found["text"][one["start"] : one["end"]] == one["text"] for one in mentions)
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(found), encoding="utf-8")
    (again,) = read_documents(path).documents
    assert (again.name, again.words, again.sentences, again.chains) == (
        DOCUMENT.name, DOCUMENT.words, DOCUMENT.sentences, (ANNA, DOG),
    )  # fmt: skip
    words = CorefDocument("d", "1", ("Anna", "left"), ((0, 2),), None)
    assert chains_as_json(words, (((0, 1),),)) == {
        "document": "d",
        "part": "1",
        "sentences": [["Anna", "left"]],
        "chains": [[[0, 1]]],
        "mentions": [[{"text": "Anna", "first_word": 0, "end_word": 1}]],
    }


def test_the_view_and_the_page_are_written(tmp_path: Path) -> None:
    words = CorefDocument("[a] b", "0", ("Anna", "left"), ((0, 2),), None)
    view = ChainView(NO_TASK).lines([(DOCUMENT, Chains((ANNA, DOG))), (words, Chains(()))])
    plain = "".join(part.partition("m")[2] if n else part for n, part in enumerate(view.split("\x1b[")))
    assert plain == "[2 [1 Anna]'s dog] barked. [1 She] fed [2 it].\n\n[a] b\nAnna left\n\n"
    page = ChainPage(tmp_path / "page.html")
    page.add([(DOCUMENT, Chains((ANNA, DOG)))])
    page.save()
    assert "1 document, 2 chains, 4 mentions" in (tmp_path / "page.html").read_text(encoding="utf-8")
