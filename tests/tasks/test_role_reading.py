from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.role_reading import RoleFile, read_roles
from headstart.tasks.roles import Predicate, RoleSentence
from headstart.tasks.spans import Span

SRL_EWT = Path(__file__).parents[3] / "shared" / "data" / "srl_ewt"
PROPBANK = """\
d 0 0 Cats NNS (S* - - (ARG0*) *
d 0 1 want VBP (VP* want want.01 (V*) *
d 0 2 to TO * - - (ARG1* *
d 0 3 sleep VB *)) sleep sleep.01 *) (V*)

d 1 0 Oh UH * - -
"""
CONLL2012 = """\
#begin document (bc/x); part 000
bc/x   0  0   He  PRP  (S*    -   -  -  Ann  *  (ARG0*)  -
bc/x   0  1  ran  VBD  (VP*  run  02 1  Ann  *  (V*)     -
bc/x   0  2  shop  NN  *))  shop  -  3  Ann  (ORG)  *    (4)

bc/x   0  0   Oh  UH   *     -   -  -  Ann  *  -

#end document
"""


def file_of(folder: Path, text: str | bytes, name: str = "some.gold_conll") -> Path:
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def told(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_roles(path)
    return str(caught.value)


@pytest.mark.parametrize("name", ["some.gold_conll", "some.gold_conll.gz"])
@pytest.mark.parametrize("tabs", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_propbanks_layout_by_hand(tmp_path: Path, name: str, tabs: bool, end: str) -> None:
    text = (PROPBANK.replace(" ", "\t") if tabs else PROPBANK).replace("\n", end)
    path = file_of(tmp_path, text, name)
    want = Predicate(1, "want", "want.01", (Span(0, 1, "ARG0"), Span(1, 2, "V"), Span(2, 4, "ARG1")))
    sleep = Predicate(3, "sleep", "sleep.01", (Span(3, 4, "V"),))
    assert read_roles(path) == RoleFile(
        path,
        [
            RoleSentence(("Cats", "want", "to", "sleep"), (want, sleep), f"{path}:1"),
            RoleSentence(("Oh",), (), f"{path}:6"),
        ],
        [],
    )


def test_conll_2012s_layout_by_hand(tmp_path: Path) -> None:
    path = file_of(tmp_path, CONLL2012, "some.v4_gold_conll")
    run = Predicate(1, "run", "run.02", (Span(0, 1, "ARG0"), Span(1, 2, "V")))
    assert read_roles(path).sentences == [
        RoleSentence(("He", "ran", "shop"), (run,), f"{path}:2"),
        RoleSentence(("Oh",), (), f"{path}:6"),
    ]


def test_a_predicate_may_be_a_later_part_of_its_v(tmp_path: Path) -> None:
    text = "d 0 0 x NN * - - (V*)\nd 0 1 - HYPH * - - *\nd 0 2 rays NNS * xray xray.01 (C-V*)\n"
    (sentence,) = read_roles(file_of(tmp_path, text)).sentences
    assert sentence.predicates == (Predicate(2, "xray", "xray.01", (Span(0, 1, "V"), Span(2, 3, "C-V"))),)


def test_nested_arguments_are_left_out_and_told(tmp_path: Path) -> None:
    text = "d 0 0 such JJ * - - (ARG1(R-ARG2*)\nd 0 1 fears NNS * - - *)\nd 0 2 are VBP * be be.01 (V*)\n"
    path = file_of(tmp_path, text)
    file = read_roles(path)
    assert file.sentences[0].predicates == (Predicate(2, "be", "be.01", (Span(0, 2, "ARG1"), Span(2, 3, "V"))),)
    assert file.notices() == [
        f"{path}: 1 argument overlaps another of the same predicate and cannot be learned, because BIO tags hold one "
        f"role per word; left out, such as {path}:3: R-ARG2 'such' of the predicate 'are'."
    ]
    twice = read_roles(file_of(tmp_path, f"{text}\n{text}"))
    assert twice.notices()[0].startswith(f"{path}: 2 arguments overlap another")
    assert read_roles(file_of(tmp_path, PROPBANK)).notices() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(ARG1* *", "(ARG1 *"), ":3: column 9 needs a bracket such as (ARG1*, * or *), got '(ARG1'"),
        (("*) (V*)", "* (V*)"), ":3: column 9 opens the bracket '(ARG1*', which is not closed in this sentence"),
        (("(ARG0*) *", "*) *"), ":1: column 9 closes a bracket that was not opened: '*)'"),
        (("(V*) *\n", "(V*)) *\n"), ":2: column 9 closes a bracket that was not opened: '(V*))'"),
        ((" sleep sleep.01 ", " - - "), ":1: this sentence has 2 argument columns (of 10, in the layout of PropBank)"),
        ((" - - (ARG1*", " to to.01 (ARG1*"), "but 3 predicates, the words with a frame in column 8: want, to, sleep."),
        (("(V*) *", "* *"), ":2: the word 'want' has a frame in column 8, but no bracket (V*) around it in column 9"),
        (("want.01 (V*) *", "want.01 * (V*)"), ":2: the word 'want' has a frame in column 8, but no bracket (V*)"),
        (("*)) sleep", "*)) [x] sleep"), ":4: has 11 columns, but line 1, the first of this sentence, has 10"),
        ((" (V*) *\n", " (V*)\n"), ":2: has 9 columns, but line 1, the first of this sentence, has 10"),
        (("d 1 0 Oh UH * - -", "Oh UH"), ":6: has 2 columns, but the layout of PropBank has at least 8"),
        (("d 0 0 Cats", "d 0 Cats"), ":1: has 9 columns, separated by spaces. This is neither PropBank's layout"),
    ],
)
def test_broken_columns_are_told_with_their_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    broken = PROPBANK.replace(*change, 1)
    assert broken != PROPBANK
    assert message in told(file_of(tmp_path, broken))


def test_an_empty_word_is_told(tmp_path: Path) -> None:
    broken = PROPBANK.replace("sleep VB", " VB").replace(" ", "\t")
    assert ":4: column 4, the word, is empty" in told(file_of(tmp_path, broken))


def test_a_missing_column_of_conll_2012_is_told(tmp_path: Path) -> None:
    broken = CONLL2012.replace("(ARG0*)", "").replace("(V*)", "").replace("(ORG)  *", "(ORG)")
    assert ":2: this sentence has 0 argument columns (of 12, in the layout of CoNLL-2012), but 1 predicates" in told(
        file_of(tmp_path, broken)
    )


@pytest.mark.parametrize("text", ["", "\n \n", "#begin document (x)\n#end document\n"])
def test_a_file_without_sentences_is_told(tmp_path: Path, text: str) -> None:
    assert told(file_of(tmp_path, text)).startswith(f"{tmp_path / 'some.gold_conll'}: holds no sentence.")
    if not text.startswith("#"):
        assert told(file_of(tmp_path, text, "some.jsonl")).startswith(f"{tmp_path / 'some.jsonl'}: holds no sentence.")


def test_other_encodings_and_damaged_files_are_told(tmp_path: Path) -> None:
    assert "some.gold_conll:1: not UTF-8 (byte 0xe9)" in told(file_of(tmp_path, "d 0 0 été".encode("latin-1")))
    assert "some.gold_conll: is UTF-16" in told(file_of(tmp_path, PROPBANK.encode("utf-16")))
    whole = gzip.compress(PROPBANK.encode() * 500)
    cut = tmp_path / "cut.gold_conll.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    assert "cut.gold_conll.gz: damaged or cut short" in told(cut)
    assert "cannot be read" in told(tmp_path / "none.gold_conll")


def test_columns_have_no_fields(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a column file, which has no field 'tokens'\. Remove --text-field"):
        read_roles(file_of(tmp_path, PROPBANK), "tokens")


@pytest.mark.skipif(not SRL_EWT.exists(), reason="shared/data/srl_ewt is not there")
@pytest.mark.parametrize(
    ("name", "size"), [("train", (12_524, 204_221, 40_429, 121_844)), ("dev", (1_967, 24_891, 4_963, 14_546))]
)
def test_srl_ewt_has_its_published_size(name: str, size: tuple[int, ...]) -> None:
    file = read_roles(SRL_EWT / f"ewt.{name}.gold_conll.gz")
    predicates = [predicate for sentence in file.sentences for predicate in sentence.predicates or ()]
    words = sum(len(sentence.words) for sentence in file.sentences)
    spans = sum(len(predicate.arguments or ()) for predicate in predicates)
    assert (len(file.sentences), words, len(predicates), spans) == size
    assert file.overlapping == []
