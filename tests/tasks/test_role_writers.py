from __future__ import annotations

import difflib
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from headstart.tasks.role_inputs import RoleInputConfig, read_role_inputs, sentences_of_text
from headstart.tasks.role_reading import read_roles
from headstart.tasks.role_writers import RoleColumns, RolesPage, RoleView
from headstart.tasks.roles import Predicate, Roles, RoleSentence
from headstart.tasks.spans import Span

SRL_EWT = Path(__file__).parents[3] / "shared" / "data" / "srl_ewt"
CONLL2012 = """\
#begin document (bc/x); part 000
bc/x 0 0 He PRP (S* - - - Ann * (ARG0*) -
bc/x 0 1 ran VBD (VP* run 02 1 Ann * (V*) -
bc/x 0 2 shop NN *)) shop - 3 Ann (ORG) * (4)

bc/x 0 0 Oh UH * - - - Ann * -

#end document
"""


def columns(pairs: list[tuple[RoleSentence, Roles]]) -> str:
    writer = RoleColumns(None)  # type: ignore[arg-type]
    return writer.begin() + "".join(writer.lines([pair]) for pair in pairs) + writer.end()


def written(sentences: list[RoleSentence]) -> str:
    return columns([(sentence, Roles(sentence.predicates or ())) for sentence in sentences])


def saved(folder: Path, text: str, name: str = "some.conll") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


@pytest.mark.skipif(not SRL_EWT.exists(), reason="shared/data/srl_ewt is not there")
@pytest.mark.parametrize("name", ["train", "dev"])
def test_srl_ewt_is_written_back_byte_for_byte(name: str) -> None:
    path = SRL_EWT / f"ewt.{name}.gold_conll.gz"
    found = written(read_roles(path).sentences)
    wanted = gzip.decompress(path.read_bytes()).decode("utf-8")
    assert found == wanted


def test_conll_2012_is_written_back_line_by_line(tmp_path: Path) -> None:
    assert written(read_roles(saved(tmp_path, CONLL2012)).sentences) == CONLL2012
    tabs = CONLL2012.replace(" ", "\t").replace("#begin\tdocument\t(bc/x);\tpart\t", "#begin document (bc/x); part ")
    assert written(read_roles(saved(tmp_path, tabs)).sentences) == tabs


def test_only_line_ends_and_the_alignment_of_columns_are_not_kept(tmp_path: Path) -> None:
    aligned = CONLL2012.replace(" PRP ", "   PRP  ").replace("\n", "\r\n").rstrip()
    found = written(read_roles(saved(tmp_path, aligned)).sentences)
    assert found == CONLL2012
    different = [line for line in difflib.ndiff(aligned.splitlines(), found.splitlines()) if line.startswith("- ")]
    assert different == ["- bc/x 0 0 He   PRP  (S* - - - Ann * (ARG0*) -"]


def test_two_files_do_not_run_together(tmp_path: Path) -> None:
    one = read_roles(saved(tmp_path, "d 0 0 Oh UH * - -\n")).sentences
    assert written([*one, *one]) == "d 0 0 Oh UH * - -\n\nd 0 0 Oh UH * - -\n"


def test_predicted_predicates_replace_those_of_the_file(tmp_path: Path) -> None:
    sentences = read_roles(saved(tmp_path, CONLL2012)).sentences
    found = columns([(sentences[0], Roles((Predicate(2, arguments=(Span(0, 2, "ARG1"), Span(2, 3, "V"))),)))])
    assert found.splitlines()[1:] == [
        "bc/x 0 0 He PRP (S* - - - Ann * (ARG1* -",
        "bc/x 0 1 ran VBD (VP* run - 1 Ann * *) -",
        "bc/x 0 2 shop NN *)) shop _ 3 Ann (ORG) (V*) (4)",
    ]
    propbank = read_roles(saved(tmp_path, "d 0 0 Go VB * go go.01 (V*)\n")).sentences
    assert columns([(propbank[0], Roles(()))]) == "d 0 0 Go VB * - -\n"


def test_a_text_gets_propbanks_columns_that_can_be_read_back(tmp_path: Path) -> None:
    first, second, blank = [*sentences_of_text("Cats sleep. Oh!"), *sentences_of_text("")]
    sleep = Predicate(1, arguments=(Span(0, 1, "ARG0"), Span(1, 2, "V")))
    text = columns([(first, Roles((sleep,))), (blank, Roles(())), (second, Roles(()))])
    assert text == (
        "-\t0\t0\tCats\t-\t*\t-\t-\t(ARG0*)\n-\t0\t1\tsleep\t-\t*\t-\t_\t(V*)\n-\t0\t2\t.\t-\t*\t-\t-\t*\n\n"
        "-\t1\t0\tOh\t-\t*\t-\t-\n-\t1\t1\t!\t-\t*\t-\t-\n"
    )
    again = read_roles(saved(tmp_path, text)).sentences
    assert [(s.words, s.predicates) for s in again] == [(first.words, (sleep,)), (second.words, ())]


def test_a_predicate_without_v_is_written_with_it() -> None:
    sentence = RoleSentence(("a\tb", "go"), None)
    text = columns([(sentence, Roles((Predicate(1, "go", "go.01", (Span(0, 2, "ARG1"),)),)))])
    assert text == "-\t0\t0\ta b\t-\t*\t-\t-\t*\n-\t0\t1\tgo\t-\t*\tgo\tgo.01\t(V*)\n"


def test_columns_to_be_labelled_are_written_with_their_answers(tmp_path: Path) -> None:
    path = saved(tmp_path, CONLL2012)
    given = list(read_role_inputs(str(path), RoleInputConfig()))
    gold = [Roles(sentence.predicates or ()) for sentence in read_roles(path).sentences]
    assert columns(list(zip(given, gold, strict=True))) == CONLL2012


def test_the_view_has_a_line_for_each_predicate() -> None:
    (sentence,) = sentences_of_text("Cats  sleep")
    roles = Roles((Predicate(1, arguments=(Span(0, 1, "ARG0"), Span(1, 2, "V"))),))
    shown = RoleView(None).lines([(sentence, roles), (sentence, Roles(()))])  # type: ignore[arg-type]
    assert "\x1b[" in shown
    lines = shown.split("\n")
    assert (lines[0], lines[2]) == ("Cats  sleep", "Cats  sleep")
    assert "ARG0" in lines[1]


def test_the_page_is_saved(tmp_path: Path) -> None:
    page = RolesPage(tmp_path / "roles.html")
    (sentence,) = sentences_of_text("Cats sleep")
    page.add([(sentence, Roles((Predicate(1),)))])
    page.add([(replace(sentence, text="Cats sleep"), Roles(()))])
    page.save()
    assert "2 sentences, 1 predicate<" in (tmp_path / "roles.html").read_text(encoding="utf-8")
