"""The heads of language models, against the formulas they stand for."""

import pytest
import torch
import torch.nn.functional as F

from headstart.heads.language_model import MaskedLMHead, NextWordHead

N, D, V = 6, 4, 30


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(N, D, generator=generator), torch.randint(V, (N,), generator=generator)


def test_the_next_word_head_is_a_softmax_over_the_vocabulary() -> None:
    head, (h, targets) = NextWordHead(D, V), inputs()
    logits = h @ head.weight.t() + head.bias
    term = head(h, targets)
    torch.testing.assert_close(term.total, F.cross_entropy(logits, targets, reduction="sum"))
    assert (term.count, term.correct) == (N, int((logits.argmax(1) == targets).sum()))


def test_a_sampled_head_samples_in_training_only() -> None:
    head, (h, targets) = NextWordHead(D, V, samples=10), inputs()
    draws = [head(h, targets, torch.Generator().manual_seed(seed)).total for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    full = NextWordHead(D, V)
    full.load_state_dict(head.state_dict())
    assert head.eval()(h, targets).total == full(h, targets).total


@pytest.mark.parametrize("untied", [False, True])
def test_the_masked_head_is_dense_gelu_norm_and_the_output_matrix(untied: bool) -> None:
    head, (h, gold) = MaskedLMHead(D, V, 1e-12, untied=untied), inputs()
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(V, D, generator=generator)
    if head.decoder is not None:
        torch.nn.init.normal_(head.decoder, generator=generator)
    matrix = embeddings if head.decoder is None else head.decoder
    logits = F.layer_norm(F.gelu(F.linear(h, head.dense.weight, head.dense.bias)), (D,), eps=1e-12) @ matrix.t()
    torch.testing.assert_close(head.logits(h, embeddings), logits)
    torch.testing.assert_close(head(h, embeddings, gold).total, F.cross_entropy(logits, gold, reduction="sum"))
