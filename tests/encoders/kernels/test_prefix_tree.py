import pytest
import torch
from torch import Tensor

from headstart.encoders.kernels.prefix_tree import PrefixTree

# Three sentences that begin with 7, two of them with 7 8, one of which goes on; and one twice.
SENTENCES = [[7, 8], [7, 8, 5], [7, 9, 5, 5], [7, 8, 5], [6]]


def laid_out(sentences: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Words, starts, lengths."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return torch.tensor([word for sentence in sentences for word in sentence]), lengths.cumsum(0) - lengths, lengths


def spelled(tree: PrefixTree) -> list[tuple[int, ...]]:
    """Each beginning with all its words, from its last and what it goes on from."""
    found: list[tuple[int, ...]] = []
    shorter: list[tuple[int, ...]] = []
    words = iter(tree.words.tolist())
    for t, (size, before) in enumerate(zip(tree.sizes, tree.parents, strict=True)):
        parents = list(range(size)) if before is None else before.tolist()
        shorter = [(*(shorter[parent] if t else ()), next(words)) for parent in parents]
        found += shorter
    return found


def test_a_beginning_that_sentences_share_is_there_once() -> None:
    tree = PrefixTree.of(*laid_out(SENTENCES), 1)
    # The longest sentence comes first.
    assert spelled(tree) == [(7,), (6,), (7, 9), (7, 8), (7, 9, 5), (7, 8, 5), (7, 9, 5, 5)]
    assert tree.sizes == [2, 2, 2, 1]
    assert tree.node_of_token.tolist() == [0, 3, 0, 3, 5, 0, 2, 4, 6, 0, 3, 5, 1]


@pytest.mark.parametrize("stride", [1, -1])
def test_every_token_is_found_where_its_own_beginning_ends(stride: int) -> None:
    generator = torch.Generator().manual_seed(0)
    sentences = [torch.randint(0, 3, (length,), generator=generator).tolist() for length in (5, 1, 9, 3, 3, 2, 9, 4)]
    words, starts, lengths = laid_out(sentences)
    tree = PrefixTree.of(words, starts if stride == 1 else starts + lengths - 1, lengths, stride)
    all_spelled = spelled(tree)
    expected = []
    for sentence in sentences:
        places = range(len(sentence))
        expected += [tuple(sentence[: i + 1] if stride == 1 else sentence[i:][::-1]) for i in places]
    assert [all_spelled[place] for place in tree.node_of_token.tolist()] == expected
    assert sorted(all_spelled) == sorted(set(expected))


def test_no_further_than_asked() -> None:
    words, starts, _ = laid_out(SENTENCES)
    tree = PrefixTree.of(words, starts, torch.tensor([2, 0, 3, 1, 0]), 1)
    assert spelled(tree) == [(7,), (7, 9), (7, 8), (7, 9, 5)]
    assert tree.node_of_token[[0, 1, 5, 6, 7, 9]].tolist() == [0, 2, 0, 1, 3, 0]


def test_nothing_to_read() -> None:
    words, starts, _ = laid_out(SENTENCES)
    assert PrefixTree.of(words, starts, torch.zeros(5, dtype=torch.int64), 1).sizes == []
    assert len(PrefixTree.of(words[:0], starts[:0], starts[:0], 1).words) == 0
