"""What a task model reads: a frozen encoder runs once for each sentence, however often it is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.batches.rows import Marked, TextRow
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.tasks.roles import Predicate, RoleSentence
from headstart.tasks.srl import Srl
from headstart.transfer import task_model
from headstart.transfer.features import computed, joined_tables
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_model import TaskModel

FEW: dict[str, Any] = {"fitting": {"min_steps": 3, "epochs": 0.1}}


@pytest.fixture(scope="module")
def roles(pretrained_runs: dict[str, Path], tiny_examples: dict[str, list[Any]]) -> TaskModel[Any, Any]:
    """A frozen BERT's."""
    start, examples = open_start(pretrained_runs["bert"]), tiny_examples["srl"]
    config = settings_for(Srl, start, "frozen", FEW)
    return result_of(transfer_once(start, config, Srl.learn(examples), examples, examples, seed=0)).model


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each call of an encoder was given."""
    counts: list[int] = []
    encode = Pretrained.encode_rows

    def counted(self: Pretrained, rows: Sequence[TextRow], *arguments: Any, **named: Any) -> Any:
        counts.append(len(rows))
        return encode(self, rows, *arguments, **named)

    monkeypatch.setattr(Pretrained, "encode_rows", counted)
    return counts


def test_a_sentence_is_encoded_once_for_all_its_predicates(roles: TaskModel[Any, Any], encoded: list[int]) -> None:
    words = ("Anna", "left", "and", "sold", "it", "today")
    asked = RoleSentence(words, tuple([Predicate(word) for word in (1, 3, 4)]))
    other = RoleSentence(("he", "saw", "it"), (Predicate(1),))
    assert [len(answer.predicates) for answer in roles.answers([asked, other, asked]).answers] == [3, 1, 3]
    assert encoded == [2]


def test_predicates_are_found_and_asked_about_in_one_pass_of_the_encoder(
    roles: TaskModel[Any, Any], encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the windows around predicates, in sentences that are longer than the encoder reads, are new texts."""
    every = tuple([Predicate(word, arguments=()) for word in range(6)])
    monkeypatch.setattr(Srl, "_found", lambda self, passages, scores: every)
    bare = RoleSentence(("Anna", "left", "and", "sold", "it", "today"), None)
    asked = replace(bare, predicates=tuple([Predicate(word) for word in range(6)]))
    found = roles.answers([bare])
    assert encoded == [1]
    assert found.truncated == 0
    assert found.answers == roles.answers([asked]).answers
    tokens = int(roles.tokens_per_word(bare.words).sum())
    short = replace(roles, config=roles.config.model_copy(update={"longest": 2 * tokens // 3}))
    passages = [passage for one in (bare, asked) for passage in roles.task.passages(one, short)]
    texts = {passage.text.words for passage in passages if isinstance(passage.text, Marked)}
    encoded.clear()
    found = short.answers([bare, bare])
    assert sum(encoded) == len(texts)
    assert len(encoded) == 2
    assert found.truncated == 2
    assert found.answers[0] == found.answers[1] == short.answers([asked]).answers[0]


def test_many_windows_of_a_long_sentence_are_read_one_by_one(
    roles: TaskModel[Any, Any], encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their vectors would not fit into memory together."""
    words = tuple([f"{first}{second}" for first in "abcdefgh" for second in "ijklmnop"])
    short = replace(roles, config=roles.config.model_copy(update={"longest": 20}))
    asked = RoleSentence(words, tuple([Predicate(word) for word in range(0, len(words), 3)]))
    for example in (asked, replace(asked, predicates=None)):
        expected = short.answers([example])
        assert encoded
        with monkeypatch.context() as patched:
            patched.setattr(task_model, "CHARACTERS_AT_ONCE", len("".join(words)))
            encoded.clear()
            assert short.answers([example]) == expected
            assert encoded == []


def test_joined_tables_hold_what_each_of_them_held(roles: TaskModel[Any, Any]) -> None:
    source = Pretrained(roles.encoder, roles.tokenizer)
    texts = [("Anna", "left"), ("he", "saw", "it"), ("today",)]
    rows = {text: roles.encoder.row(roles.tokenizer, text, None) for text in texts}
    whole = computed(source, rows)
    parts = [computed(source, {text: rows[text] for text in some}) for some in (texts[:2], texts[2:])]
    joined = joined_tables(parts)
    assert joined.rows == whole.rows
    assert joined.offsets.tolist() == whole.offsets.tolist()
    assert joined.cut.tolist() == whole.cut.tolist()
    np.testing.assert_allclose(joined.layers, whole.layers, atol=1e-5)
    assert joined_tables(parts[:1]) is parts[0]
