"""Semantic role labelling as a task: what is read with a predicate, targets, decoding, follow-up questions, labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.batches.rows import Marked
from headstart.errors import DataError
from headstart.heads.role import RoleHeadConfig
from headstart.tasks.base import Passage, Scores, Units
from headstart.tasks.role_columns import PROPBANK, Columns
from headstart.tasks.role_passages import is_marked, window_around, within
from headstart.tasks.roles import Predicate, Roles, RoleSentence
from headstart.tasks.spans import Span, illegal_places
from headstart.tasks.srl import Srl

TASK = Srl(("O", "B-ARG0", "I-ARG0", "B-ARG1", "I-ARG1", "B-V", "I-V"))
C = len(TASK.labels)
NO, YES = C, C + 1
"""The columns of "no predicate" and "a predicate"."""


@dataclass(frozen=True)
class LetterTokens:
    """Every letter is a token."""

    longest: int
    together: bool = False

    @property
    def stride(self) -> int:
        return self.longest // 4

    def units(self, text: str) -> Units:
        raise AssertionError("roles are read from words")

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.array([len(word) for word in words], dtype=np.int64)


def sentence(words: str, *predicates: tuple[int, str] | int, where: str = "dev:1") -> RoleSentence:
    """Each predicate: its word, and its BIO tags without B- and O as one letter: "0 1 v ."; or only its word."""
    found = []
    for given in predicates:
        word, tags = given if isinstance(given, tuple) else (given, None)
        arguments = None if tags is None else tuple(spans(tags))
        found.append(Predicate(word, arguments=arguments))
    return RoleSentence(tuple(words.split()), tuple(found), where)


NAMES = {"0": "ARG0", "1": "ARG1", "v": "V", "x": "ARGM-ODD"}


def spans(letters: str) -> list[Span]:
    """ "00v1" -> ARG0 of two words, V, ARG1 of one."""
    found, place = [], 0
    for letter, run in itertools.groupby(letters):
        length = len(list(run))
        if letter != ".":
            found.append(Span(place, place + length, NAMES[letter]))
        place += length
    return found


def decoded(examples: Sequence[RoleSentence], passages: list[list[Passage]], scores: list[list[Scores]]) -> list[Roles]:
    head = TASK.head(4, 0, RoleHeadConfig(cell="none"))
    return TASK.decode(head, examples, passages, scores)


def sure_of(example: RoleSentence, passages: Sequence[Passage]) -> list[Scores]:
    """Scores that leave no doubt about the gold answer: (W, C + 2) of each passage."""
    return [10 * np.eye(C + 2, dtype=np.float32)[target] for target in TASK.targets(example, passages)]


# --- passages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "tokens", "longest", "window"),
    [
        (2, [1, 1, 1, 1, 1], 5, (0, 5)),  # all of it
        (2, [1, 1, 1, 1, 1], 3, (1, 4)),  # one on each side
        (0, [1, 1, 1, 1, 1], 3, (0, 3)),  # what one side lacks, the other has
        (4, [1, 1, 1, 1, 1], 3, (2, 5)),
        (2, [1, 1, 9, 1, 1], 3, (2, 3)),  # longer than the window: alone
        (1, [3, 1, 10], 5, (0, 2)),  # the long word behind does not fit, the one before does
        (1, [10, 1, 3], 5, (1, 3)),
        (0, [7], 3, (0, 1)),
    ],
)
def test_the_window_around_a_predicate_by_hand(
    word: int, tokens: list[int], longest: int, window: tuple[int, int]
) -> None:
    assert window_around(word, np.array(tokens), longest) == window


def test_the_window_holds_its_word_fits_and_cannot_grow() -> None:
    for length in range(1, 6):
        for tokens, longest in itertools.product(itertools.product((1, 2, 4), repeat=length), (1, 2, 3, 5, 8)):
            for word in range(length):
                start, end = window_around(word, np.array(tokens), longest)
                assert 0 <= start <= word < end <= length
                size = sum(tokens[start:end])
                assert size <= longest or (start, end) == (word, word + 1)
                assert start == 0 or size + tokens[start - 1] > longest
                assert end == length or size + tokens[end] > longest


def test_of_words_of_one_token_the_window_is_centred_as_far_as_the_sentence_allows() -> None:
    for length, longest in itertools.product(range(1, 12), (1, 3, 5, 7)):
        for word in range(length):
            start, end = window_around(word, np.ones(length, dtype=np.int64), longest)
            before, behind = word - start, end - 1 - word
            assert before == behind or start == 0 or end == length


def test_parts_of_arguments_in_a_window_are_counted_from_its_first_word() -> None:
    arguments = spans("000v.11")
    assert within(arguments, 1, 6) == [Span(0, 2, "ARG0"), Span(2, 3, "V"), Span(4, 5, "ARG1")]
    assert within(arguments, 3, 5) == [Span(0, 1, "V")]
    assert within(arguments, 4, 5) == []


@pytest.mark.parametrize("together", [False, True])
def test_a_sentence_is_read_unmarked_and_once_for_each_predicate(together: bool) -> None:
    example = sentence("we saw her leave", (1, "0v11"), (3, "..0v"))
    words = example.words
    assert TASK.passages(example, LetterTokens(50, together)) == [
        Passage(Marked(words, 0, 0, together)),
        Passage(Marked(words, 1, 2, together)),
        Passage(Marked(words, 3, 4, together)),
    ]


def test_predicates_without_arguments_are_asked_for_and_no_others_are_looked_for() -> None:
    reads = LetterTokens(50)
    assert list(map(is_marked, TASK.passages(sentence("we saw her leave", 1, 3), reads))) == [True, True]
    unknown = RoleSentence(("we", "saw"), None)
    assert list(map(is_marked, TASK.passages(unknown, reads))) == [False]
    assert list(map(is_marked, TASK.passages(replace(unknown, predicates=()), reads))) == [False]
    assert TASK.passages(RoleSentence((), None), reads) == []


def test_a_long_sentence_is_read_in_windows_and_a_predicate_with_the_words_around_it() -> None:
    example = sentence(" ".join("abcdefghij"), (4, "00..v...11"))
    reads = LetterTokens(4)
    *windows, asked = TASK.passages(example, reads)
    covered = {place for w in windows for place in range(w.start, w.start + len(w.text.words))}  # type: ignore[union-attr]
    assert covered == set(range(10))
    assert not any(window.cut or is_marked(window) for window in windows)
    assert asked == Passage(Marked(("d", "e", "f", "g"), 1, 2, False), 3, cut=True)
    assert TASK.targets(example, [asked])[0].tolist() == [0, TASK.labels.index("B-V"), 0, 0]


# --- targets and answers ----------------------------------------------------------------------------------------------


def test_targets_are_tags_where_a_predicate_is_marked_and_else_tell_predicates() -> None:
    example = sentence("we saw her", (1, "0v1"))
    found, asked = TASK.targets(example, TASK.passages(example, LetterTokens(50)))
    assert found.tolist() == [NO, YES, NO]
    assert asked.tolist() == [TASK.labels.index(tag) for tag in ("B-ARG0", "B-V", "B-ARG1")]


def test_a_role_that_training_never_showed_is_no_argument() -> None:
    example = sentence("we really saw her", (2, "0xv1"))
    _, asked = TASK.targets(example, TASK.passages(example, LetterTokens(50)))
    assert asked.tolist() == [TASK.labels.index(tag) for tag in ("B-ARG0", "O", "B-V", "B-ARG1")]


@pytest.mark.parametrize("longest", [50, 7, 4, 1])
def test_sure_scores_give_the_gold_answer_in_what_was_read(longest: int) -> None:
    example = sentence(" ".join("abcdefghij"), (1, "0v11111111"), (4, ".000v1...."), (9, "000000..1v"))
    passages = TASK.passages(example, LetterTokens(longest))
    (answer,) = decoded([example], [passages], [sure_of(example, passages)])
    for gold, found, passage in zip(
        example.predicates or (), answer.predicates, filter(is_marked, passages), strict=True
    ):
        assert isinstance(passage.text, Marked)
        start, end = passage.start, passage.start + len(passage.text.words)
        seen = within(gold.arguments or (), start, end)
        assert found.word == gold.word
        assert found.arguments == tuple(Span(s + start, e + start, role) for s, e, role in seen)


def test_predicates_are_found_where_none_are_given_and_then_asked_about() -> None:
    gold = sentence(" ".join("abcdefghij"), (1, "0v11111111"), (8, "000000.1v."))
    bare = TASK.unaided(gold)
    assert bare is not None
    assert bare.predicates is None
    for longest in (50, 4):
        passages = TASK.passages(bare, LetterTokens(longest))
        scores = [10 * np.eye(C + 2, dtype=np.float32)[t] for t in TASK.targets(gold, passages)]
        (answer,) = decoded([bare], [passages], [scores])
        assert [predicate.word for predicate in answer.predicates] == [1, 8]
        asked = TASK.follow_up(bare, answer)
        assert asked is not None
        assert asked.predicates == (Predicate(1), Predicate(8))
        assert all(map(is_marked, TASK.passages(asked, LetterTokens(longest))))


def test_what_is_asked_next_keeps_the_text_the_columns_and_the_frames() -> None:
    columns = Columns(PROPBANK, True, ("x",))
    bare = RoleSentence(("a", "b"), None, "here", "a b", ((0, 1), (2, 3)), columns)
    asked = TASK.follow_up(bare, Roles((Predicate(1, "b", "b.01", ()),)))
    assert asked == replace(bare, predicates=(Predicate(1, "b", "b.01"),))
    assert asked is not None
    assert asked.columns is columns


def test_an_answer_is_final_where_predicates_were_given_or_none_was_found() -> None:
    given = sentence("we saw her", 1)
    assert TASK.follow_up(given, Roles((Predicate(1, arguments=()),))) is None
    assert TASK.follow_up(replace(given, predicates=()), Roles(())) is None
    assert TASK.follow_up(replace(given, predicates=None), Roles(())) is None


def test_sentences_with_no_predicate_get_none() -> None:
    none, unknown = sentence("oh well"), RoleSentence(("oh", "well"), None)
    for example in (none, unknown):
        passages = TASK.passages(example, LetterTokens(50))
        says_no = np.zeros((2, C + 2), dtype=np.float32)
        says_no[:, NO] = 1
        assert decoded([example], [passages], [[says_no]]) == [Roles(())]
    says_yes = says_no[:, [*range(C), YES, NO]]
    assert decoded([none], [passages], [[says_yes]]) == [Roles(())]  # given: there are none
    assert len(decoded([unknown], [passages], [[says_yes]])[0].predicates) == 2


def test_decoding_takes_the_best_of_all_legal_sequences() -> None:
    W, rng = 4, np.random.default_rng(0)
    legal = [
        tags
        for tags in itertools.product(range(C), repeat=W)
        if not illegal_places([TASK.labels[tag] for tag in tags], "bio")
    ]
    example = sentence("a b c d", 2)
    passages = TASK.passages(example, LetterTokens(50))
    for _ in range(20):
        scores = rng.normal(size=(W, C + 2)).astype(np.float32)
        best = max(legal, key=lambda tags: scores[range(W), tags].astype(np.float64).sum())
        (answer,) = decoded([example], [passages], [[scores]])
        (predicate,) = answer.predicates
        assert tags_of(predicate, W) == [TASK.labels[tag] for tag in best]


def tags_of(predicate: Predicate, length: int) -> list[str]:
    tags = ["O"] * length
    for start, end, role in predicate.arguments or ():
        tags[start:end] = [f"B-{role}", *[f"I-{role}"] * (end - start - 1)]
    return tags


@pytest.mark.parametrize("decoder", ["crf", "constrained"])
def test_no_illegal_sequence_comes_out_and_an_answer_depends_on_its_sentence_alone(decoder: Any) -> None:
    rng = np.random.default_rng(1)
    head = TASK.head(4, 0, RoleHeadConfig(cell="none", decoder=decoder))
    examples = [sentence(" ".join("abcdefghij"[:n]), *range(0, n, 2)) for n in (1, 3, 10, 4)]
    passages = [TASK.passages(example, LetterTokens(6)) for example in examples]
    scores = [
        [5 * rng.normal(size=(len(p.text.words), C + 2)).astype(np.float32) for p in own]  # type: ignore[union-attr]
        for own in passages
    ]
    together = TASK.decode(head, examples, passages, scores)
    for example, own, found, answer in zip(examples, passages, scores, together, strict=True):
        assert TASK.decode(head, [example], [own], [found]) == [answer]
        for predicate in answer.predicates:
            assert illegal_places(tags_of(predicate, len(example.words)), "bio") == []


# --- labels and scores ------------------------------------------------------------------------------------------------


def test_learning_finds_all_tags_and_the_table_keeps_them() -> None:
    task = Srl.learn([sentence("we saw her", (1, "0v1")), sentence("oh")])
    assert task == TASK == Srl.from_table(TASK.to_table())
    assert task.class_names == ["ARG0", "ARG1", "V"]


@pytest.mark.parametrize("examples", [[sentence("oh well")], [sentence("we go", (1, ".v"))], []])
def test_without_an_argument_there_is_nothing_to_learn(examples: list[RoleSentence]) -> None:
    with pytest.raises(DataError, match="no predicate with arguments"):
        Srl.learn(examples)


def test_sentences_without_gold_can_neither_be_learned_nor_scored() -> None:
    for example, says in (
        (RoleSentence(("we", "go"), None, "dev:1"), "dev:1: the predicates of this sentence are not given"),
        (sentence("we go", 1), r"dev:1: the arguments of the predicate 'go' \(word 2\) are not given"),
    ):
        for use in (lambda e: Srl.learn([e]), lambda e: TASK.check([e], "train"), lambda e: TASK.counts(e, Roles(()))):
            with pytest.raises(DataError, match=says):
                use(example)


def test_a_rare_unknown_role_is_told_and_a_file_of_unknown_roles_refused() -> None:
    known, odd = sentence("we saw her", (1, "0v1")), sentence("we saw now", (1, "0vx"))
    strange = sentence("saw now", (0, "vx"), where="other.conll:7")
    TASK.check([known, odd], "train")
    assert TASK.between([known], [known]) == []
    assert TASK.between([known], [odd]) == [
        "1 dev argument has a role that training never showed (ARGM-ODD), and can only be missed."
    ]
    assert TASK.between([known], [odd, odd])[0].startswith("2 dev arguments have roles that training never showed")
    with pytest.raises(
        DataError, match=r"^other.conll: most of its arguments have roles that train never showed, such as 'ARGM-ODD'"
    ):
        TASK.check([strange], "train")


def test_scores_with_the_gold_predicates_and_without() -> None:
    gold = [sentence("we saw her leave", (1, "0v11"), (3, "..0v"))]
    right, wrong = gold[0].predicates or ()
    answers = [Roles((right, replace(wrong, arguments=tuple(spans("0..v")))))]
    assert TASK.scores(gold, answers) == {"f1": 2 / 3, "precision": 2 / 3, "recall": 2 / 3}
    assert list(TASK.score_titles()) == list(TASK.scores(gold, answers))
    found = TASK.unaided_scores(gold, [Roles((right,))])
    assert found["found_precision"] == 1
    assert found["found_recall"] == found["found_predicate_f1"] == 2 / 3
    details = {**found, **TASK.details(gold, answers)}
    lines = TASK.describe(details)
    assert lines[0].startswith("Without the gold predicates, which the model then finds itself: argument F1 80.0 %")
    assert [line.split()[0] for line in lines[1:]] == ["role", "ARG0", "ARG1", "V"]


def test_the_baseline_is_the_most_frequent_place_of_an_argument() -> None:
    train = [sentence("we saw her", (1, "0v1")), sentence("you go", (1, "0v"))]
    dev = [sentence("so they ran", (2, ".0v")), sentence("run", (0, "v")), sentence("oh")]
    title, answers = TASK.baseline(train, dev)
    assert title == "the word before each predicate as ARG0"
    assert answers == [
        Roles((Predicate(2, arguments=(Span(1, 2, "ARG0"),)),)),
        Roles((Predicate(0, arguments=()),)),
        Roles(()),
    ]
    assert TASK.baseline([sentence("eat it up", (0, "v11"))], dev)[0] == "the 2 words after each predicate as ARG1"
    assert TASK.baseline([sentence("a b c d", (3, "0..v"))], dev)[0].startswith(
        "the word from -3 on, counted from each"
    )
    title, answers = TASK.baseline([sentence("oh")], dev)  # as few labels may be
    assert (title, [len(answer.predicates) for answer in answers]) == ("no arguments", [1, 1, 0])


def test_collapsed_is_a_model_without_any_argument() -> None:
    verb, more = Predicate(0, arguments=(Span(0, 1, "V"),)), Predicate(0, arguments=tuple(spans("v1")))
    assert TASK.collapsed([Roles((verb,)), Roles((verb,))])
    assert not TASK.collapsed([Roles((verb,)), Roles((more,))])
    assert not TASK.collapsed([Roles(()), Roles(())])


# --- a sentence is encoded once ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tiny_examples: dict[str, list[Any]]) -> Any:
    """Fitted for a few steps from scratch."""
    from headstart.progress import result_of
    from headstart.transfer.fit import transfer_once
    from headstart.transfer.start import SCRATCH, Start, settings_for

    examples = tiny_examples["srl"]
    start = Start(SCRATCH, SCRATCH)
    config = settings_for(Srl, start, "frozen", {"fitting": {"min_steps": 60, "epochs": 0.1, "learning_rate": 0.02}})
    return result_of(transfer_once(start, config, Srl.learn(examples), examples, examples, seed=0)).model


def test_roles_depend_on_their_sentence_alone_and_examples_without_words_get_none(
    model: Any, tiny_examples: dict[str, list[Any]]
) -> None:
    examples = tiny_examples["srl"]
    bare = [replace(example, predicates=None) for example in examples]
    empty = RoleSentence((), None)
    mixed = [bare[0], empty, examples[1], replace(bare[2], predicates=()), bare[3]]
    together = model.answers(mixed)
    assert together.answers == [model.answers([one]).answers[0] for one in mixed]
    assert together.answers[1] == together.answers[3] == Roles(())
    assert together.truncated == 0
    asked = [replace(e, predicates=tuple(replace(p, arguments=None) for p in e.predicates)) for e in examples]
    assert model.answers(asked).answers == model.answers(examples).answers


def test_a_sentence_that_is_cut_twice_counts_once(model: Any, tiny_examples: dict[str, list[Any]]) -> None:
    """It is read to find the predicates, and again for their roles."""
    example = next(e for e in tiny_examples["srl"] if len(e.predicates) == 2)
    short = replace(model, config=model.config.model_copy(update={"longest": 2}))
    for given in (example, replace(example, predicates=None)):
        found = short.answers([given, given])
        assert found.truncated == (2 if found.answers[0].predicates else 0)
        assert len(found.answers[0].predicates) > 0
    assert Srl.cut_note(1).startswith("1 sentence was longer than what the model reads; arguments far from")


def test_predictions_are_written_to_a_page(tmp_path: Path) -> None:
    page = TASK.page(tmp_path / "page.html")
    page.add([(sentence("we go", 1), Roles((Predicate(1, arguments=tuple(spans("0v"))),)))])
    page.save()
    assert "ARG0" in (tmp_path / "page.html").read_text(encoding="utf-8")
