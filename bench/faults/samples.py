"""Small valid files of every format: text, labelled examples, models and results."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Mapping

TEXTS = (
    "The old actor likes a long play. Nobody, e.g. Mr. Grey, hates the garden!",
    "My friend remembers the film; her sister writes old songs.",
    "Every child talks about the city in 1998 … and forgets it.",
    "Das Café ist schön 🙂, sagt niemand. 他走了。她也走了。",
)
LABELS = ("good", "bad")

TREES = """(4 (4 (2 A) (4 (3 warm) (2 film))) (2 .))
(0 (1 (2 -LRB-) (2 Not)) (0 (2 good\\/fun) (2 -RRB-)))
(2 (2 8\u00a01\\/2) (2 \\*))
(1 dull)
"""
CONLL = """-DOCSTART- -X- -X- O

Anna NNP B-NP B-PER
lives VBZ B-VP O
in IN B-PP O
New NNP B-NP B-LOC
York NNP I-NP I-LOC

She PRP B-NP O
left VBD B-VP O
"""
CONLLU = """# text = Cats sleep.
1\tCats\tcat\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_

1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tIN\t_\t2\tcase\t_\t_
2\tle\tle\tDET\tDT\t_\t0\troot\t_\t_
"""
ROLES = """#begin document (a); part 000
a 0 0 The DT * - - (ARG0* *
a 0 1 cat NN * - - *) (ARG1*)
a 0 2 saw VBD * see see.01 (V*) *
a 0 3 it PRP * - - (ARG1*) *
a 0 4 sleep VB * sleep sleep.01 * (V*)

a 0 0 It PRP * - - (ARG0*)
a 0 1 ran VBD * run run.02 (V*)
#end document
"""
COREF = """#begin document (nw/a); part 000
nw/a 0 0 Anna (3)
nw/a 0 1 saw -
nw/a 0 2 the (4
nw/a 0 3 dog 4)

nw/a 0 0 She (3)
nw/a 0 1 left (5
nw/a 0 2 its 5)|(4)
#end document
"""
GAP = (
    "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    "t-1\tAnna saw Bella . She left .\tShe\t17\tAnna\t0\tTRUE\tBella\t9\tFALSE\thttp://example.org\n"
    "t-2\tCarl met Dan . He left .\tHe\t15\tCarl\t0\tFALSE\tDan\t9\tTRUE\thttp://example.org\n"
)
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "A",
            "paragraphs": [
                {
                    "context": "Anna lives in New York. She likes the city.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Where does Anna live?",
                            "answers": [{"text": "New York", "answer_start": 14}],
                            "is_impossible": False,
                        },
                        {"id": "2", "question": "Who is Bob?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}
QUESTION = {
    "id": "1",
    "question": "Where?",
    "context": "In New York.",
    "answers": [{"text": "New York", "answer_start": 3}],
}
TAGGED_LINE = {"words": ["Anna", "lives", "in", "Rome"], "tags": ["B-PER", "O", "O", "B-LOC"]}
ROLE_LINE = {
    "words": ["Cats", "saw", "it"],
    "predicates": [
        {
            "word": 1,
            "arguments": [{"role": "ARG0", "start": 0, "end": 1}, {"role": "ARG1", "start": 2, "end": 3}],
        }
    ],
}
COREF_LINE = {
    "document": "a",
    "sentences": [["Anna", "left", "."], ["She", "ran", "."]],
    "chains": [[[0, 1], [3, 4]]],
    "speakers": ["-", "Bob"],
}
CLUSTER_LINE = {
    "doc_key": "nw/b",
    "sentences": [["Anna", "left", "."], ["She", "ran", "."]],
    "clusters": [[[0, 0], [3, 3]]],
}


def json_lines(*records: Mapping[str, object]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def table(separator: str, columns: Mapping[str, tuple[str, ...]], quoted: bool) -> bytes:
    mark = '"' if quoted else ""
    rows = [
        separator.join(columns),
        *(separator.join(f"{mark}{cell}{mark}" for cell in row) for row in zip(*columns.values(), strict=True)),
    ]
    return ("\n".join(rows) + "\n").encode()


def labels(count: int) -> tuple[str, ...]:
    return tuple(LABELS[number % 2] for number in range(count))


def parquet(columns: Mapping[str, tuple[str, ...]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), file)
    return file.getvalue()


def archive() -> bytes:
    """Reviews as aclImdb packs them."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        for number, text in enumerate(TEXTS):
            content = text.encode()
            member = tarfile.TarInfo(f"aclImdb/train/{'pos' if number % 2 else 'neg'}/{number}_1.txt")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return file.getvalue()


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


LABELLED = {"text": TEXTS, "label": labels(len(TEXTS))}
PAIRS = {"sentence1": TEXTS, "sentence2": TEXTS[::-1], "label": labels(len(TEXTS))}
FILES: dict[str, Callable[[], bytes]] = {
    "text.txt": lambda: "\n\n".join(TEXTS).encode(),
    "text.txt.gz": lambda: packed("\n".join(TEXTS).encode()),
    "text.csv": lambda: table(",", LABELLED, quoted=True),
    "text.tsv": lambda: table("\t", LABELLED, quoted=False),
    "text.jsonl": lambda: json_lines(*({"text": text, "n": 1} for text in TEXTS)),
    "text.jsonl.gz": lambda: packed(json_lines(*({"text": text, "n": 1} for text in TEXTS))),
    "text.parquet": lambda: parquet(LABELLED),
    "labelled.csv": lambda: table(";", LABELLED, quoted=True),
    "labelled.jsonl": lambda: json_lines(
        *({"text": text, "label": float(number % 2)} for number, text in enumerate(TEXTS))
    ),
    "labelled.parquet": lambda: parquet(LABELLED),
    "reviews.tgz": lambda: packed(archive()),
    "trees.txt": TREES.encode,
    "tagged.conll": CONLL.encode,
    "tagged.conllu": CONLLU.encode,
    "tagged.jsonl": lambda: json_lines(TAGGED_LINE, TAGGED_LINE),
    "pairs.tsv": lambda: table("\t", PAIRS, quoted=False),
    "pairs.jsonl": lambda: json_lines(
        {"sentence1": "A b .", "sentence2": "C d .", "gold_label": "neutral"},
        {"sentence1": "A e .", "sentence2": "C f .", "gold_label": "entailment"},
    ),
    "squad.json": lambda: json.dumps(SQUAD).encode(),
    "squad.json.gz": lambda: packed(json.dumps(SQUAD, indent=1).encode()),
    "questions.jsonl": lambda: json_lines(QUESTION, QUESTION | {"id": "2", "answers": []}),
    "roles.gold_conll": ROLES.encode,
    "roles.jsonl": lambda: json_lines(ROLE_LINE, ROLE_LINE),
    "coref.conll": COREF.encode,
    "coref.jsonl": lambda: json_lines(COREF_LINE, CLUSTER_LINE),
    "gap.tsv": GAP.encode,
}
"""Files that are made of the texts above."""
