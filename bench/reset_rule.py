"""What ELMo's reset rule costs: the same network trained with its state reset at every sentence, or at every window.

    python -m bench.reset_rule --data FOLDER --out FOLDER [--steps 400]

Both see the same number of tokens. The figure counts words only: sentence marks, of which one side has more, do not.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

from headstart import metrics, pretrain
from headstart.config import cache_home, resolve
from headstart.encoders.elmo import Elmo
from headstart.heads.softmax import softmax_loss
from headstart.pretraining.elmo.batches import LanguageModelBatches
from headstart.pretraining.elmo.objective import ElmoLanguageModel
from headstart.pretraining.elmo.pretraining import ElmoRun
from headstart.pretraining.objectives import OBJECTIVES
from headstart.text.documents import discover
from headstart.text.tokenise import prepare
from headstart.text.tokenizer import load_tokenizer
from headstart.text.vocabulary import SPECIALS
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

TEXT = "lm_imdb_unsup"
MOST_WORDS = 50_000


def last_value(steps: Generator[Any, None, Any]) -> Any:
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


@torch.no_grad()
def word_perplexity(path: Path) -> float:
    """The mean of both directions' perplexities over held-out words alone."""
    table = RunDirectory.open(path).read_config()
    data = table.pop("data")
    config = resolve(ElmoRun, table)
    tokenizer: Any = load_tokenizer(path)
    sources, valid = discover(data["sources"]), discover(data["valid"])
    longest = OBJECTIVES["elmo"].longest_sentence(config)
    shards = last_value(
        prepare(sources, valid, tokenizer, config.text, cache=cache_home(), max_sentence=longest, workers=2)
    ).valid
    model = ElmoLanguageModel(Elmo(config.encoder, len(tokenizer)), len(tokenizer), config.objective).eval()
    model.load_state_dict(read_tensors(path / "weights.safetensors"))
    rules = {"tokens": config.encoder.tokens, "unit": config.objective.unit, "longest": config.objective.longest}
    batches = LanguageModelBatches(shards, tokenizer.vocabulary, **rules, batch_tokens=1024, seed=0)
    totals, counts = [0.0, 0.0], [0, 0]
    for number in range(len(batches)):
        batch = batches[number]
        states = model.encoder.hidden_states(batch.ids, batch.mask)[-1].chunk(2, dim=-1)
        pairs = ((states[0][:, :-1], batch.targets[:, 1:]), (states[1][:, 1:], batch.targets[:, :-1]))
        for side, (h, words) in enumerate(pairs):
            real = batch.mask[:, 1:] & (words >= len(SPECIALS) - 1)
            totals[side] += float(softmax_loss(h[real], model.head.weight, model.head.bias, words[real]).total)
            counts[side] += int(real.sum())
        if counts[0] > MOST_WORDS:
            break
    return metrics.mean([metrics.perplexity(total, count) for total, count in zip(totals, counts, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reset_rule", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    for unit in ("sentence", "window"):
        run = arguments.out / unit
        settings = {"text.one_per_line": True, "objective.unit": unit, "training.evaluations": 1}
        text, valid = (arguments.data / TEXT / f"{part}.txt.gz" for part in ("train", "valid"))
        if not (run / "weights.safetensors").exists():
            list(pretrain("elmo", text, out=run, valid=valid, size="mini", steps=arguments.steps, settings=settings))
        print(f"state reset at every {unit:8}: perplexity per word {word_perplexity(run):,.1f}", flush=True)


if __name__ == "__main__":
    main()
