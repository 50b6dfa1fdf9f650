"""Coreference as a task: parts of documents, segments, chains from links, singletons, the rules of scores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.errors import ConfigError, DataError
from headstart.heads.coref import CorefHead, CorefHeadConfig, DocumentWords, Links
from headstart.tasks.base import Passage, Units
from headstart.tasks.coref import Coref
from headstart.tasks.coref_documents import Chains, CorefDocument, PronounExample, sorted_chains
from headstart.tasks.coref_parts import DocumentPart, documents_in, parts_of
from headstart.tasks.coref_rules import GAP_RULES
from headstart.tasks.coref_shown import best_sentences, show_document
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.windows import most_central, word_windows
from headstart.transfer.fit import untrained
from headstart.transfer.start import SCRATCH, open_start, settings_for
from headstart.transfer.task_model import TaskModel


@dataclass(frozen=True)
class ByWords:
    """A word of n letters takes n tokens."""

    longest: int
    stride: int = 0
    together: bool = False

    def units(self, text: str) -> Units:
        raise NotImplementedError

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.array([len(word) for word in words], dtype=np.int64)


def document(lengths: Sequence[int], chains: Any = (), letters: Sequence[int] | None = None, **more: Any) -> Any:
    """Sentences of so many words, each of so many letters."""
    ends = np.cumsum([0, *lengths]).tolist()
    words = tuple("x" * n for n in (letters or [1] * ends[-1]))
    bounds = tuple(itertools.pairwise(ends))
    return CorefDocument("d", "0", words, bounds, chains, where="a.conll:1", **more)


def model_of(examples: list[Any], longest: int = 400, stride: int | None = None, **network: Any) -> TaskModel[Any, Any]:
    """With random weights, large enough that some spans are linked."""
    settings: dict[str, Any] = {"longest": longest, "network": {"cell": "none", "spans_per_word": 1.5, **network}}
    if stride is not None:
        settings["stride"] = stride
    start = open_start(SCRATCH)
    config = settings_for(Coref, start, "frozen", settings)
    torch.manual_seed(0)
    made = untrained(start, config, Coref.learn(examples), examples)
    with torch.no_grad():
        for name, parameter in made.model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (1.0 if "encoder" in name else 0.3))
        head = made.model.head
        assert isinstance(head, CorefHead)
        head.mention.bias.fill_(0.5)
    return made.frozen()


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_part_comes_back_from_its_target() -> None:
    chains = (((0, 1), (4, 6)), ((2, 5),), ((7, 9), (9, 10)))
    doc = document([4, 1, 5], chains)
    windows = [(0, 6), (3, 8), (6, 10)]
    parts = parts_of(doc, chains, [Passage(doc.words[a:b], a) for a, b in windows], genre=2)
    assert [(part.start, part.first, part.end) for part in parts] == [(0, 0, 5), (3, 5, 7), (6, 7, 10)]
    for part in parts:
        again = DocumentPart.of_target(part.as_target())
        assert (again.start, again.first, again.end, again.genre) == (part.start, part.first, part.end, 2)
        assert again.sentences.tolist() == part.sentences.tolist()
        assert again.mentions.tolist() == part.mentions.tolist()
    assert parts[0].mentions.tolist() == [[0, 1, 1], [2, 5, 2], [4, 6, 1]]
    ((rows, joined),) = documents_in(parts)
    assert rows == range(3)
    assert joined.sentences.tolist() == [1, 1, 1, 1, 2, 3, 3, 3, 3, 3]
    assert joined.mentions == {(0, 1): 1, (4, 6): 1, (2, 5): 2, (7, 9): 3, (9, 10): 3}
    assert joined.chains_at(np.array([[0, 1], [0, 2], [9, 10]])).tolist() == [1, 0, 3]
    # A pass that begins within the document counts its words from there; (4, 6) begins before it.
    ((_, later),) = documents_in(parts[1:])
    assert later.kept == [(2, 4), (1, 4)]
    assert later.mentions == {(2, 4): 3, (4, 5): 3}
    # One that goes on behind the last part is not to be found.
    ((_, earlier),) = documents_in(parts[:1])
    assert earlier.mentions == {(0, 1): 1, (2, 5): 2}


def test_several_documents_in_one_batch() -> None:
    one, other = document([3], (((0, 1),),)), document([2, 2], (((3, 4),),))
    parts = [*parts_of(one, one.chains, [Passage(one.words)], 0)]
    parts += parts_of(other, other.chains, [Passage(other.words[:3]), Passage(other.words[2:], 2)], 1)
    found = documents_in(parts)
    assert [rows for rows, _ in found] == [range(1), range(1, 3)]
    assert [joined.genre for _, joined in found] == [0, 1]


@pytest.mark.parametrize("seed", range(30))
def test_every_word_is_kept_once_and_in_order(seed: int) -> None:
    """Also where a window keeps none, as long words beside it make it a part of its neighbour."""
    rng = np.random.default_rng(seed)
    letters = rng.choice([1, 1, 2, 5, 9], size=int(rng.integers(1, 30))).tolist()
    doc = document([len(letters)], (), letters)
    longest = int(rng.integers(4, 10))
    passages = Coref().passages(doc, ByWords(longest, int(rng.integers(0, longest))))
    assert (np.diff(most_central([(p.start, p.start + len(p.text)) for p in passages], len(letters))) >= 0).all()
    parts = parts_of(doc, (), passages, 0)
    assert [word for part in parts for word in range(part.first, part.end)] == list(range(len(letters)))
    for at_once in (1, 2, 3):
        for first in range(0, len(parts), at_once):
            for rows, joined in documents_in(parts[first : first + at_once]):
                assert len(joined.sentences) == sum(parts[first + row].words for row in rows)


def test_windows_leave_no_word_out() -> None:
    doc = document([1_000])
    passages = Coref().passages(doc, ByWords(100, 25))
    windows = word_windows(np.ones(1_000, dtype=np.int64), 100, 25)
    assert [(p.start, p.start + len(p.text)) for p in passages] == windows
    assert Coref().passages(document([0]), ByWords(100)) == []


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("longest", "stride"), [(6, 0), (5, 2), (7, 6), (1, 0)])
def test_segments_give_the_chains_of_one_pass(tiny_examples: dict[str, list[Any]], longest: int, stride: int) -> None:
    """Word vectors without a recurrent network know no context, so that windows must change nothing."""
    documents = tiny_examples["coref"]
    whole = model_of(documents).answers(documents).answers
    assert sum(len(answer.chains) for answer in whole) > 5
    assert model_of(documents, longest, stride).answers(documents).answers == whole


def test_the_loss_in_segments_is_that_of_one_pass(tiny_examples: dict[str, list[Any]]) -> None:
    losses = []
    for longest in (400, 6):
        made = model_of(tiny_examples["coref"], longest)
        data, _ = made.prepare(tiny_examples["coref"], labelled=True)
        rows = list(range(len(data.lengths)))
        losses.append(made.task.loss(made.model.head, *data.scores(rows), data.gold(rows)))
    torch.testing.assert_close(losses[0], losses[1])


def test_chains_depend_on_their_document_alone(tiny_examples: dict[str, list[Any]]) -> None:
    documents = tiny_examples["coref"]
    made = model_of(documents)
    together = made.answers(documents).answers
    assert [made.answers([each]).answers[0] for each in documents] == together
    assert made.answers(documents[::-1]).answers == together[::-1]


def test_documents_of_one_word_and_of_none(tiny_examples: dict[str, list[Any]]) -> None:
    made = model_of(tiny_examples["coref"])
    one, none = document([1]), document([])
    found = made.answers([one, none, tiny_examples["coref"][0]]).answers
    assert all(mention == (0, 1) for chain in found[0].chains for mention in chain)
    assert found[1] == Chains(())
    data, _ = made.prepare([document([1], (((0, 1),),))], labelled=True)
    assert made.task.loss(made.model.head, *data.scores([0]), data.gold([0])).isfinite()


class Linked(CorefHead):
    """Spans of one word; each score and antecedent as they are given."""

    def __init__(self, scores: list[float], antecedents: list[int], mentions: list[float], **settings: Any) -> None:
        super().__init__(2, 0, 1, CorefHeadConfig(cell="none", widest=1, spans_per_word=1.0, **settings))
        self.given = scores, antecedents, mentions

    def mention_scores(self, words: DocumentWords) -> Any:
        places = torch.arange(len(words.states))
        return torch.stack([places, places + 1], dim=1), torch.tensor(self.given[2])

    def links(self, words: DocumentWords, spans: torch.Tensor, mentions: torch.Tensor) -> Links:
        scores, antecedents, _ = self.given
        return Links(spans, mentions, torch.tensor(antecedents)[:, None], torch.tensor(scores)[:, None])


def chains_of(task: Coref, head: Linked) -> list[list[int]]:
    doc = document([len(head.given[0])])
    states = np.zeros((len(doc.words), 2), dtype=np.float32)
    (found,) = task.decode(head, [doc], [[Passage(doc.words)]], [[states]])
    return [[first for first, _ in chain] for chain in found.chains]


def test_links_become_transitive_chains() -> None:
    inf = float("-inf")
    scores, antecedents = [inf, 1.0, -0.1, 2.0, 0.5, 0.0], [0, 0, 0, 1, 2, 3]
    mentions = [1.0, 1.0, 1.0, -1.0, 1.0, 1.0]
    head = Linked(scores, antecedents, mentions)
    # 3 refers to 1, which refers to 0; 4 refers to 2; a score of 0 is no more than none.
    assert chains_of(Coref(), head) == [[0, 1, 3], [2, 4]]
    assert chains_of(Coref(singletons=True), head) == [[0, 1, 3], [2, 4], [5]]
    assert chains_of(Coref(singletons=True), Linked(scores, antecedents, [-1.0] * 6)) == [[0, 1, 3], [2, 4]]


@pytest.mark.parametrize("learned", [False, True])
def test_singletons_are_as_in_training_unless_the_user_says_otherwise(learned: bool) -> None:
    doc = document([3], (((0, 1), (2, 3)), ((1, 2),)) if learned else (((0, 1), (2, 3)),))
    task = Coref.learn([doc])
    assert task.singletons == learned
    assert Coref.from_table(task.to_table()) == task
    for wanted in (None, False, True):
        head = Linked([float("-inf")], [0], [1.0], singletons=wanted)
        assert chains_of(task, head) == ([[0]] if (learned if wanted is None else wanted) else [])


def test_genres_are_learned() -> None:
    docs = [document([2], (((0, 1), (1, 2)),), genre=genre) for genre in ("news", None, "fiction")]
    task = Coref.learn(docs)
    assert task.genres == ("fiction", "news")
    assert [task._genre(replace(docs[0], genre=genre)) for genre in ("fiction", "news", "other", None)] == [1, 2, 0, 0]


# --- scores -----------------------------------------------------------------------------------------------------------


def gap(text: str, pronoun: str, a: str, b: str, a_coref: bool, gender: Any = "feminine") -> CorefDocument:
    def place(part: str) -> tuple[int, int]:
        return text.index(part), text.index(part) + len(part)

    return replace(
        document_of_text(text, "development-1", "gap.tsv:2"),
        pronoun=PronounExample(place(pronoun), place(a), place(b), gender, a_coref, not a_coref),
    )


def test_the_file_decides_the_rules() -> None:
    plain = document([3], (((0, 1), (2, 3)),))
    task = Coref.learn([plain])
    assert task.scoring([plain]) == task
    one = gap("Ann met Eve . She left .", "She", "Ann", "Eve", a_coref=True)
    two = gap("Bob met Tom . He left .", "He", "Bob", "Tom", a_coref=False, gender="masculine")
    rules = task.scoring([one, two])
    rules.check([one, two], "the training examples")
    answers = [Chains((((0, 1), (4, 5)),))] * 2
    assert rules.metric.name == "f1"
    assert rules.scores([one, two], answers) == {"f1": 0.5, "masculine_f1": 0.0, "feminine_f1": 1.0}
    assert list(rules.scores([one, two], answers)) == list(rules.score_titles())
    assert rules.metric.of(rules.all_counts([one, two], answers)) == 0.5
    details = rules.details([one, two], answers)
    assert details == {"bias": None}
    assert "not defined" in rules.describe(details)[0]
    both = [answers[0], Chains((((2, 3), (4, 5)),))]
    assert rules.describe(rules.details([one, two], both)) == ["bias (feminine F1 / masculine F1): 1.00"]


def test_gap_is_not_mixed_with_chains_and_not_learned() -> None:
    plain, one = document([3], (((0, 1), (2, 3)),)), gap("Ann met Eve . She left .", "She", "Ann", "Eve", True)
    task = Coref.learn([plain])
    with pytest.raises(DataError, match=r"a\.conll:1: has chains, but other documents .* Score them apart\."):
        task.scoring([one, plain]).check([one, plain], "")
    with pytest.raises(DataError, match=r"gap\.tsv:2: is an example of GAP.*nothing is learned from it\."):
        Coref.learn([one])
    with pytest.raises(DataError, match="is an example of GAP"):
        task.check([one], "")
    assert replace(task, rules=GAP_RULES).metric != task.metric


def test_documents_without_chains_are_refused() -> None:
    with pytest.raises(DataError, match=r"a\.conll:1: this document has no chains"):
        Coref().check([document([2], None)], "")
    with pytest.raises(DataError, match="no chain, so there is nothing to learn"):
        Coref.learn([document([2])])


def test_scores_and_counts_agree() -> None:
    docs = [document([6], (((0, 1), (2, 3), (4, 5)), ((1, 2), (5, 6))))]
    answers = [Chains((((0, 1), (2, 3)), ((1, 2), (5, 6)), ((3, 4),)))]
    task = Coref.learn(docs)
    scores = task.scores(docs, answers)
    assert list(scores) == list(task.score_titles())
    assert scores["conll_f1"] == pytest.approx(task.metric.of(task.all_counts(docs, answers)))
    lines = task.describe(task.details(docs, answers))
    assert [line.split()[0] for line in lines[1:]] == ["MUC", "B-cubed", "CEAF-e", "LEA", "mention"]


def test_the_baseline_makes_a_chain_of_each_usual_word() -> None:
    words = ("he", "saw", "him", ".", "he", "ran")
    doc = CorefDocument("d", "0", words, ((0, 6),), (((0, 1), (2, 3), (4, 5)),))
    task = Coref.learn([doc])
    title, answers = task.baseline([doc], [doc])
    assert "often mentions" in title
    assert answers == [Chains((((0, 1), (4, 5)),))]
    assert replace(task, singletons=True).baseline([doc], [doc])[1][0].chains == (((0, 1), (4, 5)), ((2, 3),))
    assert task.collapsed([Chains(())] * 2)
    assert not task.collapsed(answers * 2)


# --- memory and report ------------------------------------------------------------------------------------------------


def test_memory_is_told_before_it_is_taken() -> None:
    task, docs = Coref(), [document([1]), document([50_000])]
    assert task.memory_note(task.head(256, 0, CorefHeadConfig(cell="none")), docs[:1]) is None
    head = task.head(256, 0, CorefHeadConfig(cell="none", memory="800MB"))  # type: ignore[arg-type]
    note = task.memory_note(head, docs)
    assert note is not None
    assert note.startswith("The longest document has 50,000 words; its chains need about 0.62 GB")
    assert task.memory_note(head, []) is None
    assert (task.words_at_once(head) or 0) > 100
    small = task.head(256, 0, CorefHeadConfig(cell="none", memory="1MB"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"50,000 words needs at least 0\.\d+ GB .*bound is 0\.00 GB"):
        task.memory_note(small, docs)


def test_a_bound_changes_no_chain(tiny_examples: dict[str, list[Any]]) -> None:
    documents = tiny_examples["coref"]
    made = model_of(documents)
    least = max(made.model.head.sizes.least(len(doc.words)) for doc in documents)  # type: ignore[union-attr, operator]
    bounded = model_of(documents, memory=least)
    assert bounded.answers(documents).answers == made.answers(documents).answers


def test_a_report_shows_the_sentences_with_most_links() -> None:
    words = "Nothing here .|Ann saw Eve .|She left .|The end .".replace(".", " .")
    sentences = [part.split() for part in words.split("|")]
    ends = np.cumsum([0, *map(len, sentences)]).tolist()
    chains = sorted_chains([[(3, 4), (7, 8)], [(5, 6), (11, 12)]])
    doc = CorefDocument("d", "0", tuple(w for s in sentences for w in s), tuple(itertools.pairwise(ends)), chains)
    assert best_sentences(doc) == (0, 4)
    shown = show_document(doc, [{"chains": [[[3, 4], [7, 8]]]}, {"chains": []}])
    assert shown.texts[0].title == "d, sentences 1 to 4 of 4"
    assert [s.text for s in shown.texts[0].segments if s.marked] == ["Ann", "Eve", "She", "end"]
    assert shown.gold == "Ann = She; Eve = end"
    assert [answer.segments[0].text for answer in shown.answers] == ["Ann = She", "no chain"]
    long = replace(
        doc,
        words=doc.words * 20,
        sentences=tuple((a + n * 13, b + n * 13) for n in range(20) for a, b in doc.sentences),
    )
    first, last = best_sentences(long)
    assert last - first == 4


def test_read_names_the_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no file of documents"):
        Coref.read(tmp_path, Coref.Input())
