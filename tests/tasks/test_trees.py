import gzip
from collections import Counter
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.classify import Classify, TextExample, label_names
from headstart.tasks.reading import ExamplesConfig
from headstart.tasks.trees import SENTIMENTS, parse_tree


def read_examples(path: str | Path, config: ExamplesConfig = ExamplesConfig()) -> list[TextExample]:  # noqa: B008
    return Classify.read(Path(path), config)


def examples_of(texts: list[str], labels: list[str]) -> list[TextExample]:
    return [TextExample(text, label) for text, label in zip(texts, labels, strict=True)]


TREES = """\
(4 (4 (2 A) (4 (3 warm) (2 film))) (2 .))
(0 (1 (2 -LRB-) (2 Not)) (0 (2 good\\/fun) (2 -RRB-)))

(2 (2 8\u00a01\\/2) (2 \\*))\r
(1 dull)
(3 (2 (2 really)) (3 fine))
"""
SENTENCES = ["A warm film .", "( Not good/fun )", "8\u00a01/2 *", "dull", "really fine"]
DATA = Path(__file__).parents[3] / "shared" / "data" / "sst"


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("labels_as", [None, 5])
def test_leaves_are_the_text_and_the_root_is_the_label(tmp_path, name, labels_as):
    examples = read_examples(write(tmp_path / name, TREES), ExamplesConfig(labels_as=labels_as))
    assert examples == examples_of(SENTENCES, [SENTIMENTS[i] for i in (4, 0, 2, 1, 3)])


def test_two_classes_leave_the_neutral_out(tmp_path):
    examples = read_examples(write(tmp_path / "a.txt", TREES), ExamplesConfig(labels_as=2))
    assert [example.text for example in examples] == [SENTENCES[i] for i in (0, 1, 3, 4)]
    assert [example.label for example in examples] == ["positive", "negative", "negative", "positive"]
    with pytest.raises(DataError, match="holds no example"):
        read_examples(write(tmp_path / "b.txt", "(2 so)\n"), ExamplesConfig(labels_as=2))


def test_a_deep_tree_is_read(tmp_path):
    assert parse_tree("(3 " * 5000 + "deep" + ")" * 5000, "here") == (3, ["deep"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(3 (2 a) (3 b)", "1 brackets are never closed"),
        ("(3 (2 a) (3 b", "2 brackets are never closed"),
        ("(3 (2 a)) (3 b))", r"at character 11, '\(3 b\)\)'"),
        ("(3 (2 a) (3 b)))", r"at character 16"),
        ("(3 (2 a) (5 b))", r"at character 10, '\(5 b\)\)'. .* label from 0 to 4"),
        ("(3 (2 a) ((2 b)))", "at character 10"),
        ("(3 (2 a b))", r"at character 9"),
        ("(3 (2 ) (3 b))", "at character 7"),
        ("(3 (2 a) b)", "at character 10"),
        ("plain text", "at character 1"),
        ("(3)", "at character 1"),
    ],
)
def test_a_broken_tree_is_told_with_its_line(tmp_path, line, message):
    with pytest.raises(DataError, match=rf"a\.txt:3: broken tree.*{message}"):
        read_examples(write(tmp_path / "a.txt", f"(1 dull)\n\n{line}\n"))


def test_other_text_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:2: a \.txt file of examples has one sentiment tree.*'Once upon'.*csv"):
        read_examples(write(tmp_path / "a.txt", "\nOnce upon\n"))


def test_labels_as_is_for_trees_only(tmp_path):
    with pytest.raises(ConfigError, match="--labels-as 5 is for sentiment trees"):
        read_examples(tmp_path, ExamplesConfig(labels_as=5))


@pytest.mark.skipif(not (DATA / "dev.txt").exists(), reason="the Stanford Sentiment Treebank is not here")
def test_the_published_counts():
    five = read_examples(DATA / "dev.txt")
    assert label_names(five) == SENTIMENTS
    assert Counter(example.label for example in five) == dict(zip(SENTIMENTS, [139, 289, 229, 279, 165], strict=True))
    assert len(read_examples(DATA / "dev.txt", ExamplesConfig(labels_as=2))) == 872
