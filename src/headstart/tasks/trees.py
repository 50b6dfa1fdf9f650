"""Sentiment trees as in the Stanford Sentiment Treebank: one tree per line -> its sentence and its root's label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from headstart.errors import DataError
from headstart.text.files import Source

SENTIMENTS = ["very negative", "negative", "neutral", "positive", "very positive"]
# Class names of the root's digit 0..4. With two classes, neutral sentences have none and are left out.
CLASSES: dict[int, list[str | None]] = {
    5: [*SENTIMENTS],
    2: ["negative", "negative", None, "positive", "positive"],
}
TREE_START = re.compile(r"\s*\(\d\s")
# ASCII, because a no-break space is part of a word: "8 1/2" is one leaf.
TOKEN = re.compile(r"\((?P<open>[0-4])(?=[\s(])|(?P<close>\))|(?P<word>[^\s()]+)|(?P<bare>\()", re.ASCII)
FOLLOWS = {"": {"open"}, "open": {"open", "word"}, "word": {"close"}, "close": {"open", "close"}}


def read_trees(path: Path, labels_as: Literal[2, 5] | None) -> Iterator[tuple[str, str, str]]:
    """(where, sentence, label) of each tree; with two classes, the neutral ones are left out."""
    names = CLASSES[labels_as or 5]
    first = True
    with Source(path) as source:
        for line in source.lines():
            if not line.strip():
                continue
            where = f"{path}:{source.line}"
            if first and not TREE_START.match(line):
                raise DataError(
                    f"{where}: a .txt file of examples has one sentiment tree per line, such as (3 (2 a) (3 delight)); "
                    f"got {line.strip()[:40]!r}. Give other examples as csv, tsv, jsonl or parquet."
                )
            first = False
            root, leaves = parse_tree(line, where)
            name = names[root]
            if name is not None:
                yield where, " ".join(leaves), name


def parse_tree(line: str, where: str) -> tuple[int, list[str]]:
    """The root's digit and the words, in order. Every bracket holds a digit, then one word or other brackets."""
    labels: list[int] = []
    leaves: list[str] = []
    depth, before = 0, ""
    for token in TOKEN.finditer(line):
        kind = token.lastgroup or ""
        if kind not in FOLLOWS[before] or (before and depth == 0):
            raise DataError(
                f"{where}: broken tree at character {token.start() + 1}, {line[token.start() :].strip()[:20]!r}. Each "
                f"line is one tree, and each bracket holds a label from 0 to 4 and then one word or other brackets."
            )
        if kind == "open":
            labels.append(int(token["open"]))
        elif kind == "word":
            leaves.append(without_escapes(token["word"]))
        depth += {"open": 1, "close": -1}.get(kind, 0)
        before = kind
    if depth:
        raise DataError(f"{where}: broken tree: {depth} brackets are never closed. Is the file cut short?")
    return labels[0], leaves


def without_escapes(word: str) -> str:
    """Undo the treebank's escapes of brackets, slashes and stars."""
    return word.replace("-LRB-", "(").replace("-RRB-", ")").replace("\\/", "/").replace("\\*", "*")
