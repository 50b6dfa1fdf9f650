import json
import resource
from pathlib import Path

import numpy as np
import pytest

from headstart.errors import DataError
from headstart.text import shard_writer
from headstart.text.encoding import SentenceIds
from headstart.text.shards import Shards, ShardWriter

Document = list[list[int]]


def sentence_ids(sentences: Document, extras: list[str] | None = None) -> SentenceIds:
    flat = np.array([id for sentence in sentences for id in sentence], dtype=np.int32)
    return SentenceIds(flat, np.array([len(sentence) for sentence in sentences], dtype=np.int32), extras or [])


def write(directory: Path, documents: list[Document], vocabulary_size: int = 100, shard_units: int = 20) -> Shards:
    with ShardWriter(directory, vocabulary_size, shard_units) as writer:
        for document in documents:
            writer.add(sentence_ids(document), starts_document=True)
    return Shards.open(directory)


def random_documents(seed: int, n: int) -> list[Document]:
    rng = np.random.default_rng(seed)
    return [[rng.integers(0, 100, rng.integers(1, 6)).tolist() for _ in range(rng.integers(1, 5))] for _ in range(n)]


@pytest.mark.parametrize("shard_units", [1, 20, 1000])
def test_everything_comes_back(tmp_path, shard_units):
    documents = random_documents(0, 40)
    if shard_units == 1:  # documents are then cut: one sentence each
        documents = [[sentence] for document in documents for sentence in document]
    shards = write(tmp_path / "s", documents, shard_units=shard_units)
    sentences = [sentence for document in documents for sentence in document]
    flat = [id for sentence in sentences for id in sentence]
    assert (shards.vocabulary_size, shards.n_documents) == (100, len(documents))
    assert (shards.n_sentences, shards.n_units) == (len(sentences), len(flat))
    assert [shards.sentence(i).tolist() for i in range(len(sentences))] == sentences
    order = np.random.default_rng(1).permutation(len(sentences))
    assert shards.sentence_lengths(order).tolist() == [len(sentences[i]) for i in order]
    for i, document in enumerate(documents):
        ids, ends = shards.document(i)
        assert [part.tolist() for part in np.split(ids, ends[:-1])] == document
    assert shards.document_lengths().tolist() == [sum(map(len, document)) for document in documents]


def test_sentences_between_partition_the_units(tmp_path):
    documents = random_documents(2, 30)
    shards = write(tmp_path / "s", documents)
    starts = np.cumsum([0] + [len(sentence) for document in documents for sentence in document])[:-1]
    for first in range(0, shards.n_units + 3, 3):
        for last in (first, first + 1, first + 4, first + 25, shards.n_units + 9):
            expected = [shards.sentence(int(i)).tolist() for i in np.flatnonzero((starts >= first) & (starts < last))]
            assert [found.tolist() for found in shards.sentences_between(first, last)] == expected


def test_documents_stay_whole_unless_larger_than_a_shard(tmp_path):
    small, large = [[1] * 4, [2] * 4], [[3] * 5] * 5
    shards = write(tmp_path / "s", [small, small, large, small], shard_units=10)
    assert shards.document_lengths().tolist() == [8, 8, 10, 10, 5, 8]
    index = json.loads((tmp_path / "s" / "index.json").read_text())
    assert [shard["units"] for shard in index["shards"]] == [16, 10, 10, 13]


def test_a_document_can_come_in_parts_and_empty_ones_vanish(tmp_path):
    with ShardWriter(tmp_path / "s", 100) as writer:
        writer.add(sentence_ids([[1, 2], []]), starts_document=True)
        writer.add(sentence_ids([]), starts_document=False)
        writer.add(sentence_ids([[3]]), starts_document=False)
        writer.add(sentence_ids([[]]), starts_document=True)  # begins here, though its first unit comes with the next
        writer.add(sentence_ids([[4]]), starts_document=False)
        writer.add(sentence_ids([]), starts_document=True)
        writer.add(sentence_ids([[5], [6]]), starts_document=True)
    shards = Shards.open(tmp_path / "s")
    assert [shards.document(i)[0].tolist() for i in range(shards.n_documents)] == [[1, 2, 3], [4], [5, 6]]
    assert shards.document(0)[1].tolist() == [2, 3]


def test_blocks_together_or_one_by_one(tmp_path):
    documents = random_documents(3, 20)
    one_by_one = write(tmp_path / "a", documents)
    with ShardWriter(tmp_path / "b", 100, 20) as writer:
        sentences = [sentence for document in documents for sentence in document]
        writer.add_blocks(sentence_ids(sentences), np.array([len(d) for d in documents]), np.ones(20, dtype=bool))
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert one_by_one.n_documents == 20


@pytest.mark.parametrize(("vocabulary_size", "dtype"), [(65536, np.uint16), (65537, np.int32)])
def test_ids_are_as_narrow_as_they_can_be(tmp_path, vocabulary_size, dtype):
    shards = write(tmp_path / "s", [[[0, vocabulary_size - 1]]], vocabulary_size)
    assert shards.sentence(0).dtype == dtype
    assert shards.sentence(0).tolist() == [0, vocabulary_size - 1]


def test_extras_are_numbered_over_the_corpus(tmp_path):
    with ShardWriter(tmp_path / "s", 10, shard_units=3) as writer:
        writer.add(sentence_ids([[1, 2, 3]]), True)
        writer.add(sentence_ids([[4, 11, 10]], ["é", "zwei", "unused"]), True)
        writer.add(sentence_ids([[10, 11]], ["drei", "é"]), True)
    shards = Shards.open(tmp_path / "s")
    assert [shards.sentence(i).dtype for i in range(2)] == [np.uint16, np.int32]
    ids = [id for i in range(shards.n_sentences) for id in shards.sentence(i).tolist()]
    words = [shards.extra(id) if id >= 10 else str(id) for id in ids]
    assert words == ["1", "2", "3", "4", "zwei", "é", "drei", "é"]
    assert len({id for id in ids if id >= 10}) == 3
    with pytest.raises(IndexError):
        shards.extra(13)


def test_ids_written_before_the_first_extra_are_widened(tmp_path):
    with ShardWriter(tmp_path / "s", 10) as writer:
        writer.add(sentence_ids([[1, 2], [3]]), True)
        writer.add(sentence_ids([[4, 10]], ["new"]), False)
        writer.add(sentence_ids([[5]]), False)
    ids, ends = Shards.open(tmp_path / "s").document(0)
    assert (ids.tolist(), ends.tolist()) == ([1, 2, 3, 4, 10, 5], [2, 3, 5, 6])


def test_the_memory_for_extras_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_writer, "REMEMBERED_EXTRAS", 3)
    with ShardWriter(tmp_path / "s", 10) as writer:
        for i in range(20):
            writer.add(sentence_ids([[10, 11]], [f"word{i}", "again"]), True)
            assert len(writer._extra_numbers) <= 5
    shards = Shards.open(tmp_path / "s")
    for i in range(20):
        assert [shards.extra(int(id)) for id in shards.sentence(i)] == [f"word{i}", "again"]


def test_without_an_index_there_are_no_shards(tmp_path):
    writer = ShardWriter(tmp_path / "s", 10)
    writer.add(sentence_ids([[1]]), True)
    with pytest.raises(DataError, match="not a folder of shards"):
        Shards.open(tmp_path / "s")
    writer.discard()
    assert list((tmp_path / "s").iterdir()) == []


def test_an_error_leaves_nothing_behind(tmp_path):
    def fail() -> None:
        with ShardWriter(tmp_path / "s", 10) as writer:
            writer.add(sentence_ids([[1]]), True)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list((tmp_path / "s").iterdir()) == []


def test_damaged_shards_are_refused(tmp_path):
    write(tmp_path / "s", [[[1, 2]]])
    ids = tmp_path / "s" / "00000.ids"
    ids.write_bytes(b"1")
    with pytest.raises(DataError, match=r"00000.ids: has 1 bytes where 4 were written. Delete .* made again"):
        Shards.open(tmp_path / "s")
    ids.unlink()
    with pytest.raises(DataError, match=r"00000.ids: cannot be read"):
        Shards.open(tmp_path / "s")
    index = tmp_path / "s" / "index.json"
    index.write_text(index.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(DataError, match="has format 99, this version reads 1"):
        Shards.open(tmp_path / "s")
    index.write_text("{")
    with pytest.raises(DataError, match=r"index\.json: broken"):
        Shards.open(tmp_path / "s")


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = ShardWriter(tmp_path / "s", 10)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        with pytest.raises(DataError, match=r"s: the tokenised text cannot be written \(File too large\). Make room"):
            writer.add(sentence_ids([[1] * 1_000_000]), True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "s").iterdir()) == []


def test_a_folder_in_use_is_not_written_to(tmp_path):
    (tmp_path / "something").touch()
    with pytest.raises(DataError, match="empty folder, and this one is not"):
        ShardWriter(tmp_path, 10)
    with pytest.raises(DataError, match="cannot be written"):
        ShardWriter(tmp_path / "something", 10)


def test_no_documents_at_all(tmp_path):
    shards = write(tmp_path / "s", [])
    assert (shards.n_units, shards.n_documents, shards.document_lengths().tolist()) == (0, 0, [])
    assert shards.sentences_between(0, 5) == []
    with pytest.raises(IndexError):
        shards.sentence(0)


def test_units_are_counted_without_words_outside_the_vocabulary(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, 6, 4) as writer:
        for document in ([[3, 3, 5], [5]], [[5, 6]]):
            writer.add(sentence_ids(document, ["Zürich"]), starts_document=True)
    assert Shards.open(tmp_path).unit_counts().tolist() == [0, 0, 0, 2, 0, 3]
