"""Question answering as a task: windows, targets, answers at exact characters, the threshold of "no answer"."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.batches.rows import Apart, Joined
from headstart.errors import DataError
from headstart.heads.span import SpanHeadConfig, span_head
from headstart.tasks.base import Passage, Scores, Units
from headstart.tasks.contexts import NOWHERE, candidates, spans_of, splits_word, windows_of
from headstart.tasks.qa import Qa
from headstart.tasks.questions import GoldAnswer, Question
from headstart.text.words import word_spans
from headstart.transfer.fit import untrained
from headstart.transfer.start import SCRATCH, Start, open_start, settings_for
from headstart.transfer.task_model import TaskModel

HEAD = span_head(4, 0, SpanHeadConfig(reads="together", cell="none", longest_answer=4))
ODD = [
    "naïve",
    "ﬁne",
    "Ångström",
    "e\u0301tude",
    "👩\u200d👩\u200d👧",
    "🇫🇷",
    "东京",
    "don't",
    "3.14",
    "ü",
    "\u200b",
    "…",
    "“so”",
    "𝒳𝒴",
    "ß",
    "a\u00adb",
]
GAPS = [" ", "  ", "\t", "\r\n", "\n\n", "\u00a0", "\u3000", " \x0b "]


@dataclass(frozen=True)
class ByWords:
    """Every word is a unit; a word of n letters takes n tokens."""

    longest: int
    stride: int = 0
    together: bool = False

    def units(self, text: str) -> Units:
        spans = np.array(word_spans(text), dtype=np.int64).reshape(-1, 2)
        return Units(spans, spans[:, 1] - spans[:, 0], np.arange(len(spans)))

    def tokens_per_word(self, words: Any) -> NDArray[np.int64]:
        return np.array([len(word) for word in words], dtype=np.int64)


def question(context: str, answer: str | None = None, asked: str = "who ?") -> Question:
    answers = () if answer is None else (GoldAnswer(answer, context.index(answer)),)
    return Question("q", asked, context, answers, "here")


def odd_text(rng: random.Random, words: int) -> str:
    return "".join(rng.choice([*ODD, "plain", "words"]) + rng.choice(GAPS) for _ in range(words))


@pytest.mark.parametrize("together", [False, True])
def test_windows_cover_every_word_and_fit(together: bool) -> None:
    rng = random.Random(1)
    for _ in range(50):
        context = odd_text(rng, rng.randrange(1, 60)) + "end"
        reads = ByWords(rng.randrange(24, 60), rng.randrange(0, 12), together)
        passages = Qa().passages(question(context), reads)
        covered = {(int(first), int(last)) for passage in passages for first, last in spans_of(passage)}
        assert covered == set(word_spans(context))
        for passage in passages:
            assert isinstance(passage.text, Joined if together else Apart)
            assert isinstance(passage.text.second, str)
            room = reads.longest - len("who?") - 1 if together else reads.longest
            assert int(reads.units(passage.text.second).tokens.sum()) <= room
            assert not passage.cut


def test_neighbouring_windows_share_the_stride() -> None:
    context = " ".join("ab" for _ in range(50))
    starts = [start for start, _ in windows_of(context, 20, ByWords(20, stride=8))]
    assert starts == [0, 18, 36, 54, 72, 90, 108, 126]  # six of ten words further each time
    assert [start for start, _ in windows_of(context, 20, ByWords(20, stride=0))] == [0, 30, 60, 90, 120]


def test_a_context_that_fits_is_one_passage_and_keeps_its_text() -> None:
    context = "  In Rome\t, Ada slept . "
    (passage,) = Qa().passages(question(context), ByWords(100))
    assert passage == Passage(Apart("who ?", context))
    assert [context[a:b] for a, b in spans_of(passage)] == ["In", "Rome", ",", "Ada", "slept", "."]


def test_only_the_end_of_a_long_question_is_cut_and_that_is_told() -> None:
    reads = ByWords(20, together=True)
    (passage,) = Qa().passages(question("Ada .", asked="one two three four five"), reads)
    assert passage.text == Joined("one two", "Ada .")
    assert passage.cut
    assert Qa.cut_note(1) == "1 question was longer than what the model reads; its end was left out"
    assert Qa.cut_note(2) == "2 questions were longer than what the model reads; the end of each was left out"
    (unreadable,) = Qa().passages(question("Ada .", asked="\u200b"), reads)
    assert unreadable.text == Joined("?", "Ada .")


def test_targets_are_the_units_of_the_first_answer_or_nowhere() -> None:
    context = "Ada saw Bob . Eve saw Ann ."
    gold = question(context, "Eve saw")
    whole = Qa().passages(gold, ByWords(100))
    assert [target.tolist() for target in Qa().targets(gold, whole)] == [[4, 5, 8]]
    windows = Qa().passages(gold, ByWords(10))  # Ada saw Bob . | Eve saw Ann .
    found = [target.tolist() for target in Qa().targets(gold, windows)]
    assert found == [[NOWHERE, NOWHERE, 4], [0, 1, 4]]
    within = question(context, "da sa")  # begins and ends inside a word: the words that hold it
    assert [target.tolist() for target in Qa().targets(within, whole)] == [[0, 1, 8]]
    assert [t.tolist() for t in Qa("2.0").targets(question(context), whole)] == [[NOWHERE, NOWHERE, 8]]


def scores_by_place(passages: list[Passage], at: dict[int, tuple[float, float]]) -> list[Scores]:
    """Scores of a model whose units do not know their window: (start, end) by the character at which a unit begins."""
    found = []
    for passage in passages:
        rows = [at.get(int(first), (0.0, 0.0)) for first, _ in spans_of(passage)]
        found.append(np.array([(-9.0, -9.0), (5.0, 5.0), *rows], dtype=np.float32))  # no answer; a word that asks
    return found


def test_windows_find_the_answer_of_one_pass() -> None:
    context = " ".join(f"w{n}" for n in range(60))
    asked = question(context, "w31 w32")
    places = {context.index("w31"): (9.0, 0.0), context.index("w32"): (0.0, 9.0)}
    answers = []
    for reads in (ByWords(1_000), ByWords(40, stride=14), ByWords(24, stride=12)):
        passages = Qa().passages(asked, reads)
        (answer,) = Qa().decode(HEAD, [asked], [passages], [scores_by_place(passages, places)])
        assert context[answer.start : answer.end] == answer.text == "w31 w32"
        assert answer.best[0].text == answer.text
        assert len({(one.start, one.end) for one in answer.best}) == len(answer.best)
        answers.append(len(passages))
    assert answers[0] == 1 < answers[1] < answers[2]


def test_no_answer_is_given_where_it_beats_the_best_by_more_than_the_threshold() -> None:
    context = "Ada slept ."
    passages = Qa().passages(question(context), ByWords(100))
    scores = np.array([[2.0, 2.0], [0, 0], [1.0, 0], [0, 1.0], [0, 0]], dtype=np.float32)
    for version, threshold, text in (("1.1", 0.0, "Ada slept"), ("2.0", 0.0, ""), ("2.0", 3.0, "Ada slept")):
        (answer,) = Qa(version, threshold).decode(HEAD, [question(context)], [passages], [[scores]])  # type: ignore[arg-type]
        assert answer.text == text
        assert (answer.null_score is None) == (version == "1.1")
        assert answer.best[0].text == "Ada slept"


def test_the_threshold_is_the_one_that_gives_the_most_on_dev() -> None:
    context = "Ada slept ."
    examples = [question(context, "Ada"), question(context, "Ada"), question(context)]
    passages = [Qa().passages(example, ByWords(100)) for example in examples]
    rows = [[null, (0, 0), (4.0, 4.0), (0, 0), (0, 0)] for null in ((0.0, 0.0), (5.0, 5.0), (8.0, 8.0))]
    scores = [[np.array(row, dtype=np.float32)] for row in rows]
    task = Qa("2.0")
    before = task.decode(HEAD, examples, passages, scores)
    tuned = task.tuned(examples, before)
    assert 2.0 < tuned.threshold < 8.0
    after = tuned.decode(HEAD, examples, passages, scores)
    assert [answer.text for answer in after] == ["Ada", "Ada", ""]
    assert tuned.scores(examples, after) == {"f1": 1.0, "exact_match": 1.0}
    assert task.scores(examples, before)["f1"] < 1.0
    assert Qa.from_table(tuned.to_table()) == tuned
    assert Qa("1.1").tuned(examples, before) == Qa("1.1")


@pytest.fixture(scope="module")
def models(pretrained_runs: dict[str, Path]) -> list[TaskModel[Any, Any]]:
    starts: list[Start] = [Start(SCRATCH, SCRATCH)]
    starts += [open_start(pretrained_runs[kind]) for kind in pretrained_runs]
    starts.append(open_start([pretrained_runs["static"], pretrained_runs["bert"]]))
    ways = [(start, how) for start in starts for how in ("frozen", "finetune")]
    train = [question("Ada plain words .", "Ada")]
    return [
        untrained(start, settings_for(Qa, start, how, {"longest": 30}), Qa(), train).frozen() for start, how in ways
    ]


def test_answers_are_exact_characters_of_any_text_with_any_encoder(models: list[TaskModel[Any, Any]]) -> None:
    rng = random.Random(3)
    examples = [replace(question(f"Start {odd_text(rng, n)}"), id=str(n)) for n in (0, 1, 3, 17, 60)]
    for model in models:
        for example, answer in zip(examples, model.answers(examples).answers, strict=True):
            assert answer.best
            for one in answer.best:
                assert 0 <= one.start < one.end <= len(example.context)
                assert example.context[one.start : one.end] == one.text
                assert one.text == one.text.strip()


def test_questions_are_answered_alike_whatever_is_asked_beside_them(models: list[TaskModel[Any, Any]]) -> None:
    rng = random.Random(4)
    examples = [replace(question(odd_text(rng, 20) + "Ada", asked=f"who {n} ?"), id=str(n)) for n in range(4)]
    examples += [replace(example, question="where is it ?", id=f"{example.id} again") for example in examples]
    for model in models:
        together = model.answers(examples).answers
        for example, answer in zip(examples, together, strict=True):
            (alone,) = model.answers([example]).answers
            np.testing.assert_allclose(alone.probability, answer.probability, atol=1e-5)


def test_questions_without_answers_need_some_in_training() -> None:
    answered, open_ = question("Ada .", "Ada"), question("Ada .")
    assert Qa.learn([answered]).version == "1.1"
    assert Qa.learn([answered, open_]).version == "2.0"
    with pytest.raises(DataError, match=r"here: the question 'q' has no answer \(SQuAD 2.0\)"):
        Qa("1.1").check([answered, open_], "the training examples")
    with pytest.raises(DataError, match="nothing to learn"):
        Qa.learn([open_])
    assert Qa("2.0").between([answered, open_], [answered])[0].startswith("1 of the 2 training questions")


def test_baselines() -> None:
    train = [question("Ada Bob saw .", "Ada Bob")]
    title, (answer,) = Qa().baseline(train, [question("\tEve is here .", "Eve")])
    assert (title, answer.text, answer.start) == ("the first 2 words of the context", "Eve is", 1)
    assert Qa("2.0").baseline(train, train)[1][0].text == ""


def test_an_answer_is_made_of_whole_words() -> None:
    context = "a storage"
    passage = Passage(Joined("where", context), spans=np.array([[0, 1], [2, 5], [5, 9]]))  # a, sto, ##rage
    scores = np.array([[0, 0], [0, 0], [1, 0], [2, 1], [9, 9]], dtype=np.float32)  # no answer, then a question's word
    found, _ = candidates(passage, scores, 4, context)
    assert [context[one.start : one.end] for one in found] == ["storage", "a storage", "a"]


@pytest.mark.parametrize(
    ("context", "place"), [("storage", 3), ("\u0434\u043e\u043c", 1), ("1990", 2)], ids=["Latin", "Cyrillic", "digits"]
)
def test_a_place_within_a_word(context: str, place: int) -> None:
    assert splits_word(context, place)


@pytest.mark.parametrize(
    ("context", "place"),
    [("Twain's", 5), ("5m", 1), ("a b", 1), ("a b", 2), ("\u6771\u4eac", 1), ("ab", 0), ("ab", 2)],
    ids=["possessive", "unit", "before a space", "after a space", "without spaces", "start", "end"],
)
def test_a_place_between_words(context: str, place: int) -> None:
    assert not splits_word(context, place)


def test_characters_that_are_no_words_can_still_be_an_answer() -> None:
    context = "\u200b\u200b"
    passage = Passage(Joined("where", context), spans=np.array([[0, 1], [1, 2]]))
    found, _ = candidates(passage, np.zeros((3, 2), dtype=np.float32), 4, context)
    assert found
