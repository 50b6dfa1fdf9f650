"""What word vectors are worth that several processes train, each on its share of the text, and merge now and then.

    python -m bench.scale vectors --text TEXT --pairs FILE [--processes 1 2 4 8] [--between 1 10] [--seeds 2]

FILE has two words and a score in each line (MEN). The processes take turns in this one: what is asked is how good the
vectors become, not how fast. `between` is the number of steps, of 50,000 words in each process, between two merges.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headstart.config import resolve
from headstart.inspection.rank_correlation import spearman
from headstart.inspection.scored_pairs import read_scored_pairs
from headstart.pretraining.base import Workplace
from headstart.pretraining.static.pretraining import Word2VecPretraining, Word2VecRun
from headstart.pretraining.static.word2vec import Word2VecConfig, Word2VecLearner
from headstart.progress import result_of
from headstart.text.documents import settle_layout
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import WordTokenizer
from headstart.training.schedule import rate_at

EPOCHS = 5
STEP_WORDS = 50_000


def mean(before: Tensor, after: Tensor) -> Tensor:
    """after: (processes, V, D), all of which began with `before`, (V, D)."""
    return after.mean(dim=0)


def mean_of_changed(before: Tensor, after: Tensor) -> Tensor:
    """Of each word, the mean over the processes that changed it: a rare word occurs in one share only."""
    changes = after - before
    changed = changes.ne(0).any(dim=-1).sum(dim=0).clamp(min=1)
    return before + changes.sum(dim=0) / changed[:, None]


def sum_of_changes(before: Tensor, after: Tensor) -> Tensor:
    return before + (after - before).sum(dim=0)


RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": mean,
    "mean of changed": mean_of_changed,
    "sum of changes": sum_of_changes,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale vectors", description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--between", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        corpora, tokenizer = prepared(given.text.resolve(), Path(folder))
        for processes in given.processes:
            # A process alone has nothing to merge.
            ways = [(rule, n) for rule in given.rules for n in given.between] if processes > 1 else [("mean", 1)]
            for rule, between in ways:
                found = [
                    measured(trained(corpora, tokenizer, processes, between, RULES[rule], seed), tokenizer, given.pairs)
                    for seed in range(given.seeds)
                ]
                what = f"{processes} processes, {rule} after every {between}" if processes > 1 else "1 process"
                rhos, perplexities = zip(*found, strict=True)
                print(
                    f"{what}: rho {statistics.mean(rhos):.3f} ({shown(rhos, 3)}), perplexity "
                    f"{statistics.mean(perplexities):.0f} ({shown(perplexities, 0)})",
                    flush=True,
                )
    return 0


def shown(numbers: Sequence[float], digits: int) -> str:
    return " ".join(f"{number:.{digits}f}" for number in numbers)


def prepared(text: Path, cache: Path) -> tuple[Corpora, WordTokenizer]:
    """The text in shards, with the defaults of `pretrain static`."""
    pretraining = Word2VecPretraining("skipgram")
    config = resolve(Word2VecRun, pretraining.defaults(None, {}))
    layout, _ = settle_layout([text], config.text)
    config = config.model_copy(update={"text": layout})
    tokenizer = result_of(pretraining.tokenizer(config, [text], Workplace(cache, 1)))
    longest = pretraining.longest_sentence(config)
    corpora = result_of(prepare([text], None, tokenizer, layout, cache=cache, max_sentence=longest, workers=1))
    return corpora, tokenizer


def trained(
    corpora: Corpora,
    tokenizer: WordTokenizer,
    processes: int,
    between: int,
    merge: Callable[[Tensor, Tensor], Tensor],
    seed: int,
) -> Word2VecLearner:
    config = Word2VecConfig(step_words=STEP_WORDS)
    counts = tokenizer.vocabulary.counts
    learners = [Word2VecLearner(corpora.train, corpora.valid, counts, config, seed) for _ in range(processes)]
    steps = EPOCHS * learners[0].steps_per_epoch()
    before = {name: tensor.clone() for name, tensor in learners[0].state().items()}
    for number in range(0, steps, processes):
        for own, learner in enumerate(learners[: steps - number]):
            learner.step(number + own, rate_at((number + own) / steps, 0.0, "linear"))
        if processes > 1 and ((number // processes + 1) % between == 0 or number + processes >= steps):
            states = [learner.state() for learner in learners]
            before = {name: merge(old, torch.stack([state[name] for state in states])) for name, old in before.items()}
            for learner in learners:
                learner.load_state(before)
    return learners[0]


def measured(learner: Word2VecLearner, tokenizer: WordTokenizer, pairs: Path) -> tuple[float, float]:
    """(Spearman's rho of cosines and scores, over the pairs of known words; held-out perplexity)."""
    vectors = torch.nn.functional.normalize(learner.state()["vectors"], dim=1)
    cosines, gold = [], []
    for pair in read_scored_pairs(pairs):
        first, second = (tokenizer.vocabulary.index.get(text.lower()) for text in (pair.first, pair.second))
        if first is not None and second is not None:
            cosines.append(float(vectors[first] @ vectors[second]))
            gold.append(pair.score)
    return spearman(np.array(cosines), np.array(gold)), learner.evaluate(None)["perplexity"]
