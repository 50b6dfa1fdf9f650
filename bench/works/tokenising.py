"""Text to WordPiece ids on two cores: the whole of `prepare` against the tokenizers library alone.

Ours reads 10 MB of film reviews from disk, finds the sentences, tokenises them in two worker processes and writes
shards of ids to disk. The library gets the same sentences, found beforehand and in memory, ten thousand at a time,
leaves its results in memory and drops them. Both have minilm's vocabulary of 30,522 pieces. The ids of the first
sentences and the number of all ids are equal.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import headstart
from bench.measure import Measurement, Setting, Side, in_turns
from bench.peers.bert import MODEL
from bench.samples import lines
from bench.works import REVIEWS
from headstart.progress import result_of
from headstart.text.documents import TextConfig
from headstart.text.sentences import sentence_spans
from headstart.text.shards import Shards
from headstart.text.tokenise import prepare

BYTES, QUICK_BYTES = 10_000_000, 1_500_000
WORKERS = 2
AT_ONCE = 10_000
COMPARED = 2_000
READING = TextConfig(one_per_line=True, valid_share=0.0)


def run(setting: Setting) -> Iterator[Measurement]:
    tokenizer: Any = headstart.load(MODEL).tokenizer
    documents = first_documents(setting.data / REVIEWS, QUICK_BYTES if setting.quick else BYTES)
    sentences = [text[start:end] for text in documents for start, end in sentence_spans(text, False)]
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "text.txt", Path(folder) / "cache"
        text.write_text("".join(documents), encoding="utf-8")
        megabytes = text.stat().st_size / 1e6

        def forget() -> None:
            shutil.rmtree(cache, ignore_errors=True)

        def tokenise() -> Shards:
            work = prepare([text], None, tokenizer, READING, cache=cache, max_sentence=None, workers=WORKERS)
            return result_of(work).train

        def ours() -> float:
            tokenise()
            return megabytes

        def library(encode: Callable[..., object]) -> Side:
            def work() -> float:
                for start in range(0, len(sentences), AT_ONCE):
                    encode(sentences[start : start + AT_ONCE], add_special_tokens=False)
                return megabytes

            return Side(work)

        backend = tokenizer.backend
        check_equal(tokenise(), sentences, backend)
        peers = {"encode_batch": library(backend.encode_batch), "encode_batch_fast": library(backend.encode_batch_fast)}
        rates = in_turns({"ours": Side(ours, forget), **peers}, setting.repeats)
    for name, goal in (("encode_batch", 0.9), ("encode_batch_fast", None)):
        yield Measurement(
            work=f"Tokenising {megabytes:.0f} MB to WordPiece, against {name}",
            unit="MB/s",
            ours=rates["ours"],
            peer=rates[name],
            peer_name=f"tokenizers' {name}, sentences in memory",
            goal=goal,
        )


def first_documents(path: Path, most_bytes: int) -> list[str]:
    """Whole lines, up to so many bytes."""
    found: list[str] = []
    taken = 0
    for line in lines(path):
        taken += len(line.encode())
        if taken > most_bytes:
            break
        found.append(line)
    return found


def check_equal(shards: Shards, sentences: list[str], backend: Any) -> None:
    total = number = 0
    for start in range(0, len(sentences), AT_ONCE):
        for encoding in backend.encode_batch_fast(sentences[start : start + AT_ONCE], add_special_tokens=False):
            theirs = encoding.ids
            if not theirs:  # such a sentence has no place in the shards
                continue
            if number < COMPARED and shards.sentence(number).tolist() != theirs:
                raise RuntimeError(f"the shards' sentence {number} has other ids than the tokenizers library gives")
            number, total = number + 1, total + len(theirs)
    if total != shards.n_units:
        raise RuntimeError(f"the shards hold {shards.n_units:,} ids, the tokenizers library gives {total:,}")
