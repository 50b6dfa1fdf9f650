"""Fine-tuning one pretrained BERT on CoNLL-2003's entities: ours against transformers' Trainer, with the same settings.

    python -m bench.tagging --data DATA [--model minilm] [--epochs 3] [--batch 32] [--rate 5e-5] [--labels N]
                            [--seeds 1]

Prints each side's entity F1 on all sentences of eng.testa, counted as conlleval does for both sides, and its time. Both
keep the best of their looks at dev, one after each epoch. The Trainer gives each word its most probable tag, ours the
most probable sequence that is legal.
"""

from __future__ import annotations

from bench.fine_tuning import compare, parsed
from bench.peers.trainer import TaggerTrainer
from bench.samples import conll_dev, conll_train
from bench.works import CONLL_DEV, CONLL_TRAIN
from headstart.tasks.tag import Tag


def main() -> None:
    given = parsed("bench.tagging", __doc__, f"{CONLL_TRAIN} and {CONLL_DEV}", epochs=3)
    train, dev = conll_train(given.data), conll_dev(given.data)
    task = Tag.learn(train)
    compare(given, task, train, dev, lambda files: TaggerTrainer(files, task))


if __name__ == "__main__":
    main()
