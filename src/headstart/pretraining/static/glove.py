"""GloVe (Pennington et al. 2014): word vectors whose products give the logarithms of co-occurrence counts.

J = sum over i, j of f(X_ij) (w_i . c_j + b_i + d_j - log X_ij)^2, with f(x) = min(1, (x / x_max) ^ power), by AdaGrad.

Against the original program, which updates after every pair: a step here takes many pairs at once, and the gradients
of a word that occurs in several of them are added up before AdaGrad sees them. AdaGrad's sum then grows by the square
of the sum, not by the sum of the squares, and a frequent word takes one bounded step where it took many small ones.
That is why the learning rate, 0.3, is a multiple of the original's 0.05. The new squares also go into the sum before
the step instead of after it, so that the first step, whose summed gradient is large, is no longer than the rate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from headstart.batches.order import Permutation, seed_of
from headstart.config import Section
from headstart.errors import DataError
from headstart.pretraining.learner import StepResult
from headstart.pretraining.static.cooccurrence import Cooccurrences
from headstart.pretraining.static.neighbours import sample_neighbourhoods, softmax_perplexity, unigram_perplexity
from headstart.text.shards import Shards
from headstart.training.tensors import copy_state

BLOCKS_PER_STEP = 16
"""A step's pairs are read in so many short runs of the file: mixed well enough, and nearly as fast as one long run."""
PRODUCTS_AT_ONCE = 2_048
"""Pairs whose vectors are gathered at a time; at width 100 they are 1.6 MB, which stays in the processor's cache."""
PARAMETERS = ("words", "contexts", "word_bias", "context_bias")


class GloveConfig(Section):
    dim: int = Field(100, ge=1)
    """Width of the vectors."""
    window: int = Field(10, ge=1, le=1_000)
    """Most words to either side that count as neighbours, each worth 1 / distance."""
    x_max: float = Field(10.0, gt=0)
    """Count from which on all pairs weigh the same; rarer ones weigh less. The paper's 100 is for billions of words."""
    power: float = Field(0.75, ge=0, le=10)
    """How fast the weight falls below x_max."""
    learning_rate: float = Field(0.3, gt=0)
    """AdaGrad's peak learning rate."""
    pairs_per_step: int = Field(16_384, ge=1)
    """Pairs of words in one step; each is trained both ways."""


class GloveLearner:
    """Word vectors in training on counted pairs. A step is a pure function of the state, its number and the rate."""

    device = torch.device("cpu")
    unit = "pairs"
    keeps_best = False

    def __init__(
        self,
        cooccurrences: Cooccurrences,
        valid_shards: Shards | None,
        counts: NDArray[np.int64],
        config: GloveConfig,
        seed: int,
    ) -> None:
        if cooccurrences.vocabulary_size != len(counts):
            raise DataError(
                f"The co-occurrences were counted over {cooccurrences.vocabulary_size} words, the vocabulary has "
                f"{len(counts)}. Count them again with this vocabulary."
            )
        self.cooccurrences = cooccurrences
        self.counts = counts
        self.config = config
        self.seed = seed
        self.block_pairs = -(-config.pairs_per_step // BLOCKS_PER_STEP)
        self.n_blocks = -(-len(cooccurrences) // self.block_pairs)
        self.neighbourhoods = None
        if valid_shards is not None:
            self.neighbourhoods = sample_neighbourhoods(valid_shards, config.window, seed)
        self.tensors = initial_tensors(len(counts), config.dim, seed_of(seed, "word vectors"))

    def parameter_count(self) -> int:
        return sum(self.tensors[name].numel() for name in PARAMETERS)

    def steps_per_epoch(self) -> int:
        return -(-self.n_blocks // BLOCKS_PER_STEP)

    def step(self, number: int, rate: float) -> StepResult:
        pairs = self._pairs(number)
        first, second = (torch.from_numpy(pairs[name].astype(np.int64)) for name in ("row", "column"))
        counts = torch.from_numpy(pairs["count"].copy())
        loss = glove_step(self.tensors, first, second, counts, self.config, rate * self.config.learning_rate)
        return StepResult(loss=loss, units=2 * len(pairs))

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        """Perplexity of a word's neighbours under P(j | i) ~ exp(w_i . c_j + d_j), as the objective fits X_ij / X_i.

        The objective leaves out pairs that never occur, where the product may be anything: the perplexity stays above
        that of word counts alone. It serves to compare GloVe with GloVe.
        """
        sample = self.neighbourhoods.first(most_units) if self.neighbourhoods else None
        if sample is None or not len(sample.centres):
            return {}
        words, contexts, _, context_bias = (self.tensors[name] for name in PARAMETERS)
        return {
            "perplexity": softmax_perplexity(words[sample.centres], sample.contexts, contexts, context_bias),
            "unigram_perplexity": unigram_perplexity(sample.contexts, self.counts),
        }

    def state(self) -> dict[str, Tensor]:
        return dict(self.tensors)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        copy_state(self.tensors, state)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        parameters = {name: self.tensors[name] for name in PARAMETERS}
        copy_state(parameters, {name: value for name, value in weights.items() if name in parameters})

    def memory_bytes(self) -> int:
        """The tables with AdaGrad's sums, the gradients of both tables, and the rows of a step's pairs."""
        rows = 6 * 2 * self.config.pairs_per_step * self.config.dim
        return self.state_bytes() + 4 * (self.parameter_count() + rows)

    def state_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def weights(self) -> dict[str, Tensor]:
        """`vectors`, words + contexts as in the paper, and the parameters it is made of."""
        parameters = {name: self.tensors[name] for name in PARAMETERS}
        return {"vectors": parameters["words"] + parameters["contexts"], **parameters}

    def _pairs(self, number: int) -> NDArray[np.void]:
        """The pairs of one step: short runs of the shuffled file, in another mixture every epoch."""
        epoch, place = divmod(number, self.steps_per_epoch())
        places = np.arange(place * BLOCKS_PER_STEP, min((place + 1) * BLOCKS_PER_STEP, self.n_blocks))
        starts = Permutation(self.n_blocks, self.seed, "glove", epoch).take(places) * self.block_pairs
        return np.concatenate([self.cooccurrences.pairs[start : start + self.block_pairs] for start in starts])


def initial_tensors(V: int, D: int, seed: int) -> dict[str, Tensor]:
    """Small random parameters, and AdaGrad's sums of squared gradients, which start at 1 as in the original."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"words": (V, D), "contexts": (V, D), "word_bias": (V,), "context_bias": (V,)}
    tensors = {name: (torch.rand(shape, generator=generator) - 0.5) / D for name, shape in shapes.items()}
    return tensors | {f"{name}_squares": torch.ones(shape) for name, shape in shapes.items()}


def glove_step(
    tensors: Mapping[str, Tensor], first: Tensor, second: Tensor, counts: Tensor, config: GloveConfig, rate: float
) -> float:
    """One AdaGrad step, in place, on P pairs of words, each both ways. Returns the mean weighted square before it."""
    touched, gradients, loss = glove_gradients(tensors, first, second, counts, config)
    for name, gradient in gradients.items():
        # AdaGrad on the touched rows only: sums += g^2, then parameter -= rate * g / sqrt(sums). The division and the
        # root are done in place, because neither the gradient nor the gathered sums are read again.
        squares = tensors[f"{name}_squares"]
        sums = squares.index_select(0, touched).addcmul_(gradient, gradient)
        squares.index_copy_(0, touched, sums)
        tensors[name].index_add_(0, touched, gradient.div_(sums.sqrt_()), alpha=-rate)
    return loss


def glove_gradients(
    tensors: Mapping[str, Tensor], first: Tensor, second: Tensor, counts: Tensor, config: GloveConfig
) -> tuple[Tensor, dict[str, Tensor], float]:
    """The words that occur (U,), the gradient of J / 2 for each parameter of theirs (U, ...), and the mean loss.

    Sorted by its first word, the list of pairs both ways holds each word's pairs side by side, so that its gradient is
    one weighted bag of the other words' vectors. And as the list is its own mirror image, the same bags, with the
    errors of the mirrored pairs, serve for the word's other vector: no array of (pairs, D) gradients is ever made.
    """
    words, contexts, word_bias, context_bias = (tensors[name] for name in PARAMETERS)
    # Each pair both ways, sorted by the first word. `order` remembers where an entry came from: entry k < P is pair k,
    # entry k + P is the same pair mirrored.
    P = len(first)
    i, order = torch.sort(torch.cat([first, second]), stable=True)
    j = torch.cat([second, first])[order]
    both_ways = torch.cat([counts, counts])[order]
    f = (both_ways / config.x_max).clamp(max=1).pow(config.power)
    f = torch.where(i == j, f / 2, f)  # a word with itself is one cell of X, and is twice in the list

    # d(J / 2) / d(w_i . c_j) = f * difference. The gradient of w_i takes entry (i, j), that of c_i the mirrored (j, i).
    difference = products(words, i, contexts, j) + word_bias[i] + context_bias[j] - both_ways.log()
    error = f * difference
    place = torch.empty_like(order)
    place[order] = torch.arange(2 * P)
    mirrored = error[place[(order + P) % (2 * P)]]

    # Entries with the same first word are one bag, and each bag's weighted sum is one row of the gradient.
    touched, bag, sizes = torch.unique_consecutive(i, return_inverse=True, return_counts=True)
    starts = sizes.cumsum(0) - sizes
    nothing = error.new_zeros(len(touched))
    return (
        touched,
        {
            "words": F.embedding_bag(j, contexts, starts, mode="sum", per_sample_weights=error),
            "contexts": F.embedding_bag(j, words, starts, mode="sum", per_sample_weights=mirrored),
            "word_bias": nothing.index_add(0, bag, error),
            "context_bias": nothing.index_add(0, bag, mirrored),
        },
        (error * difference).mean().item(),
    )


def products(words: Tensor, i: Tensor, contexts: Tensor, j: Tensor) -> Tensor:
    """w_i . c_j for every pair, in blocks that stay in the processor's cache."""
    some = zip(torch.split(i, PRODUCTS_AT_ONCE), torch.split(j, PRODUCTS_AT_ONCE), strict=True)
    return torch.cat([torch.linalg.vecdot(words.index_select(0, a), contexts.index_select(0, b)) for a, b in some])
