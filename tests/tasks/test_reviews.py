import gzip
import io
import tarfile
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.reading import ExamplesConfig


def read_examples(path: str | Path, config: ExamplesConfig = ExamplesConfig()) -> list[TextExample]:  # noqa: B008
    return Classify.read(Path(path), config)


def examples_of(texts: list[str], labels: list[str]) -> list[TextExample]:
    return [TextExample(text, label) for text, label in zip(texts, labels, strict=True)]


TRAIN = {
    "aclImdb/train/pos/1_9.txt": b"Great.<br /><br />Truly\xc3\xa9 great.",
    "aclImdb/train/neg/2_1.txt": b"\xef\xbb\xbfDull<br>film.",
    "aclImdb/train/pos/0_10.txt": b"Fine.\n",
    "aclImdb/train/unsup/5_0.txt": b"Unlabelled.",
    "aclImdb/train/pos/._0_10.txt": b"\x00\xff",
    "aclImdb/train/urls_pos.txt": b"a link",
    "aclImdb/train/pos/notes.md": b"not a review",
}
TEST = {"aclImdb/test/pos/0_9.txt": b"Held out.", "aclImdb/test/neg/0_2.txt": b"Held out too."}
EXPECTED = examples_of(["Dull film.", "Fine.", "Great.  Trulyé great."], ["neg", "pos", "pos"])


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("inner", ["aclImdb", "aclImdb/train"])
def test_a_folder(tmp_path, inner):
    assert read_examples(folder(tmp_path, TRAIN | TEST) / inner) == EXPECTED


def test_the_test_part_of_a_folder_can_be_named(tmp_path):
    examples = read_examples(folder(tmp_path, TRAIN | TEST) / "aclImdb" / "test")
    assert examples == examples_of(["Held out too.", "Held out."], ["neg", "pos"])


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "A.TGZ"])
def test_an_archive_gives_its_train_part_in_the_order_of_names(tmp_path, name):
    assert read_examples(archive(tmp_path / name, TEST | TRAIN)) == EXPECTED
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_archive_of_a_test_part_alone(tmp_path):
    assert [example.text for example in read_examples(archive(tmp_path / "a.tgz", TEST))] == [
        "Held out too.",
        "Held out.",
    ]


def test_a_member_path_is_only_a_name(tmp_path):
    files = {"../../train/pos/0_9.txt": b"up", "../../train/neg/0_1.txt": b"down"}
    assert read_examples(archive(tmp_path / "a.tgz", files)) == examples_of(["down", "up"], ["neg", "pos"])


def test_links_in_an_archive_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        link = tarfile.TarInfo("train/pos/0_9.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("train/neg"))
    with pytest.raises(DataError, match=r"a\.tgz: holds no review. Its files need names such as"):
        read_examples(tmp_path / "a.tgz")


def test_two_folders_of_reviews_are_one_too_many(tmp_path):
    files = {"films/pos/0.txt": b"a", "books/neg/0.txt": b"b"}
    with pytest.raises(DataError, match=r"more than one folder of reviews: books, films\."):
        read_examples(archive(tmp_path / "a.tgz", files))


def test_an_archive_cut_short_anywhere_is_an_error(tmp_path):
    whole = archive(tmp_path / "whole.tgz", TRAIN).read_bytes()
    path = tmp_path / "a.tar.gz"
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"a\.tar\.gz: .*cut short"):
            read_examples(path)


def test_a_packed_archive_that_ends_within_a_review(tmp_path):
    tar = gzip.decompress(archive(tmp_path / "whole.tgz", {"pos/0.txt": b"long " * 1000}).read_bytes())
    (tmp_path / "a.tgz").write_bytes(gzip.compress(tar[:2000]))
    with pytest.raises(DataError, match=r"a\.tgz: not a tar archive, or cut short"):
        read_examples(tmp_path / "a.tgz")


@pytest.mark.parametrize("content", [gzip.compress(b"no tar" * 200, mtime=0), b"not packed"])
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.tgz: .*cut short"):
        read_examples(tmp_path / "a.tgz")


def test_a_review_that_is_not_utf8_or_empty_is_named(tmp_path):
    files = {"pos/0_9.txt": b"caf\xe9"}
    with pytest.raises(DataError, match=r"a\.tgz, pos/0_9\.txt: not UTF-8 \(byte 0xe9\)"):
        read_examples(archive(tmp_path / "a.tgz", files))
    with pytest.raises(DataError, match=r"0_9\.txt: not UTF-8"):
        read_examples(folder(tmp_path / "a", files | {"neg/0_1.txt": b"x"}))
    with pytest.raises(DataError, match=r"0_1\.txt: the text is empty"):
        read_examples(folder(tmp_path / "b", {"pos/0_9.txt": b"x", "neg/0_1.txt": b"<br />"}))


def test_another_folder(tmp_path):
    with pytest.raises(DataError, match=r"this folder holds no examples.*pos/ and neg/.*aclImdb"):
        read_examples(tmp_path)
    (tmp_path / "pos").mkdir()
    (tmp_path / "neg").mkdir()
    with pytest.raises(DataError, match="holds no example"):
        read_examples(tmp_path)
