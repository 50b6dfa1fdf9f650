from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import random
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import torch

from headstart.encoders.base import Encoder
from headstart.encoders.registry import ENCODERS
from headstart.errors import EndedElsewhereError
from headstart.training.launch import Launch
from headstart.training.ranks import ENDED, STOP, Alone

# The tests' matrices are so small that a second thread only waits for the first.
torch.set_num_threads(1)

# A shell starts background jobs deaf to Ctrl-C, which their children inherit: tests that press it would wait forever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SUBJECTS = ["the cat", "a dog", "my friend", "the old actor", "every child", "her sister", "the director", "nobody"]
VERBS = ["likes", "watches", "remembers", "hates", "plays in", "talks about", "writes", "forgets"]
OBJECTS = ["the film", "a long play", "the garden", "old songs", "the music", "a new story", "the city", "his work"]


def sentences(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} .".capitalize() for _ in range(n)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 documents of six sentences, blank lines between them."""
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("\n\n".join("\n".join(sentences(6, seed)) for seed in range(200)) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the user's own cache."""
    folder = tmp_path_factory.getbasetemp() / "headstart-home"
    monkeypatch.setenv("HEADSTART_HOME", str(folder))
    return folder


PRAISE = ["superb", "moving", "funny", "clever", "warm"]
BLAME = ["dull", "clumsy", "boring", "stale", "hollow"]


def reviews(n: int, seed: int) -> list[tuple[str, str]]:
    """Short reviews with their labels; one word of each tells."""
    rng = random.Random(seed)
    found = []
    for number in range(n):
        label, words = ("good", PRAISE) if number % 2 else ("bad", BLAME)
        found.append(
            (f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} , {rng.choice(words)} .", label)
        )
    return found


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """80 labelled reviews to learn from and 40 others, as CSV."""
    folder = tmp_path_factory.mktemp("labelled")
    paths = folder / "train.csv", folder / "dev.csv"
    for path, (count, seed) in zip(paths, ((80, 1), (40, 2)), strict=True):
        lines = [f'"{text}",{label}' for text, label in reviews(count, seed)]
        path.write_text("\n".join(["text,label", *lines, ""]), encoding="utf-8")
    return paths


@dataclass(frozen=True)
class Tiny:
    """A small encoder for tests. ids_shape: of one token's ids; () for a single number."""

    settings: dict[str, Any]
    ids_shape: tuple[int, ...] = field(default=())


TINY_ENCODERS = {
    "static": Tiny({"dim": 6}),
    "elmo": Tiny({"cell": 6, "projection": 4, "filters": [[1, 4], [2, 4]], "char_width": 3, "highway": 1}, (50,)),
    "bert": Tiny({"layers": 2, "width": 8, "heads": 2, "inner": 12, "positions": 64}),
}
"""By kind: every registered encoder needs an entry here and in TINY_RUNS, and is then in every contract test."""


def tiny_of(kind: str) -> Tiny:
    if kind not in TINY_ENCODERS:
        pytest.fail(f"The encoder '{kind}' has no tiny settings for the tests: add it to TINY_ENCODERS in {__file__}.")
    return TINY_ENCODERS[kind]


@pytest.fixture(scope="session")
def tiny_encoder() -> Callable[..., Encoder]:
    """(kind, vocabulary size, **settings that differ) -> a tiny encoder whose weights follow from the seed 0."""

    def build(kind: str, vocabulary_size: int = 300, **settings: Any) -> Encoder:
        torch.manual_seed(0)
        return ENCODERS[kind].build({**tiny_of(kind).settings, **settings}, vocabulary_size)

    return build


@pytest.fixture(scope="session")
def tiny_ids() -> Callable[..., torch.Tensor]:
    """(kind, B, T, largest id) -> random ids that the encoder of that kind can read, (B, T) or (B, T, C)."""

    def draw(kind: str, B: int, T: int, largest: int = 261) -> torch.Tensor:
        shape = (B, T, *tiny_of(kind).ids_shape)
        return torch.randint(1, largest + 1, shape, generator=torch.Generator().manual_seed(3))

    return draw


TINY_RUNS: dict[str, dict[str, Any]] = {
    "static": {"settings": {"objective.dim": 8, "objective.step_words": 200, "tokenizer.min_count": 1}},
    "elmo": {
        "size": "tiny",
        "settings": {
            "encoder.cell": 16,
            "encoder.projection": 8,
            "encoder.tokens": "characters",  # as published; tables of words have tests of their own
            "training.batch": 200,
        },
    },
    "bert": {
        "size": "tiny",
        "settings": {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32},
    },
}


@pytest.fixture(scope="session")
def pretrained_runs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run directory of each generation after a few steps, by kind."""
    import headstart

    folder = tmp_path_factory.mktemp("runs")
    opinions = folder / "opinions.txt"  # so that the words that tell are in the vocabularies
    opinions.write_text("\n\n".join(text for text, _ in reviews(200, 3)) + "\n", encoding="utf-8")
    missing = ENCODERS.keys() - TINY_RUNS.keys()
    if missing:
        pytest.fail(
            f"{sorted(missing)} have no tiny pretraining run for the tests: add them to TINY_RUNS in {__file__}."
        )
    for kind, options in TINY_RUNS.items():
        list(
            headstart.pretrain(kind, [corpus, opinions], out=folder / kind, steps=40, cache=folder / "cache", **options)
        )
    return {kind: folder / kind for kind in TINY_RUNS}


@pytest.fixture(scope="session")
def compact_runs(pretrained_runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The compact copy of each run, by kind."""
    import headstart
    from headstart.progress import result_of

    folder = tmp_path_factory.mktemp("compact")
    for kind, run in pretrained_runs.items():
        result_of(headstart.export(run, "compact", folder / kind))
    return {kind: folder / kind for kind in pretrained_runs}


HOUSE = {"words-mini": "static", "elmo-mini": "elmo", "bert-mini": "bert"}


class ThreadRanks(Alone):
    """A process of several, played by a thread: sums and broadcasts meet at a barrier, in the order of the ranks."""

    def __init__(
        self, rank: int, world: int, barrier: threading.Barrier, board: dict[Any, Any], per_machine: int | None
    ) -> None:
        per_machine = per_machine or world
        self.launch = Launch(rank, world, rank % per_machine, rank // per_machine, -(-world // per_machine))
        self.barrier, self.board, self.scope = barrier, board, ""

    def scoped(self, name: str) -> ThreadRanks:
        inner = copy.copy(self)
        inner.scope = name
        return inner

    def sum_(self, tensors: Sequence[torch.Tensor]) -> None:
        everyone = self._exchanged(tensors)
        for place, tensor in enumerate(tensors):
            tensor.copy_(torch.stack([theirs[place] for theirs in everyone]).sum(0))

    def start_sum(self, tensor: torch.Tensor) -> Callable[[], None]:
        self.sum_([tensor])
        return lambda: None

    def share_(self, tensors: Sequence[torch.Tensor]) -> None:
        for tensor, first in zip(tensors, self._exchanged(tensors)[0], strict=True):
            tensor.copy_(first)

    def _exchanged(self, tensors: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
        self.board[self.launch.rank] = [tensor.clone() for tensor in tensors]
        self.barrier.wait()
        everyone = [self.board[rank] for rank in range(self.launch.world)]
        self.barrier.wait()
        return everyone

    def publish(self, key: str, value: Any) -> None:
        self.board[self.scope + key] = json.loads(json.dumps(value))

    def published(self, key: str) -> Any:
        return self.board.get(self.scope + key)

    def claim(self, key: str) -> bool:
        return next(self.board.setdefault(("claims", self.scope, key), itertools.count())) == 0

    def exchange(self, mine: bytes, among: Sequence[int], receivers: Collection[int]) -> list[bytes]:
        for receiver in receivers:
            self._letters(self.launch.rank, receiver).put(mine)
        if self.launch.rank not in receivers:
            return []
        return [self._letters(rank, self.launch.rank).get(timeout=60) for rank in among]

    def _letters(self, sender: int, receiver: int) -> SimpleQueue[bytes]:
        return self.board.setdefault(("letters", sender, receiver), SimpleQueue())

    def ended(self) -> bool:
        failed = self.published(ENDED)
        if failed:
            raise EndedElsewhereError("The first process has ended, and has said why.")
        return failed is not None

    def should_stop(self, asked: bool) -> bool:
        if self.launch.is_first:
            return asked or self.stopping()
        if asked:
            self.board[STOP] = True
        return False

    def stopping(self) -> bool:
        return STOP in self.board


@pytest.fixture(scope="session")
def in_threads() -> Callable[..., list[Any]]:
    """(world, work) -> the results of work(ranks) in as many threads as there would be processes, in their order.

    per_machine: how many of them a machine has; left out, one machine has all.
    """

    def run(world: int, work: Callable[[ThreadRanks], Any], per_machine: int | None = None) -> list[Any]:
        barrier, board = threading.Barrier(world, timeout=60), {}

        def guarded(rank: int) -> Any:
            failed = True
            try:
                result = work(ThreadRanks(rank, world, barrier, board, per_machine))
                failed = False
                return result
            except BaseException:
                barrier.abort()  # the others would wait for this one
                raise
            finally:
                if rank == 0:
                    board.setdefault(ENDED, failed)

        with ThreadPoolExecutor(world) as pool:
            futures = [pool.submit(guarded, rank) for rank in range(world)]
            wait(futures)
            errors = [error for future in futures if (error := future.exception()) is not None]
            for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
                raise error
            return [future.result() for future in futures]

    return run


@pytest.fixture
def house(compact_runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Tiny runs in the places of the models that come with the package; their folders by name."""
    from headstart.atomic import sha256_of
    from headstart.weights.catalogue import Entry, catalogue

    for name, kind in HOUSE.items():
        files = {path.name: sha256_of(path) for path in compact_runs[kind].iterdir()}
        entry = Entry(name, kind, "a stand-in", "none", 1, (), files, {}, package=str(compact_runs[kind]))  # type: ignore[arg-type]
        monkeypatch.setitem(catalogue(), name, entry)
    return {name: compact_runs[kind] for name, kind in HOUSE.items()}


@pytest.fixture
def cache_of_reviews(
    corpus: Path, labelled: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The cache as downloads of the catalogue's reviews would leave it. minilm cannot be had."""
    from headstart.comparison import demo
    from headstart.weights.catalogue import Entry, catalogue

    texts = {
        "imdb": [(" ".join(text.split()), "positive") for text in corpus.read_text(encoding="utf-8").split("\n\n")],
        "rotten-tomatoes": sorted(demo.read_examples(labelled[0]), key=lambda pair: pair[1]),
    }
    for name, pairs in texts.items():
        demo.write_examples(tmp_path / "home" / "texts" / name / f"{name}.csv", pairs)
        monkeypatch.setitem(catalogue(), name, Entry(name, "texts", "a test", "none", 1, (), {f"{name}.csv": ""}, {}))
    monkeypatch.setitem(catalogue(), "minilm", dataclasses.replace(catalogue()["minilm"], sources=()))
    monkeypatch.setattr(demo, "DEV_SENTENCES", 20)
    return tmp_path / "home"


# Words that the tiny encoders know, so that word vectors alone can tell entities from the words between them.
ENTITIES = [("old actor", "PER"), ("child", "PER"), ("long play", "LOC"), ("garden", "LOC"), ("new story", "ORG")]
BETWEEN = ["the cat", "a dog", "my friend", "nobody", "likes", "hates", "talks about", "writes"]


def tagged(n: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Short sentences with one or two names, tagged in BIO."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        words: list[str] = []
        tags: list[str] = []
        for _ in range(rng.choice([1, 2])):
            between = rng.choice(BETWEEN).split()
            name, type = rng.choice(ENTITIES)
            words += [*between, *name.split()]
            tags += ["O"] * len(between) + [f"B-{type}"] + [f"I-{type}"] * (len(name.split()) - 1)
        found.append(([*words, "."], [*tags, "O"]))
    return found


def conll_text(sentences: list[tuple[list[str], list[str]]]) -> str:
    return "\n".join(
        "".join(f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)) for words, tags in sentences
    )


@pytest.fixture(scope="session")
def make_tagged() -> Callable[[int, int], list[tuple[list[str], list[str]]]]:
    return tagged


@pytest.fixture(scope="session")
def tagged_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """60 tagged sentences to learn from and 30 others, as CoNLL columns."""
    folder = tmp_path_factory.mktemp("tagged")
    paths = folder / "train.conll", folder / "dev.conll"
    for path, (count, seed) in zip(paths, ((60, 1), (30, 2)), strict=True):
        path.write_text(conll_text(tagged(count, seed)), encoding="utf-8")
    return paths


def tiny_pairs(n: int, seed: int) -> list[Any]:
    """Two sentences that share their subject, or do not."""
    from headstart.tasks.pair_reading import PairExample

    rng = random.Random(seed)
    found = []
    for number in range(n):
        subject, other = rng.sample(SUBJECTS, 2)
        second = subject if number % 2 else other
        texts = (f"{who} {rng.choice(VERBS)} {rng.choice(OBJECTS)} ." for who in (subject, second))
        found.append(PairExample(*texts, "same" if number % 2 else "other", f"line {number}"))
    return found


def tiny_questions(n: int, seed: int) -> list[Any]:
    """Who does what, in a context of three sentences."""
    from headstart.tasks.questions import GoldAnswer, Question

    rng = random.Random(seed)
    found = []
    for number in range(n):
        said = list(zip(rng.sample(SUBJECTS, 3), rng.sample(VERBS, 3), rng.sample(OBJECTS, 3), strict=True))
        context = " ".join(f"{who} {does} {what} ." for who, does, what in said)
        who, does, what = said[number % 3]
        answer = GoldAnswer(who, context.index(f"{who} {does}"))
        found.append(Question(f"q{number}", f"who {does} {what} ?", context, (answer,), f"line {number}"))
    return found


def tiny_roles(n: int, seed: int) -> list[Any]:
    """Sentences of subject, verb and object; every second one has two verbs, "left and sold it"."""
    from headstart.tasks.roles import Predicate, RoleSentence
    from headstart.tasks.spans import Span

    rng = random.Random(seed)
    found = []
    for number in range(n):
        subject, thing = rng.choice(["Anna", "Boris", "he"]), rng.choice(["cars", "the house", "it"]).split()
        verbs = rng.sample(["sold", "left", "saw", "bought"], 1 + number % 2)
        words = [subject, *" and ".join(verbs).split(), *thing, "today"]
        last = len(words) - 1
        predicates = []
        for place, _ in enumerate(verbs):
            word = 1 + 2 * place
            spans = [Span(0, 1, "ARG0"), Span(word, word + 1, "V"), Span(last, last + 1, "ARGM-TMP")]
            spans += [Span(last - len(thing), last, "ARG1")]
            predicates.append(Predicate(word, arguments=tuple(sorted(spans))))
        found.append(RoleSentence(tuple(words), tuple(predicates), f"line {number}"))
    return found


def tiny_documents(n: int, seed: int) -> list[Any]:
    """Two sentences each, in which the first subject comes back as the second one, or as the last object."""
    from headstart.tasks.coref_documents import CorefDocument

    rng = random.Random(seed)
    found = []
    for number in range(n):
        subject, other = (words.split() for words in rng.sample(SUBJECTS, 2))
        verbs = [rng.choice(["likes", "watches", "hates"]) for _ in range(2)]
        last = subject if number % 2 else other
        first, second = [*subject, verbs[0], "songs", "."], [*subject, verbs[1], *last, "."]
        place = len(first)
        chain = [(0, len(subject)), (place, place + len(subject))]
        if number % 2:
            chain.append((place + len(subject) + 1, place + 2 * len(subject) + 1))
        words = (*first, *second)
        bounds = ((0, place), (place, len(words)))
        found.append(CorefDocument(f"d{number}", "0", words, bounds, (tuple(chain),), where=f"line {number}"))
    return found


@pytest.fixture(scope="session")
def tiny_examples() -> dict[str, list[Any]]:
    """Ten examples of every registered task, by its name: the contract runs over them."""
    from headstart.tasks.classify import TextExample
    from headstart.tasks.conll import TaggedSentence

    sentences = tagged(10, 5)
    return {
        "classify": [TextExample(text, label) for text, label in reviews(10, 7)],
        "pair": tiny_pairs(10, 3),
        "qa": tiny_questions(10, 4),
        "srl": tiny_roles(10, 6),
        "coref": tiny_documents(10, 8),
        "tag": [
            TaggedSentence(tuple(words), tuple(tags), f"line {number}")
            for number, (words, tags) in enumerate(sentences)
        ],
    }


@contextmanager
def threads_of_torch(threads: int) -> Iterator[None]:
    """torch with so many threads, whatever the processes of the tests were given."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def with_threads() -> Callable[[int], AbstractContextManager[None]]:
    return threads_of_torch


@pytest.fixture
def two_threads() -> Iterator[None]:
    with threads_of_torch(2):
        yield
