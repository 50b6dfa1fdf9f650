"""Models from elsewhere as task models, with transformers as the reference: the same rows, scores and answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headstart
from headstart.encoders.bert import Bert
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import Pretrained
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.contexts import splits_word
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample
from headstart.tasks.qa import Qa
from headstart.tasks.questions import Question
from headstart.text.wordpiece import SPECIALS, build_wordpiece
from headstart.transfer.start import Start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.transfer.task_model import TaskModel, build_model
from headstart.weights.huggingface import write_huggingface

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

POSITIONS = 32
ROOM = POSITIONS - 3
"""Pieces of two texts beside [CLS] and two [SEP]; odd, so that one of two long texts keeps a piece more."""
TEXT = "the old actor actors likes film a dog doggy runs in garden . , ? b c unknown"
SPLIT = "the old act ##or ##s like film a dog ##gy runs in garden . , ? b c d e f"
WORDS, PIECES = TEXT.split(), [*SPECIALS, *SPLIT.split()]


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def pairs() -> list[PairExample]:
    """Short ones, long ones, and those in which one text or both must be cut."""
    rng = random.Random(5)
    lengths = [(rng.randint(1, 45), rng.randint(1, 45)) for _ in range(60)]
    lengths += [(n, m) for n in (1, 14, 15, 28, 40) for m in (1, 14, 15, 28, 40)]
    return [PairExample(sentence(rng, n), sentence(rng, m)) for n, m in lengths]


def questions() -> list[Question]:
    """With contexts that fit into one sequence: windows are cut elsewhere in other tools."""
    rng = random.Random(6)
    sizes = [(rng.randint(1, 4), rng.randint(1, 9)) for _ in range(40)]
    return [Question(f"q{n}", sentence(rng, a), sentence(rng, b)) for n, (a, b) in enumerate(sizes)]


def made(folder: Path, kind: str, **settings: Any) -> Any:
    """A random model of transformers, saved as transformers saves it."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=POSITIONS,
        initializer_range=0.3,
        **settings,
    )
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    build_wordpiece(PIECES, lowercase=True).save(folder, longest=POSITIONS)
    return model


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("theirs") / "classifier"
    return folder, made(folder, "BertForSequenceClassification", id2label={0: "no", 1: "perhaps", 2: "yes"})


@pytest.fixture(scope="module")
def answerer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("theirs") / "answerer"
    return folder, made(folder, "BertForQuestionAnswering")


@torch.no_grad()
def scores_of(loaded: TaskModel[Any, Any], examples: list[Any]) -> Iterator[torch.Tensor]:
    """Of each example's only passage, its scores."""
    data, _ = loaded.prepare(examples)
    for number in range(len(examples)):
        scores, mask = data.scores([number])
        yield scores[0] if scores.ndim == 2 else scores[0, mask[0]]


# --- sentence pairs ---------------------------------------------------------------------------------------------------


def test_pairs_are_read_as_transformers_reads_them(classifier: tuple[Path, Any]) -> None:
    """`BertTokenizer` cuts as BERT's own code does: from the end of the longer text, of equal ones from the second."""
    folder, model = classifier
    loaded = headstart.load_task_model(folder, task="nli")
    assert loaded.longest == POSITIONS - 2
    tokenizer = transformers.BertTokenizer(folder / "vocab.txt")
    examples, cut = pairs(), 0
    for example, ours in zip(examples, scores_of(loaded, examples), strict=True):
        theirs = tokenizer(
            example.first, example.second, truncation="longest_first", max_length=POSITIONS, return_tensors="pt"
        )
        [[row]] = loaded.rows(*loaded.task.passages(example, loaded))
        assert row.segments is not None
        assert row.ids.tolist() == theirs["input_ids"][0].tolist()
        assert row.segments.tolist() == theirs["token_type_ids"][0].tolist()
        with torch.no_grad():
            torch.testing.assert_close(ours, model(**theirs).logits[0], rtol=0, atol=1e-5)
        cut += row.cut
    assert 10 < cut < len(examples) - 10
    assert loaded.answers(examples).truncated == cut


def test_the_fast_tokenizer_cuts_alike_except_for_the_odd_piece_of_two_long_texts(classifier: tuple[Path, Any]) -> None:
    """There tokenizers leaves it to the longer text, or the second; BERT's own code always to the first."""
    folder, _ = classifier
    loaded = headstart.load_task_model(folder, task="pair")
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    odd = 0
    for example in pairs():
        theirs = fast(example.first, example.second, truncation="longest_first", max_length=POSITIONS)
        [[row]] = loaded.rows(*loaded.task.passages(example, loaded))
        first, second = (len(loaded.tokenizer.encode(text).ids) for text in (example.first, example.second))
        assert row.segments is not None
        kept, their_kept = (segments.count(0) - 2 for segments in (row.segments.tolist(), theirs["token_type_ids"]))
        if min(first, second) > ROOM // 2 and second >= first:
            assert (kept, their_kept) == (ROOM // 2 + 1, ROOM // 2)
            odd += 1
        else:
            assert row.ids.tolist() == theirs["input_ids"]
            assert row.segments.tolist() == theirs["token_type_ids"]
    assert odd > 3


# --- questions --------------------------------------------------------------------------------------------------------


def test_questions_get_the_scores_that_transformers_gives(answerer: tuple[Path, Any]) -> None:
    folder, model = answerer
    loaded = headstart.load_task_model(folder)
    assert loaded.task == Qa("1.1", 0.0)
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    examples = questions()
    answers = loaded.answers(examples).answers
    for example, scores, answer in zip(examples, scores_of(loaded, examples), answers, strict=True):
        theirs = fast(example.question, example.context, return_offsets_mapping=True, return_tensors="pt")
        spans = theirs.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            found = model(**theirs)
        logits = torch.stack([found.start_logits[0], found.end_logits[0]], dim=1)
        parts = theirs.sequence_ids(0)
        scored = [0, *(place for place, part in enumerate(parts) if part is not None)]
        torch.testing.assert_close(scores, logits[scored], rtol=0, atol=1e-5)
        context = [place for place, part in enumerate(parts) if part == 1]
        # Theirs may begin or end within a word; ours are whole ones.
        begins, ends = ([i for i in context if not splits_word(example.context, spans[i][edge])] for edge in (0, 1))
        first, last = max(
            ((i, j) for i in begins for j in ends if i <= j < i + 30),
            key=lambda span: float(logits[span[0], 0] + logits[span[1], 1]),
        )
        assert (answer.start, answer.end) == (spans[first][0], spans[last][1])
        assert answer.text == example.context[answer.start : answer.end]


# --- which task it is -------------------------------------------------------------------------------------------------


def test_a_classifier_reads_texts_unless_it_is_told_to_read_pairs(classifier: tuple[Path, Any]) -> None:
    folder, _ = classifier
    labels = ("no", "perhaps", "yes")
    assert headstart.load_task_model(folder).task == Classify(labels)
    for name in ("pair", "nli"):
        assert headstart.load_task_model(folder, task=name).task == Pair(labels)
    assert headstart.load_classifier(folder).labels == list(labels)


def test_a_task_that_does_not_fit_the_head_is_refused(classifier: tuple[Path, Any], answerer: tuple[Path, Any]) -> None:
    with pytest.raises(ConfigError, match=r"its head is for the task classify or pair; got 'qa', question answering\."):
        headstart.load_task_model(classifier[0], task="qa")
    with pytest.raises(ConfigError, match=r"its head is for the task qa; got 'pair', sentence pairs\."):
        headstart.load_task_model(answerer[0], task="nli")
    with pytest.raises(ConfigError, match=r"No task called 'pairs'\. Did you mean 'pair'"):
        headstart.load_task_model(classifier[0], task="pairs")
    with pytest.raises(CheckpointError, match=r"is a model for question answering; load it with"):
        headstart.load_classifier(answerer[0])


def test_an_encoder_without_a_head_says_how_to_train_one(tmp_path: Path) -> None:
    made(tmp_path / "bert", "BertModel")
    with pytest.raises(CheckpointError, match=r"without a trained head\. Train .* headstart transfer qa "):
        headstart.load_task_model(tmp_path / "bert", task="qa")


def test_a_run_keeps_its_own_task(tmp_path: Path) -> None:
    saved(tmp_path / "run", Pair(("no", "yes")))
    assert headstart.load_task_model(tmp_path / "run", task="nli").task == Pair(("no", "yes"))
    with pytest.raises(ConfigError, match=r"is a model for sentence pairs \('pair'\); got the task 'classify'"):
        headstart.load_task_model(tmp_path / "run", task="classify")


def saved(folder: Path, task: Any, **settings: Any) -> TaskModel[Any, Any]:
    """A model with random weights, as fine-tuning a BERT leaves it, in a run directory."""
    torch.manual_seed(1)
    encoder = Bert.build({"layers": 2, "width": 16, "heads": 2, "inner": 24, "positions": POSITIONS}, len(PIECES))
    tokenizer = build_wordpiece(PIECES, lowercase=True)
    config = settings_for(type(task), Start("", "bert", (Pretrained(encoder, tokenizer),)), "finetune", settings)
    model = TaskModel(task, (tokenizer,), build_model([encoder], task, config), config).frozen()
    save_task_model(model, folder, {})
    return model


@pytest.mark.parametrize(
    ("task", "settings", "record"),
    [
        (Classify(("a", "b")), {"longest": 9, "network": {"pool": "first"}}, {"task": "classify", "longest": 9}),
        (Pair(("a", "b")), {"longest": 12}, {"task": "pair", "longest": 12}),
        (
            Qa("2.0", -0.25),
            {"longest": 20, "stride": 3, "network": {"longest_answer": 4}},
            {"task": "qa", "longest": 20, "stride": 3, "longest_answer": 4, "version": "2.0", "threshold": -0.25},
        ),
    ],
)
def test_an_exported_model_comes_back_as_the_same_task(
    task: Any, settings: dict[str, Any], record: dict[str, Any], tmp_path: Path
) -> None:
    own = saved(tmp_path / "run", task, **settings)
    list(headstart.export(tmp_path / "run", "hf", tmp_path / "hf"))
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["headstart"] == record
    back = headstart.load_task_model(tmp_path / "hf")
    assert back.task == task
    assert (back.longest, back.stride) == (own.longest, own.stride)
    examples_of: dict[str, list[Any]] = {
        "classify": [TextExample(pair.first) for pair in pairs()],
        "pair": pairs(),
        "qa": [Question(f"q{n}", pair.first, pair.second) for n, pair in enumerate(pairs())],
    }
    examples = examples_of[task.name]
    for found, wanted in zip(back.answers(examples).answers, own.answers(examples).answers, strict=True):
        if task.name == "qa":
            assert found == wanted
        else:
            assert np.array_equal(found.probabilities, wanted.probabilities)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        (["pair"], CheckpointError, r"'headstart' must be an object; got \[\"pair\"\]"),
        ({"task": "pairs"}, ConfigError, "No task called 'pairs'. Did you mean 'pair'"),
        ({"task": "qa"}, ConfigError, "its head is for the task classify or pair; got 'qa'"),
        ({"task": "pair", "longest": 0}, ConfigError, r"'longest' in the key 'headstart' of .*config\.json"),
        ({"task": "pair", "long": 3}, ConfigError, "Unknown key 'long'"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(record: Any, error: Any, message: str, tmp_path: Path) -> None:
    saved(tmp_path / "run", Pair(("a", "b")))
    list(headstart.export(tmp_path / "run", "hf", tmp_path / "hf"))
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "headstart": record}))
    with pytest.raises(error, match=message):
        headstart.load_task_model(tmp_path / "hf")


def test_writing_without_a_record_writes_no_key(tmp_path: Path) -> None:
    encoder = Bert.build({"layers": 1, "width": 8, "heads": 2, "inner": 8}, len(PIECES))
    write_huggingface(Pretrained(encoder, build_wordpiece(PIECES, lowercase=True)), tmp_path / "hf")
    assert "headstart" not in json.loads((tmp_path / "hf" / "config.json").read_text())
