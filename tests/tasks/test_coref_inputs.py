from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.coref_documents import CorefDocument
from headstart.tasks.coref_inputs import CorefInputConfig, read_unresolved
from headstart.tasks.coref_text import document_of_text

TEXT = "Anna left. She's late,\nas Ann’s dog said.\n\nIt didn't wait.\n"


def documents(path: Path | str, **settings: object) -> list[CorefDocument]:
    return list(read_unresolved(str(path), CorefInputConfig.model_validate(settings)))


def file_of(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def test_a_text_has_words_at_exact_offsets_and_clitics_of_their_own() -> None:
    document = document_of_text(TEXT, "bn/x", "here")
    sentences = [" ".join(document.words[first:end]) for first, end in document.sentences]
    assert sentences == ["Anna left .", "She 's late , as Ann ’s dog said .", "It didn't wait ."]
    assert document.offsets is not None
    assert [TEXT[start:end] for start, end in document.offsets] == list(document.words)
    assert (document.chains, document.text, document.genre, document.where) == (None, TEXT, "bn", "here")
    assert document_of_text("", "x").words == ()
    assert document_of_text("'s", "x").words == ("'s",)


def test_a_text_file_is_one_document(tmp_path: Path) -> None:
    path = file_of(tmp_path, TEXT, "story.txt")
    (document,) = documents(path)
    assert (document.name, document.text, document.where) == ("story", TEXT, str(path))
    assert documents(file_of(tmp_path, TEXT, "story"))[0].text == TEXT


def test_each_line_is_a_document_if_asked_for(tmp_path: Path) -> None:
    path = file_of(tmp_path, "Anna left.\n\nShe ran.\r\n", "some.txt")
    found = documents(path, one_per_line=True)
    assert [document.text for document in found] == ["Anna left.", "", "She ran."]
    assert [document.name for document in found] == ["some, line 1", "some, line 2", "some, line 3"]
    assert found[2].where == f"{path}:3"


@pytest.mark.parametrize(("given", "count"), [(TEXT, 1), ('{"text": "Anna left."}\n{"sentences": [["She"]]}\n', 2)])
def test_standard_input_is_one_document_or_json_lines(monkeypatch: pytest.MonkeyPatch, given: str, count: int) -> None:
    stream = io.TextIOWrapper(io.BytesIO(given.encode("utf-8")), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stream)
    found = documents("-")
    assert len(found) == count
    assert found[0].words[0] == "Anna"
    assert all(document.chains is None for document in found)


def test_json_lines_have_sentences_or_a_text(tmp_path: Path) -> None:
    records = [
        {"document": "a", "part": 2, "sentences": [["Anna"], ["She"]], "chains": "anything"},
        {"document": "b", "text": "She's here.", "more": 1},
    ]
    path = file_of(tmp_path, "".join(json.dumps(record) + "\n\n" for record in records), "some.jsonl")
    first, second = documents(path)
    assert (first.name, first.part, first.words, first.sentences, first.chains) == (
        "a", "2", ("Anna", "She"), ((0, 1), (1, 2)), None,
    )  # fmt: skip
    assert (second.name, second.part, second.words) == ("b", "0", ("She", "'s", "here", "."))
    assert second.text == "She's here."
    other = file_of(tmp_path, json.dumps({"body": "It ran.", "sentences": [["x"]]}), "other.jsonl")
    assert documents(other, text_field="body")[0].words == ("It", "ran", ".")
    with pytest.raises(DataError, match=r"other\.jsonl:1: has neither 'sentences' nor 'text'; there are: body"):
        documents(file_of(tmp_path, '{"body": "It ran."}', "other.jsonl"))
    with pytest.raises(DataError, match="'text' must be text"):
        documents(file_of(tmp_path, '{"text": 3}', "other.jsonl"))


def test_columns_are_read_without_their_chains(tmp_path: Path) -> None:
    text = "#begin document (d); part 0\nd\t0\t0\tAnna\t(1\nd\t0\t1\tleft\t-\n\n#end document\n"
    for path, settings in (("some.conll", {}), ("some.txt", {"input_as": "columns"})):
        (document,) = documents(file_of(tmp_path, text, path), **settings)
        assert (document.words, document.chains) == (("Anna", "left"), None)
        assert document.columns is not None
    assert [document.name for document in documents(tmp_path)] == ["d"]


def test_the_kind_of_input_can_be_said(tmp_path: Path) -> None:
    brace = file_of(tmp_path, '{"text": "x"} is how it began.', "some.txt")
    assert documents(brace, input_as="text")[0].text == '{"text": "x"} is how it began.'
    lines = file_of(tmp_path, ' {"text": "x"}', "some.data")
    assert documents(lines, input_as="words")[0].words == ("x",)
    with pytest.raises(ConfigError, match="is plain text, without keys, so there is no field 'body'"):
        documents(file_of(tmp_path, "Anna left.", "some.txt"), text_field="body")


def test_empty_input(tmp_path: Path) -> None:
    for text in ("", " \n\n"):
        with pytest.raises(DataError, match=r"some\.txt: is empty"):
            documents(file_of(tmp_path, text, "some.txt"))
    assert documents(file_of(tmp_path, "", "some.txt"), one_per_line=True) == []
    assert documents(file_of(tmp_path, "", "some.jsonl")) == []
    (tmp_path / "latin.txt").write_bytes(b"\xe9t\xe9")
    with pytest.raises(DataError, match="not UTF-8"):
        documents(tmp_path / "latin.txt")
