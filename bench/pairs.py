"""Fine-tuning one pretrained BERT on SNLI: ours against transformers' Trainer, with the same pairs and settings.

    python -m bench.pairs --data DATA [--model minilm] [--pairs 10000] [--dev 2000] [--epochs 1] [--batch 32]
                          [--rate 1e-4] [--head-rate 1e-4] [--order random|ours] [--seed 0]

Prints each side's dev accuracy after its last step and its times. Both have one linear layer on BERT's pooled vector of
premise and hypothesis in one sequence. The Trainer pads each batch to its longest pair. By default it draws batches at
random; `--order ours` gives it the batches of our fit, which hold pairs of like length.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.peers.trainer import OurOrderTrainer, PairTrainer
from bench.runs import compare, options
from bench.samples import snli_dev, snli_train
from bench.works import SNLI_DEV, SNLI_TRAIN
from headstart.config import Table
from headstart.metrics import accuracy
from headstart.tasks.labels import Prediction
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample

PAIRS_AS_THEIRS: Table = {"network": {"reads": "together", "cell": "none", "pool": "first", "dropout": 0.1}}
"""What BertForSequenceClassification computes."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options("bench.pairs", __doc__, f"{SNLI_TRAIN} and {SNLI_DEV}", "pairs", 10_000, batch=32)
    parser.add_argument("--order", choices=("random", "ours"), default="random", help="of the Trainer's batches")
    given = parser.parse_args(arguments)
    train, dev = snli_train(given.data), snli_dev(given.data)
    task = Pair.learn(train)

    def side(files: Path) -> PairTrainer:
        trainer = PairTrainer(files, task)
        trainer.kind = OurOrderTrainer if given.order == "ours" else trainer.kind
        return trainer

    name = "transformers' Trainer" + (", our batches" if given.order == "ours" else "")
    compare(given, task, train, dev, {name: side}, PAIRS_AS_THEIRS, our_scores)


def our_scores(dev: Sequence[PairExample], answers: Sequence[Prediction]) -> dict[str, float]:
    return {"accuracy": accuracy([example.label for example in dev], [answer.label for answer in answers])}


if __name__ == "__main__":
    main()
