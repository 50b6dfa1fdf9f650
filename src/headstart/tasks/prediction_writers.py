"""The formats of predictions that tasks share: JSON lines, tab-separated lines, csv."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

from headstart.tasks.base import Writer

BREAKS = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]+")


class JsonLines(Writer[Any, Any]):
    """One JSON object per example."""

    def lines(self, pairs: Iterable[tuple[Any, Any]]) -> str:
        # Columns of a parquet file may hold dates and other values that JSON has no form for; they become strings.
        found = (json.dumps(self.task.as_json(*pair), ensure_ascii=False, default=str) for pair in pairs)
        return "".join(f"{line}\n" for line in found)


class TabLines(Writer[Any, Any]):
    """`label TAB probability TAB text`, with a column for each text of an example.

    Line breaks and tabs in a text become spaces: a text is one cell of one line.
    """

    def lines(self, pairs: Iterable[tuple[Any, Any]]) -> str:
        rows = ([answer.label, certainty(answer), *map(one_line, example.texts.values())] for example, answer in pairs)
        return "".join("\t".join(row) + "\n" for row in rows)


def certainty(answer: Any) -> str:
    """The probability of the label; nothing for a blank line, which has none."""
    return f"{max(answer.probabilities):.4f}" if answer.label else ""


def one_line(text: str) -> str:
    return BREAKS.sub(" ", text)


class CsvLines(Writer[Any, Any]):
    """The columns of the input with the label and its probability after them."""

    columns: list[str] | None = None

    def lines(self, pairs: Iterable[tuple[Any, Any]]) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for example, answer in pairs:
            record = dict(example.texts if example.record is None else example.record)
            if self.columns is None:
                self.columns = list(record)
                writer.writerow([*self.columns, "predicted", "probability"])
            values = [record.get(name, "") for name in self.columns]
            writer.writerow([*values, answer.label, certainty(answer)])
        return buffer.getvalue()
