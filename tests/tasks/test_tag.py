from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.errors import ConfigError, DataError
from headstart.heads.classify import ClassifyHeadConfig
from headstart.heads.tag import TagHeadConfig
from headstart.tasks.base import Passage, Scores, Units
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.spans import Scheme, convert, illegal_places, spans_of
from headstart.tasks.tag import Tag, Tags
from headstart.tasks.tag_inputs import sentence_of_text
from headstart.training.seeding import freshly_initialised
from headstart.transfer.fit import untrained
from headstart.transfer.start import SCRATCH, Start, settings_for
from headstart.transfer.task_model import TaskModel

BIO = Tag(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"))
EXAMPLES: dict[Scheme, tuple[str, ...]] = {
    "iob1": ("I-PER", "I-PER", "B-PER", "O", "I-LOC"),
    "bio": ("B-PER", "I-PER", "B-PER", "O", "B-LOC"),
    "bioes": ("B-PER", "E-PER", "S-PER", "O", "S-LOC"),
    "bilou": ("B-PER", "L-PER", "U-PER", "O", "U-LOC"),
    "plain": ("NNP", "NNP", "NN", "IN", "NNP"),
}
"""The same entities in every scheme, and something else."""


def sentence(words: str, tags: str | Sequence[str] | None = None, where: str = "train:1") -> TaggedSentence:
    given = tags.split() if isinstance(tags, str) else tags
    return TaggedSentence(tuple(words.split()), None if given is None else tuple(given), where)


def numbered(count: int, tags: Sequence[str] | None = None) -> TaggedSentence:
    return sentence(" ".join(f"w{number}" for number in range(count)), tags)


@dataclass(frozen=True)
class LetterTokens:
    """Every letter is a token."""

    longest: int
    together: bool = False

    @property
    def stride(self) -> int:
        return self.longest // 4

    def units(self, text: str) -> Units:
        raise AssertionError("tagging reads words")

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.array([len(word) for word in words], dtype=np.int64)


def decoded(task: Tag, example: TaggedSentence, passages: list[Passage], scores: list[Scores]) -> tuple[str, ...]:
    head = task.head(4, 0, TagHeadConfig(cell="none", decoder="constrained"))
    (answer,) = task.decode(head, [example], [passages], [scores])
    return answer.tags


def sure_of(task: Tag, tags: Sequence[str]) -> Scores:
    """Emissions that leave no doubt, (W, C)."""
    return 10 * np.eye(len(task.labels), dtype=np.float32)[[task.labels.index(tag) for tag in tags]]


# --- passages ---------------------------------------------------------------------------------------------------------


def test_passages_are_windows_of_each_sentence() -> None:
    example = TaggedSentence(
        ("aaaa", "bbbb", "cc", "dddd", "e"), None, "text", "aaaa bbbb cc dddd e", None, ((0, 2), (2, 5))
    )
    found = BIO.passages(example, LetterTokens(8))
    assert found == [Passage(("aaaa", "bbbb"), 0), Passage(("cc", "dddd", "e"), 2)]
    for passage in BIO.passages(example, LetterTokens(4)):
        assert isinstance(passage.text, tuple)
        assert example.words[passage.start : passage.start + len(passage.text)] == passage.text


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "scheme", "labels"),
    [
        ("iob1", "bio", "O B-LOC I-LOC B-PER I-PER"),
        ("bio", "bio", "O B-LOC I-LOC B-PER I-PER"),
        ("bioes", "bioes", "O B-LOC E-LOC I-LOC S-LOC B-PER E-PER I-PER S-PER"),
        ("bilou", "bilou", "O B-LOC I-LOC L-LOC U-LOC B-PER I-PER L-PER U-PER"),
        ("plain", "plain", "IN NN NNP"),
    ],
)
def test_learning_finds_the_scheme_and_all_of_its_tags(written: Scheme, scheme: Scheme, labels: str) -> None:
    task = Tag.learn([numbered(5, EXAMPLES[written])])
    assert task == Tag(tuple(labels.split()), scheme, written)
    assert task.metric.name == ("accuracy" if scheme == "plain" else "f1")
    assert Tag.from_table(task.to_table()) == task


@pytest.mark.parametrize("tags", ["O O", "NN NN"])
def test_a_single_tag_cannot_be_learned(tags: str) -> None:
    with pytest.raises(DataError, match=f"at least two different tags; all words have '{tags.split()[0]}'"):
        Tag.learn([sentence("a b", tags)])


def test_sentences_without_tags_cannot_be_learned() -> None:
    with pytest.raises(DataError, match="train:1: this sentence has no tags"):
        Tag.learn([sentence("a b")])


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-PER", "I-PER"], "bio"),
        (["B-PER", "I-PER", "O"], "bio"),
        (["O", "I-PER", "I-LOC"], "iob1"),
        (["O", "B-LOC", "I-LOC", "I-PER"], "iob1"),
        (["O", "B-PER", "I-PER", "E-PER", "S-PER"], "bioes"),
        (["O", "B-PER", "I-PER", "L-PER", "U-PER"], "bilou"),
        (["LABEL_0", "LABEL_1"], "plain"),
        (["NOUN", "VERB"], "plain"),
        (["B-PER", "I-PER"], "plain"),
    ],
)
def test_names_of_an_imported_model_tell_its_scheme(labels: list[str], scheme: Scheme) -> None:
    assert Tag.from_table({"labels": labels}) == Tag(tuple(labels), scheme, scheme)


def test_a_model_without_b_tags_answers_with_its_own() -> None:
    task = Tag.from_table({"labels": ["O", "I-PER", "I-LOC"]})
    example, tags = numbered(4), ("I-PER", "I-PER", "I-LOC", "O")
    assert decoded(task, example, [Passage(example.words)], [sure_of(task, tags)]) == tags


def test_a_tag_that_training_never_showed_is_named_with_its_place() -> None:
    BIO.check([sentence("Rome fell", "I-LOC O")], "the training examples")  # the same entities, whatever the scheme
    with pytest.raises(DataError, match=r"dev:7: word 2 of this sentence, 'Nato', has the tag 'B-LOK'.*B-LOC"):
        BIO.check([sentence("In Nato", "O B-LOK", "dev:7")], "the training examples")


@pytest.mark.parametrize("tags", ["NNP VBD", "0 0", "O X-LOC"])
def test_tags_of_no_scheme_are_refused_and_not_taken_for_o(tags: str) -> None:
    with pytest.raises(DataError, match="which the training examples never showed"):
        BIO.check([sentence("Rome fell", tags)], "the training examples")


@pytest.mark.parametrize("scheme", ["iob1", "bioes", "bilou"])
def test_tags_are_compared_in_one_scheme(scheme: str) -> None:
    example = numbered(5, EXAMPLES[scheme])
    answer = Tags(tuple(convert(EXAMPLES[scheme], BIO.written)))
    assert BIO.scores([example], [answer]) == {"f1": 1.0, "precision": 1.0, "recall": 1.0, "accuracy": 1.0}


def test_the_head_of_another_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a TagHeadConfig; got"):
        BIO.head(4, 0, ClassifyHeadConfig())


# --- targets and answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", EXAMPLES)
def test_answers_are_written_as_the_training_examples_were(written: Scheme) -> None:
    example = numbered(5, EXAMPLES[written])
    task = Tag.learn([example])
    passages = [Passage(example.words)]
    (target,) = task.targets(example, passages)
    assert [task.labels[tag] for tag in target] == convert(EXAMPLES[written], task.scheme)
    emissions = 10 * np.eye(len(task.labels), dtype=np.float32)[target]
    assert decoded(task, example, passages, [emissions]) == EXAMPLES[written]


@pytest.mark.parametrize("scheme", ["bio", "bioes", "bilou"])
def test_a_window_that_cuts_an_entity_has_legal_targets(scheme: Scheme) -> None:
    whole = convert(["O", "O", *["I-PER"] * 6, "O", "O"], scheme)
    example = numbered(10, whole)
    task = Tag.learn([example])
    ranges = [(0, 5), (4, 7), (4, 10), (7, 10)]
    targets = task.targets(example, [Passage(example.words[start:end], start) for start, end in ranges])
    names = [[task.labels[tag] for tag in target] for target in targets]
    assert [illegal_places(tags, scheme) for tags in names] == [[]] * 4
    assert [spans_of(tags) for tags in names] == [[(2, 5, "PER")], [(0, 3, "PER")], [(0, 4, "PER")], [(0, 1, "PER")]]


def test_a_word_is_scored_by_its_most_central_window() -> None:
    task = Tag(("FIRST", "SECOND"), "plain", "plain")
    example = numbered(13)
    passages = [Passage(example.words[start:end], start) for start, end in ((0, 8), (5, 13))]
    scores = [sure_of(task, ["FIRST"] * 8), sure_of(task, ["SECOND"] * 8)]
    assert decoded(task, example, passages, scores) == ("FIRST",) * 7 + ("SECOND",) * 6


def test_no_entity_crosses_the_end_of_a_sentence() -> None:
    example = TaggedSentence(("In", "Rome", "Anna", "left"), None, "text", None, None, ((0, 2), (2, 4)))
    passages = BIO.passages(example, LetterTokens(100))
    assert [passage.start for passage in passages] == [0, 2]
    emissions = sure_of(BIO, ["O", "B-LOC", "I-LOC", "O"])
    emissions[2, BIO.labels.index("B-PER")] = 5.0
    assert decoded(BIO, example, passages, [emissions[:2], emissions[2:]]) == ("O", "B-LOC", "B-PER", "O")
    joined = numbered(4)
    assert decoded(BIO, joined, [Passage(joined.words)], [emissions]) == ("O", "B-LOC", "I-LOC", "O")


@pytest.mark.parametrize("sentences", [None, ()])
def test_an_example_without_words_has_no_passages_and_no_tags(sentences: tuple[()] | None) -> None:
    empty, other = TaggedSentence((), (), "empty", None, None, sentences), numbered(2, ["B-PER", "O"])
    assert BIO.passages(empty, LetterTokens(8)) == []
    assert BIO.targets(empty, []) == []
    head = BIO.head(4, 0, TagHeadConfig(cell="none", decoder="constrained"))
    passages, scores = [[], [Passage(other.words)], []], [[], [sure_of(BIO, other.tags or ())], []]
    answers = BIO.decode(head, [empty, other, empty], passages, scores)
    assert [answer.tags for answer in answers] == [(), other.tags, ()]


def test_many_examples_are_decoded_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    examples = [numbered(int(length)) for length in rng.integers(1, 30, 40)]
    emissions = [rng.normal(size=(len(e.words), len(BIO.labels))).astype(np.float32) for e in examples]
    head = BIO.head(4, 0, TagHeadConfig(cell="none", decoder="constrained"))
    passages = [[Passage(example.words)] for example in examples]
    together = BIO.decode(head, examples, passages, [[rows] for rows in emissions])
    alone = [decoded(BIO, e, own, [rows]) for e, own, rows in zip(examples, passages, emissions, strict=True)]
    assert [answer.tags for answer in together] == alone


def test_windows_give_the_tags_of_one_pass_where_words_are_read_alone(tiny_examples: dict[str, list[Any]]) -> None:
    """Static vectors and no recurrent cell: a word's emissions do not depend on where a window begins."""
    train: list[TaggedSentence] = tiny_examples["tag"]
    task, start = Tag.learn(train), Start(SCRATCH, SCRATCH)
    network = {"cell": "none", "decoder": "constrained"}
    wide, narrow = (settings_for(Tag, start, "frozen", {"longest": n, "network": network}) for n in (1_000, 8))
    whole = freshly_initialised(0, lambda: untrained(start, wide, task, train)).frozen()
    with torch.no_grad():
        whole.model.head.get_parameter("output.weight").mul_(50.0)  # so that the words tell, and not the bias
    windowed = TaskModel(task, whole.tokenizers, whole.model, narrow).frozen()
    document = TaggedSentence(tuple(word for example in train for word in example.words), None, "document")
    assert len(task.passages(document, whole)) == 1
    assert len(task.passages(document, windowed)) > 5
    (expected,), (found,) = whole.answers([document]).answers, windowed.answers([document]).answers
    assert found == expected
    assert len(set(found.tags)) > 1


# --- metric -----------------------------------------------------------------------------------------------------------


def random_pairs(labels: Sequence[str], count: int) -> tuple[list[TaggedSentence], list[Tags]]:
    rng = random.Random(0)
    examples = [numbered(n, rng.choices(labels, k=n)) for n in (rng.randint(1, 12) for _ in range(count))]
    answers = [
        Tags(tuple(tag if rng.random() < 0.7 else rng.choice(labels) for tag in example.tags or ()))
        for example in examples
    ]
    return examples, answers


def test_scores_count_the_entities_that_both_have() -> None:
    examples, answers = random_pairs(BIO.labels, 200)
    gold = {(n, *span) for n, example in enumerate(examples) for span in spans_of(example.tags or ())}
    predicted = {(n, *span) for n, answer in enumerate(answers) for span in spans_of(answer.tags)}
    precision, recall = len(gold & predicted) / len(predicted), len(gold & predicted) / len(gold)
    pairs = zip(examples, answers, strict=True)
    legal = [(convert(e.tags or (), "bio"), convert(answer.tags, "bio")) for e, answer in pairs]
    words = [g == p for both in legal for g, p in zip(*both, strict=True)]
    found = BIO.scores(examples, answers)
    assert list(found) == ["f1", "precision", "recall", "accuracy"] == list(BIO.score_titles())
    f1, accuracy = 2 * precision * recall / (precision + recall), sum(words) / len(words)
    assert found == pytest.approx({"f1": f1, "precision": precision, "recall": recall, "accuracy": accuracy})
    assert BIO.metric.of(BIO.all_counts(examples, answers)) == pytest.approx(found["f1"])
    types = BIO.details(examples, answers)["types"]
    assert sum(row["gold"] for row in types.values()) == sum(len(spans_of(e.tags or ())) for e in examples)


def test_plain_tags_are_scored_by_accuracy() -> None:
    task = Tag(("IN", "NN"), "plain", "plain")
    examples, answers = [sentence("a b c", "IN NN NN"), sentence("d", "NN")], [Tags(("IN", "NN", "IN")), Tags(("NN",))]
    assert task.scores(examples, answers) == {"accuracy": 0.75}
    assert task.metric.of(task.all_counts(examples, answers)) == 0.75
    assert task.details(examples, answers)["types"]["NN"]["recall"] == pytest.approx(2 / 3)


def test_gold_and_answers_may_be_written_in_two_schemes() -> None:
    assert BIO.scores([sentence("Rome fell", "I-LOC O")], [Tags(("B-LOC", "O"))])["f1"] == 1.0


def test_the_baseline_by_hand() -> None:
    train = [
        sentence("Rome fell", "B-LOC O"),
        sentence("Rome rose", "B-LOC O"),
        sentence("Rome", "O"),
        sentence("New York", "B-LOC I-LOC"),
        sentence("Bob", "B-PER"),
        sentence("Bob sat", "O O"),
    ]
    task = Tag.learn(train)
    title, answers = task.baseline(train, [sentence("Rome met Bob"), sentence("York fell"), sentence("New York")])
    assert title == "each word's most frequent tag"
    # "met" was never seen, O is the most frequent of all; Bob's two tags are equally frequent, and B-PER sorts first.
    # York alone begins an entity, which I-LOC cannot.
    assert [answer.tags for answer in answers] == [("B-LOC", "O", "B-PER"), ("B-LOC", "O"), ("B-LOC", "I-LOC")]


def test_a_fit_that_learned_nothing_is_told() -> None:
    assert BIO.collapsed([Tags(("O", "O")), Tags(("O",))])
    assert not BIO.collapsed([Tags(("O", "B-PER")), Tags(("O",))])


# --- prediction -------------------------------------------------------------------------------------------------------


def test_json_by_hand() -> None:
    answer = Tags(("O", "O", "B-LOC", "I-LOC"))
    assert BIO.as_json(sentence_of_text("Ah,\nNew  York"), answer) == {
        "text": "Ah,\nNew  York",
        "words": ["Ah", ",", "New", "York"],
        "tags": ["O", "O", "B-LOC", "I-LOC"],
        "entities": [{"start": 4, "end": 13, "text": "New  York", "type": "LOC"}],
    }
    of_words = BIO.as_json(sentence("Ah , New York"), answer)
    assert of_words["entities"] == [{"first_word": 2, "end_word": 4, "text": "New York", "type": "LOC"}]
    assert "text" not in of_words
    assert "entities" not in Tag(("IN", "NN"), "plain", "plain").as_json(sentence("a b"), Tags(("IN", "NN")))


def test_json_has_exact_places_in_the_text() -> None:
    rng = random.Random(0)
    for _ in range(200):
        text = " ".join(rng.choices(["Rome", "e\u0301te\u0301", "👩\u200d👧", "\t", "漢字", "U.S."], k=8))
        example = sentence_of_text(text)
        answer = Tags(tuple(rng.choices(BIO.labels, k=len(example.words))))
        for entity, span in zip(BIO.as_json(example, answer)["entities"], spans_of(answer.tags), strict=True):
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert entity["text"].startswith(example.words[span.start])
            assert entity["text"].endswith(example.words[span.end - 1])
