"""Fine-tuning one pretrained BERT on SQuAD: ours against transformers' Trainer, with the same questions and settings.

    python -m bench.questions --data DATA [--model minilm] [--questions 2000] [--more] [--dev N] [--epochs 1]
                              [--batch 16] [--rate 1e-4] [--head-rate 1e-4] [--padding max|longest|both] [--seed 0]

Prints each side's F1 and exact match on dev after its last step, counted the same for both, and its times. Both read
question and context in sequences of 384 pieces, windows of long contexts share 128, and the best answer has 30 pieces
at most. The Trainer's rows are padded to 384, as the example of transformers does by default, or to the longest of each
batch. A batch is so many questions on our side, so many windows on theirs. `--more` adds SQuADShifts' new articles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.questions import LONGEST, LONGEST_ANSWER, STRIDE, Padding, QuestionTrainer, answer_scores
from bench.peers.trainer import TrainerSide
from bench.runs import compare, options
from bench.samples import squad_dev, squad_train
from bench.works import NEW_WIKI, SQUAD_DEV, SQUAD_TRAIN
from headstart.config import Table
from headstart.tasks.qa import Qa
from headstart.tasks.questions import Question

QUESTIONS_AS_THEIRS: Table = {
    "longest": LONGEST - 2,  # the third mark of a pair is counted
    "stride": STRIDE,
    "network": {"reads": "together", "cell": "none", "dropout": 0.0, "longest_answer": LONGEST_ANSWER},
}
"""What BertForQuestionAnswering computes."""
PADDINGS: dict[Padding, str] = {"max": "padding to 384", "longest": "padding by batch"}


def trainers(task: Qa, paddings: Sequence[Padding]) -> dict[str, Callable[[Path], TrainerSide[Any]]]:
    return {
        f"transformers' Trainer, {PADDINGS[padding]}": partial(QuestionTrainer, task=task, padding=padding)
        for padding in paddings
    }


def our_scores(dev: Sequence[Question], answers: Sequence[Any]) -> dict[str, float]:
    return answer_scores(dev, [answer.text for answer in answers])


def main(arguments: Sequence[str] | None = None) -> None:
    needs = f"{SQUAD_TRAIN} and {SQUAD_DEV}"
    parser = options("bench.questions", __doc__, needs, "questions", 2_000, batch=16)
    parser.add_argument("--padding", choices=(*PADDINGS, "both"), default="max", help="of the Trainer's rows")
    parser.add_argument("--more", action="store_true", help=f"draw from {NEW_WIKI} too")
    given = parser.parse_args(arguments)
    train, dev = squad_train(given.data, given.more), squad_dev(given.data)
    task = Qa.learn(train)
    paddings = list(PADDINGS) if given.padding == "both" else [given.padding]
    compare(given, task, train, dev, trainers(task, paddings), QUESTIONS_AS_THEIRS, our_scores)


if __name__ == "__main__":
    main()
