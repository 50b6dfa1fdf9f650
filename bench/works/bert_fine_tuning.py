"""Fine-tuning minilm on SST-2 in batches of 32: the steps of `transfer --how finetune` against transformers' Trainer.

Both go over the same examples, which are drawn from the whole training file: 48 batches in all, 8 in each turn, the
first to warm up. Only the steps are timed: no tokenising, no looks at dev. Ours fills batches as `fit` does, the
Trainer at random, padding each to its longest. Both start from vectors that agree to 1e-4; each has the head that it
puts on by default. `python -m bench.fine_tuning` compares whole runs and their accuracies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bench.fine_tuning import Settings, our_steps, tokenised_rows, trainer_of
from bench.measure import Measurement, Setting, Side, Timed, check_close, in_turns
from bench.operations import TRAINING, bert
from bench.peers.bert import MODEL, exported, piece_lengths, transformers_model, word_places
from bench.samples import sst_train
from headstart.tasks.examples import draw
from headstart.transfer.start import Start, open_start

BATCH = 32
BATCHES, QUICK_BATCHES = 8, 3
TOLERANCE = 1e-4


def run(setting: Setting) -> Iterator[Measurement]:
    batches = QUICK_BATCHES if setting.quick else BATCHES
    settings = Settings(epochs=1, batch=BATCH, rate=5e-5)
    examples = draw(sst_train(setting.data), batches * BATCH * (setting.repeats + 1), seed=0)
    parts = [examples.take(range(start, len(examples), setting.repeats + 1)) for start in range(setting.repeats + 1)]
    start = open_start(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        files = exported(Path(folder))
        tokenizer, model = transformers_model(files)
        check(start, tokenizer, model, examples.texts[:BATCH])
        rows = [tokenised_rows(tokenizer, part) for part in parts]
        turns = {"ours": iter(parts), "trainer": iter(rows)}

        def ours() -> Timed:
            part: Any = next(turns["ours"])
            return Timed(len(part), our_steps(start, part, settings))

        def theirs() -> Timed:
            part: Any = next(turns["trainer"])
            trainer, clock = trainer_of(files, part, settings, seed=0)
            trainer.train()
            return Timed(len(part), clock.seconds)

        rates = in_turns({"ours": Side(ours), "trainer": Side(theirs)}, setting.repeats)
    lengths = piece_lengths(tokenizer, examples.texts)
    encoder: Any = start.pretrained and start.pretrained.encoder
    yield Measurement(
        work=f"BERT fine-tuning ({MODEL}, SST-2, batches of {BATCH})",
        unit="examples/s",
        ours=rates["ours"],
        peer=rates["trainer"],
        peer_name="transformers' Trainer",
        goal=2.0,
        flops_per_unit=TRAINING * bert(encoder.config, lengths) * sum(lengths) / len(lengths),
    )


def check(start: Start, tokenizer: Any, model: Any, texts: list[str]) -> None:
    """The encoders agree before the first step."""
    pretrained: Any = start.pretrained
    with torch.no_grad():
        states = model(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state.numpy()
    mine = pretrained.represent(texts, layers="top")
    for text, ours, state in zip(texts, mine, states, strict=True):
        check_close("vectors", ours[0], state[word_places(pretrained, text)], TOLERANCE)
