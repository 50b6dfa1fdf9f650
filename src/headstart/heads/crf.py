"""A linear-chain conditional random field: tags of a sentence are scored together, illegal sequences never come out.

    score(y) = start[y_1] + sum_w emission[w, y_w] + sum_w transition[y_w-1, y_w] + end[y_W],  p(y) = exp(score(y)) / Z

Letters: B batch, W words, C tags. Masks are (B, W) bool, True at real words, which come first in each row.
All sums are in float64: over a long document, log Z and a sequence's score are large and their difference is small.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from headstart.errors import DataError

# exp() of a float64 is 0 below -745. The fast recursion is used where no score lies further than this below the best.
SAFE_SPREAD = 600.0
MOST_STEPS = 8
CHUNK = 1 << 22  # numbers at once where the transitions of all words are laid out


class LinearChainCrf(nn.Module):
    """Scores of C tags to begin, to follow one another and to end; those that are not allowed are -inf and stay so.

    start_ok: (C,), transition_ok: (C, C) as [before, after], end_ok: (C,).
    """

    start_ok: Tensor
    transition_ok: Tensor
    end_ok: Tensor

    def __init__(
        self,
        n_tags: int,
        start_ok: NDArray[np.bool_] | None = None,
        transition_ok: NDArray[np.bool_] | None = None,
        end_ok: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__()
        shapes = {"start": (n_tags,), "transition": (n_tags, n_tags), "end": (n_tags,)}
        for (name, shape), ok in zip(shapes.items(), (start_ok, transition_ok, end_ok), strict=True):
            # On the CPU also while shapes are checked on the meta device: `steps` follows from the values.
            allowed = torch.tensor(np.ones(shape, dtype=bool) if ok is None else np.asarray(ok, bool), device="cpu")
            if allowed.shape != shape:
                raise ValueError(f"{name}_ok must have shape {shape}, got {tuple(allowed.shape)}")
            # Not saved: the tags' names give them again.
            self.register_buffer(f"{name}_ok", allowed, persistent=False)
        self.start = nn.Parameter(torch.zeros(n_tags))
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))
        self.steps = steps_between_any(self.transition_ok)

    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """start (C,), transitions (C, C), end (C,) in float64, -inf without a gradient where not allowed."""
        return (
            self.start.double().masked_fill(~self.start_ok, -torch.inf),
            self.transitions.double().masked_fill(~self.transition_ok, -torch.inf),
            self.end.double().masked_fill(~self.end_ok, -torch.inf),
        )

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """log Z of each row. emissions: (B, W, C) -> (B,), 0 for a row without words."""
        return self._log_partition(emissions, mask).to(emissions.dtype)

    def sequence_score(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The score of the tags given. tags: (B, W), anything at padding -> (B,), 0 for a row without words."""
        return self._sequence_score(emissions, mask, tags).to(emissions.dtype)

    def loss(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The negative log-likelihood of the tags, summed over rows -> ()."""
        score = self._sequence_score(emissions, mask, tags)  # first, as it refuses tags that are not allowed
        return (self._log_partition(emissions, mask) - score).sum().to(emissions.dtype)

    @torch.no_grad()
    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Each word's probability of each tag, given the sentence. -> (B, W, C), zeros at padding."""
        lengths = lengths_of(mask)
        if not lengths.numel() or not int(lengths.max()):
            return torch.zeros_like(emissions)
        words = emissions.double().masked_fill(~mask[..., None], 0.0)
        scores = self.scores()
        both = forward_backward(words, lengths, *scores, self._is_safe(words, scores))
        return both.marginals(words, mask).to(emissions.dtype)

    def viterbi(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best sequence of tags of each row, [] for a row without words."""
        return viterbi(emissions, mask, *self.scores())

    def _log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        lengths = lengths_of(mask)
        if not lengths.numel() or not int(lengths.max()):
            return emissions.double().flatten(1).sum(dim=1) * 0.0
        words = emissions.double().masked_fill(~mask[..., None], 0.0)
        scores = self.scores()
        log_z: Tensor = LogPartition.apply(words, mask, lengths, *scores, self._is_safe(words, scores))  # type: ignore[no-untyped-call]
        if bool(torch.isneginf(log_z).any()):
            raise no_sequence(lengths, log_z)
        return log_z

    def _sequence_score(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        lengths = lengths_of(mask)
        if not lengths.numel() or not int(lengths.max()):
            return emissions.double().flatten(1).sum(dim=1) * 0.0
        tags = tags.masked_fill(~mask, 0)
        self._refuse_illegal(mask, lengths, tags)
        words = emissions.gather(2, tags[..., None])[..., 0].double().masked_fill(~mask, 0.0).sum(dim=1)
        steps = self.transitions.double()[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0.0).sum(dim=1)
        last = tags.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
        ends = (self.start.double()[tags[:, 0]] + self.end.double()[last]).masked_fill(lengths == 0, 0.0)
        return words + steps + ends

    def _refuse_illegal(self, mask: Tensor, lengths: Tensor, tags: Tensor) -> None:
        legal = torch.ones_like(mask)
        legal[:, 0] = self.start_ok[tags[:, 0]]
        legal[:, 1:] = self.transition_ok[tags[:, :-1], tags[:, 1:]]
        is_last = torch.arange(mask.shape[1], device=mask.device) == lengths[:, None] - 1
        legal &= ~is_last | self.end_ok[tags]
        if bool((~legal & mask).any()):
            row, word = (~legal & mask).nonzero()[0].tolist()
            tag, before = int(tags[row, word]), int(tags[row, word - 1]) if word else None
            after = "at the beginning" if before is None else f"after tag {before}"
            raise DataError(
                f"Sentence {row + 1} of the batch, word {word + 1} of {int(lengths[row])}: tag {tag} {after} is not "
                f"allowed by the tag scheme. Convert the gold tags to the scheme first, or allow every transition."
            )

    @torch.no_grad()
    def _is_safe(self, words: Tensor, scores: tuple[Tensor, Tensor, Tensor]) -> bool:
        """Whether no legal tag's score can be so far below the best one's that exp() of the difference is 0.

        The best path to any tag can leave the best path of all `steps` words before, and each of these words and
        transitions costs at most the spread of the scores.
        """
        if self.steps is None:
            return False
        spread = float((words.amax(dim=2) - words.amin(dim=2)).max())
        finite = torch.cat([some.flatten() for some in scores])
        finite = finite[finite > -torch.inf]
        return (self.steps + 2) * (spread + float(finite.max() - finite.min())) < SAFE_SPREAD


def steps_between_any(transition_ok: Tensor) -> int | None:
    """The number of transitions in which every tag can be reached from every tag, or None if that takes too many."""
    allowed = transition_ok.double()
    reached = allowed
    for steps in range(1, MOST_STEPS + 1):
        if bool(reached.all()):
            return steps
        reached = (reached @ allowed).clamp(max=1.0)
    return None


def lengths_of(mask: Tensor) -> Tensor:
    if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        raise ValueError("a row of the mask has real words after padding; pad sentences at their end only")
    return mask.sum(dim=1)


def no_sequence(lengths: Tensor, best: Tensor) -> ValueError:
    row = int(torch.isneginf(best).nonzero()[0])
    return ValueError(f"no sequence of {int(lengths[row])} tags is allowed by the transitions given")


class ForwardBackward:
    """alpha: log of the summed scores of all ways to a tag, its emission included; beta: of all ways from it to the
    end, its emission included too. Both (W, B, C). beta is right at real words only."""

    def __init__(self, alpha: Tensor, beta: Tensor, log_z: Tensor, safe: bool) -> None:
        self.alpha, self.beta, self.log_z, self.safe = alpha, beta, log_z, safe

    def marginals(self, words: Tensor, mask: Tensor) -> Tensor:
        log_p = (self.alpha + self.beta - self.log_z[:, None]).transpose(0, 1) - words
        return log_p.exp_().masked_fill_(~mask[..., None], 0.0)

    def transition_counts(self, transitions: Tensor, mask: Tensor) -> Tensor:
        """How often each transition is expected in each row: sum_w p(y_w-1 = i, y_w = j) -> (B, C, C)."""
        alpha, beta, real = self.alpha[:-1], self.beta[1:], mask[:, 1:].t()
        if self.safe:
            greatest, greatest_beta = alpha.amax(dim=2, keepdim=True), beta.amax(dim=2, keepdim=True)
            scale = (greatest + greatest_beta - self.log_z[:, None]).masked_fill_(~real[..., None], -torch.inf).exp_()
            before, after = (alpha - greatest).exp_().mul_(scale), (beta - greatest_beta).exp_()
            return torch.einsum("wbi,wbj->bij", before, after) * transitions.exp()
        W, B, C = alpha.shape
        counts = alpha.new_zeros(B, C, C)
        step = max(1, CHUNK // (B * C * C))
        for w in range(0, W, step):
            some = slice(w, w + step)
            log_p = alpha[some, :, :, None] + transitions + (beta[some] - self.log_z[:, None])[:, :, None, :]
            counts += log_p.exp_().masked_fill_(~real[some, :, None, None], 0.0).sum(dim=0)
        return counts


def forward_backward(
    words: Tensor, lengths: Tensor, start: Tensor, transitions: Tensor, end: Tensor, safe: bool
) -> ForwardBackward:
    """Both recursions in one loop: backwards is forwards over the reversed sentences and transitions."""
    B, W, C = words.shape
    places = torch.arange(W, device=words.device)
    reverse = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)[..., None].expand(B, W, C)
    both = torch.stack([words, words.gather(1, reverse)]).permute(2, 0, 1, 3)  # (W, 2, B, C)
    ways = recursion(both, torch.stack([start, end]), torch.stack([transitions, transitions.t()]), safe)
    alpha = ways[:, 0]
    beta = ways[:, 1].gather(0, reverse.transpose(0, 1))
    return ForwardBackward(alpha, beta, log_z_of(alpha, lengths, end), safe)


def recursion(words: Tensor, first: Tensor, transitions: Tensor, safe: bool) -> Tensor:
    """x_w[j] = words_w[j] + log sum_i exp(x_w-1[i] + transitions[i, j]), for S independent recursions side by side.

    words: (W, S, B, C), first: (S, C), transitions: (S, C, C) -> (W, S, B, C). If safe, the sum is a matrix product of
    exponentials: a third of the time for 9 tags, a seventh for 45.
    """
    ways = torch.empty_like(words, memory_format=torch.contiguous_format)
    x = torch.add(words[0], first[:, None], out=ways[0])
    weights = transitions.exp() if safe else transitions[:, None]
    for w in range(1, len(words)):
        if safe:
            greatest = x.amax(dim=2, keepdim=True)
            summed = torch.bmm((x - greatest).exp_(), weights).log_().add_(greatest)
        else:
            summed = torch.logsumexp(x[..., None] + weights, dim=2)
        x = torch.add(summed, words[w], out=ways[w])
    return ways


def log_z_of(alpha: Tensor, lengths: Tensor, end: Tensor) -> Tensor:
    """alpha: (W, B, C) -> (B,), 0 for a row without words."""
    last = alpha[(lengths - 1).clamp(min=0), torch.arange(len(lengths), device=alpha.device)]
    return torch.logsumexp(last + end, dim=1).masked_fill(lengths == 0, 0.0)


class LogPartition(torch.autograd.Function):
    """log Z with its gradient written out: the expected counts of tags and transitions, by forward-backward."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        words: Tensor,
        mask: Tensor,
        lengths: Tensor,
        start: Tensor,
        transitions: Tensor,
        end: Tensor,
        safe: bool,
    ) -> Tensor:
        if not any(ctx.needs_input_grad):  # type: ignore[attr-defined]
            steps = words.transpose(0, 1)[:, None]
            return log_z_of(recursion(steps, start[None], transitions[None], safe)[:, 0], lengths, end)
        both = forward_backward(words, lengths, start, transitions, end, safe)
        counts = both.marginals(words, mask)
        last = counts[torch.arange(len(lengths), device=words.device), (lengths - 1).clamp(min=0)]
        ctx.save_for_backward(counts, both.transition_counts(transitions, mask), last)
        return both.log_z

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, g: Tensor) -> tuple[Tensor | None, ...]:
        """g: (B,), the gradient of each row's log Z."""
        counts, pairs, last = ctx.saved_tensors  # type: ignore[attr-defined]
        start, transitions, end = g @ counts[:, 0], torch.einsum("b,bij->ij", g, pairs), g @ last
        return counts * g[:, None, None], None, None, start, transitions, end, None


@torch.no_grad()
def viterbi(emissions: Tensor, mask: Tensor, start: Tensor, transitions: Tensor, end: Tensor) -> list[list[int]]:
    """The best sequence of tags of each row; -inf in start (C,), transitions (C, C) or end (C,) forbids.

    With zeros where it is allowed, this is constrained decoding of a model that was trained word by word.
    """
    lengths = lengths_of(mask)
    if not lengths.numel() or not int(lengths.max()):
        return [[] for _ in range(len(mask))]
    words = emissions.double().masked_fill(~mask[..., None], 0.0).transpose(0, 1)
    W, B, C = words.shape
    ways, came_from = torch.empty_like(words), torch.empty(W, B, C, dtype=torch.long)
    x = torch.add(words[0], start, out=ways[0])
    into = transitions.double().t().contiguous()  # (C, C) as [after, before], so that the maximum is over the last axis
    for w in range(1, W):
        best, came_from[w] = (x[:, None, :] + into).max(dim=2)
        x = torch.add(best, words[w], out=ways[w])
    last_word = (lengths - 1).clamp(min=0)
    best, last_tag = (ways[last_word, torch.arange(B, device=words.device)] + end).max(dim=1)
    if bool(torch.isneginf(best.masked_fill(lengths == 0, 0.0)).any()):
        raise no_sequence(lengths, best.masked_fill(lengths == 0, 0.0))
    return trace_back(came_from.numpy(), last_word.cpu().numpy(), last_tag.cpu().numpy(), lengths.tolist())


def trace_back(
    came_from: NDArray[np.int64], last_word: NDArray[np.int64], last_tag: NDArray[np.int64], lengths: list[int]
) -> list[list[int]]:
    """Follow the pointers (W, B, C) from each row's last word back to its first."""
    W, B, _ = came_from.shape
    rows = np.arange(B)
    path = np.empty((W, B), dtype=np.int64)
    tag = last_tag
    for w in range(W - 1, -1, -1):
        # Rows that end before w carry on with their last tag; it is not read.
        tag = np.where(w >= last_word, last_tag, came_from[w + 1, rows, tag]) if w < W - 1 else last_tag
        path[w] = tag
    return [path[:length, row].tolist() for row, length in enumerate(lengths)]
