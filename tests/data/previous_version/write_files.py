"""Writes the files in this folder with the version of Headstart that is installed: python write_files.py FOLDER.

FOLDER must be new. Only the public API is used, so that a later version can write its own files in the same way.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import headstart

SUBJECTS = ["the cat", "a dog", "my friend", "nobody"]
VERBS = ["likes", "watches", "hates", "forgets"]
OBJECTS = ["the film", "a play", "old songs", "the story"]
WORDS = {"good": ["superb", "funny", "warm"], "bad": ["dull", "boring", "stale"]}

BERT = {
    "encoder.layers": 2,
    "encoder.width": 8,
    "encoder.heads": 2,
    "encoder.inner": 16,
    "encoder.positions": 32,
    "tokenizer.size": 100,
    "objective.length": 24,
    "training.batch": 96,
}
ELMO = {
    "encoder.cell": 8,
    "encoder.projection": 4,
    "encoder.char_width": 2,
    "encoder.filters": [[1, 4], [2, 6]],
    "tokenizer.min_count": 1,
    "training.batch": 100,
}
PRETRAINED: dict[str, dict[str, Any]] = {
    "skipgram": {"objective.dim": 6, "objective.step_words": 200, "tokenizer.min_count": 1},
    "glove": {"objective.dim": 6, "objective.pairs_per_step": 200, "tokenizer.min_count": 1},
    "elmo": ELMO,
    "bert": BERT,
}
SIZES = {"elmo": "tiny", "bert": "tiny"}
EVERY_RUN = {"training.evaluations": 1, "training.precision": "float32", "text.valid_share": 0.1}
STEPS, STOPPED_AT = 6, 4

FITTING = {"min_steps": 40, "learning_rate": 0.05, "encoder_rate": 0.02, "epochs": 2.0, "batch": 4, "evaluations": 2}
TASKS: dict[str, dict[str, Any]] = {
    "static_lstm": {"source": "pretrained/skipgram", "network": {"cell": "lstm", "width": 4}},
    "elmo_attention": {"source": "pretrained/elmo", "network": {"pool": "attention", "width": 4}},
    "bert_first": {"source": "pretrained/bert", "how": "finetune", "network": {"pool": "first"}},
    "scratch": {"network": {"cell": "gru", "width": 2}},
}

SENTENCES = ["The cat likes old songs .", "Nobody forgets Zanzibar , a warm play .", "film"]
TEXTS = [
    "the cat likes the film , superb .",
    "a dog hates old songs , dull .",
    "my friend watches a play , warm .",
    "Unheard of : nobody forgets the boring story !",
    "stale",
]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(words) for words in (SUBJECTS, VERBS, OBJECTS))


def reviews(count: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    labels = ["good" if number % 2 else "bad" for number in range(count)]
    return [(f"{sentence(rng)} , {rng.choice(WORDS[label])} .", label) for label in labels]


def write_texts() -> None:
    rng = random.Random(0)
    documents = ["\n".join(f"{sentence(rng)} .".capitalize() for _ in range(3)) for _ in range(20)]
    documents += [text for text, _ in reviews(30, seed=1)]
    Path("text").mkdir()
    Path("text/text.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    for name, count, seed in (("train", 12, 2), ("dev", 8, 3)):
        lines = [f'"{text}",{label}' for text, label in reviews(count, seed)]
        Path(f"text/{name}.csv").write_text("\n".join(["text,label", *lines, ""]), encoding="utf-8")


def rounded(values: Any) -> Any:
    """As lists. float first: a rounded float32 is no short number."""
    return values.astype(float).round(7).tolist()


def vectors(run: str) -> list[Any]:
    return [rounded(found) for found in headstart.load(run).represent(SENTENCES)]


def probabilities(classifier: Any) -> list[list[float]]:
    found: list[list[float]] = rounded(classifier.predict_proba(TEXTS))
    return found


def write_pretrained(expected: dict[str, Any]) -> None:
    """The BERT is stopped on the way, so that it can be resumed; what a copy of it becomes in the end is noted."""
    for kind, settings in PRETRAINED.items():
        out = f"pretrained/{kind}"
        options = {"size": SIZES.get(kind), "settings": settings | EVERY_RUN, "steps": STEPS, "workers": 1}
        run = headstart.pretrain(kind, "text/text.txt", out=out, cache="cache", **options)
        for event in run:
            if kind == "bert" and getattr(event, "number", 0) == STOPPED_AT:
                run.close()
        if kind == "bert":
            shutil.copytree(out, "resumed")
            list(headstart.pretrain(kind, out="resumed", resume=True, cache="cache", workers=1))
            expected["resumed"] = vectors("resumed")
            shutil.rmtree("resumed")
            Path(out, "state/lock").unlink()
        else:
            shutil.rmtree(f"{out}/state")
        shutil.rmtree(f"{out}/tensorboard", ignore_errors=True)
        expected["vectors"][kind] = vectors(out)


def write_tasks(expected: dict[str, Any]) -> None:
    for name, options in TASKS.items():
        out = f"tasks/{name}"
        list(
            headstart.transfer(
                "sentiment",
                source=options.get("source", "scratch"),
                how=options.get("how", "frozen"),
                train="text/train.csv",
                dev="text/dev.csv",
                out=out,
                seeds=1,
                settings={"network": options["network"], "fitting": FITTING},
                # The features of one run are kept; a cache that others have used too would be larger.
                cache="home" if name == "elmo_attention" else "cache",
            )
        )
        Path(out, "mix.svg").unlink(missing_ok=True)
        shutil.rmtree(f"{out}/state", ignore_errors=True)
        expected["probabilities"][name] = probabilities(headstart.load_classifier(out))


def write_estimator(expected: dict[str, Any]) -> None:
    texts, labels = zip(*reviews(20, seed=4), strict=True)
    estimator = headstart.TextClassifier(
        "pretrained/skipgram", cell="none", pool="mean", min_steps=12, epochs=2.0, batch=4
    )
    estimator.fit(texts, [7 if label == "good" else -1 for label in labels])
    estimator.save("estimator")
    Path("estimator.pickle").write_bytes(pickle.dumps(estimator))
    expected["estimator"] = {
        "classes": estimator.classes_.tolist(),
        "parameters": estimator.get_params(),
        "probabilities": probabilities(estimator),
        "predicted": estimator.predict(TEXTS).tolist(),
    }


def write_comparison() -> None:
    list(
        headstart.compare(
            "sentiment",
            train="text/train.csv",
            dev="text/dev.csv",
            out="comparison",
            with_="pretrained/skipgram",
            labels=[4, 8],
            seeds=2,
            settings={"transfer.network.cell": "none", "transfer.network.pool": "mean", "transfer.fitting": FITTING},
            cache="cache",
        )
    )
    for name in ("models", "pretrained"):
        shutil.rmtree(f"comparison/{name}")
    for path in (Path("comparison/report.html"), *Path("comparison").glob("*.svg"), Path("comparison/lock")):
        path.unlink()


def write_exports(expected: dict[str, Any]) -> None:
    list(headstart.export("tasks/bert_first", "hf", "huggingface"))
    list(headstart.import_run("huggingface", "imported"))
    for name in ("huggingface", "imported"):
        expected["vectors"][name] = vectors(name)
        expected["probabilities"][name] = probabilities(headstart.load_classifier(name))


def without_machine_paths() -> None:
    """A run's config.toml names its text by its whole path, of which only the file's name means anything elsewhere."""
    for path in Path("pretrained").rglob("*"):
        if path.suffix in (".toml", ".md"):
            path.write_text(path.read_text(encoding="utf-8").replace(str(Path.cwd()), ""), encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir()
    os.chdir(folder)
    os.environ["HEADSTART_HOME"] = str(Path("cache").resolve())
    torch.set_num_threads(1)
    expected: dict[str, Any] = {
        "headstart": version("headstart"),
        "sentences": SENTENCES,
        "texts": TEXTS,
        "vectors": {},
        "probabilities": {},
    }
    write_texts()
    write_pretrained(expected)
    write_tasks(expected)
    write_estimator(expected)
    write_comparison()
    write_exports(expected)
    without_machine_paths()
    shutil.rmtree("cache")
    Path("expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
