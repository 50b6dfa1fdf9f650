"""Odd input: archives that unpack to gigabytes, links and devices, lines and tables of absurd sizes."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.faults.child import MEMORY, limit_memory
from bench.faults.jobs import Inputs
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb
from headstart.text.files import BOM

NAME = "odd"
SECONDS = 60.0
GIGABYTES = 3
MEGABYTE = 1 << 20
COLUMNS = 10_000_000
Make = Callable[[Path], object]
TRAIN, ENCODE, READ = "transfer", "encode", "pretrain"


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    inputs, folder = Inputs.made(setting.folder / "inputs"), setting.folder / "work"
    folder.mkdir()
    make, verb = CASES[group]
    path = folder / group.split(", ")[0]
    make(path)
    ended = run_verb(arguments(verb, inputs, path), folder / "home", folder, partial(limit_memory, MEMORY), SECONDS)
    how, wrong = ended.judged()
    yield Outcome(NAME, group, 0, how, wrong or left_behind(folder, how))


def arguments(verb: str, inputs: Inputs, path: Path) -> list[str]:
    out = str(path.parent / "out")
    if verb == ENCODE:
        return ["encode", str(inputs.vectors), str(path), "--out", f"{out}.npy", "--quiet"]
    if verb == READ:
        return ["pretrain", "static", str(path), "--out", out, "--quiet", "--steps", "1", "--set", "objective.dim=4"]
    task = verb if verb != TRAIN else "classify"
    how = ["--from", str(inputs.vectors), "--out", out, "--quiet", "--seeds", "1", "--set", "fitting.epochs=1"]
    return ["transfer", task, "--train", str(path), *how]


def left_behind(folder: Path, how: str) -> str:
    """A command that refuses its input leaves no result."""
    there = [path.name for path in folder.glob("out*")]
    return f"left {there} behind" if there and how != "result" else ""


def bomb(content: bytes, path: Path) -> None:
    """Megabytes on the disk, gigabytes unpacked. content: what is in it, over and over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = content * (MEGABYTE // len(content))
    with path.open("wb") as file:
        for _ in range(GIGABYTES * 1024):
            file.write(packer.compress(block))
        file.write(packer.flush())


def packed_review(size: int, path: Path) -> None:
    """An archive whose one review has so many bytes."""
    header = tarfile.TarInfo("aclImdb/train/pos/0_9.txt")
    header.size = size
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(header.tobuf()))
        for _ in range(size // MEGABYTE):
            file.write(packer.compress(b"a " * (MEGABYTE // 2)))
        file.write(packer.compress(bytes(20 * 512)) + packer.flush())


def archive(members: list[tarfile.TarInfo], path: Path) -> None:
    """Reviews with these members before them."""
    with tarfile.open(path, "w:gz") as file:
        for member in members:
            file.addfile(member, io.BytesIO(b"x" * member.size))
        for number in range(30):
            for label in ("pos", "neg"):
                member = tarfile.TarInfo(f"aclImdb/train/{label}/{number}_1.txt")
                member.size = 12
                file.addfile(member, io.BytesIO(b"%s film %03d" % (label[:3].encode(), number)))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, link, size
    return found


def lines_of(size: int, path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(size // MEGABYTE):
            file.write(b"word " * (MEGABYTE // 5))


def fifo(path: Path) -> None:
    os.mkfifo(path)


def content(some: bytes) -> Make:
    return lambda path: path.write_bytes(some)


LABELLED = b"text,label\n" + b"".join(b"film %d,%s\n" % (n, (b"a", b"b")[n % 2]) for n in range(40))
WIDE = b"text,label," + b"c," * COLUMNS + b"\n"
CASES: dict[str, tuple[Make, str]] = {
    "bomb.txt.gz, one line": (partial(bomb, b"word "), READ),
    "bomb.txt.gz, zeros": (partial(bomb, b"\0"), READ),
    "bomb.csv.gz, one row": (partial(bomb, b'"'), TRAIN),
    "bomb.csv.gz, rows": (partial(bomb, b"a film,b\n"), TRAIN),
    "bomb.jsonl.gz, nested": (partial(bomb, b'{"a":'), TRAIN),
    "bomb.json.gz, nested": (partial(bomb, b"[[[["), "qa"),
    "bomb.conll.gz, words": (partial(bomb, b"Anna B-PER\n"), "tag"),
    "bomb.conll.gz, mentions": (partial(bomb, b"a 0 0 Anna (1)\n"), "coref"),
    "bomb.tgz, one review": (partial(packed_review, GIGABYTES << 30), TRAIN),
    "bomb.parquet.gz, zeros": (partial(bomb, b"\0"), TRAIN),
    "up.tgz, members with .. and /": (
        partial(archive, [member("../../../pos/evil.txt", size=4), member("/pos/evil.txt", size=4)]),
        TRAIN,
    ),
    "links.tgz, links and devices": (
        partial(
            archive,
            [
                member("aclImdb/train/pos/90_1.txt", tarfile.SYMTYPE, "/etc/passwd"),
                member("aclImdb/train/pos/91_1.txt", tarfile.LNKTYPE, "../../../etc/passwd"),
                member("aclImdb/train/pos/92_1.txt", tarfile.CHRTYPE),
                member("aclImdb/train/pos/93_1.txt", tarfile.FIFOTYPE),
            ],
        ),
        TRAIN,
    ),
    "fifo.txt, without a writer": (fifo, READ),
    "fifo.csv, without a writer": (fifo, TRAIN),
    "device.txt, a link to /dev/zero": (lambda path: path.symlink_to("/dev/zero"), ENCODE),
    "device.csv, a link to /dev/zero": (lambda path: path.symlink_to("/dev/zero"), TRAIN),
    "loop.txt, a link to itself": (lambda path: path.symlink_to(path), READ),
    "folder.csv, a folder": (lambda path: path.mkdir(), TRAIN),
    "line.txt, one of 1 GB": (partial(lines_of, 1 << 30), ENCODE),
    "wide.csv, 10 million columns": (content(WIDE + LABELLED), TRAIN),
    "wide.tsv, 10 million columns": (content(WIDE.replace(b",", b"\t") + LABELLED), TRAIN),
    "nul.csv, NUL bytes": (content(LABELLED.replace(b"film", b"fi\0lm")), TRAIN),
    "nul.txt, only NUL bytes": (content(bytes(100_000)), READ),
    "surrogates.jsonl, lone ones": (
        content(b"".join(b'{"text": "film \\ud800 %d", "label": "\\udc00%d"}\n' % (n, n % 2) for n in range(40))),
        TRAIN,
    ),
    "surrogates.txt, lone ones as bytes": (content(b"a \xed\xa0\x80 b\n" * 40), READ),
    "empty.csv, nothing": (content(b""), TRAIN),
    "mark.csv, a byte order mark alone": (content(BOM), TRAIN),
    "cut.csv.gz, half of an archive": (lambda path: path.write_bytes(gzip.compress(LABELLED)[:60]), TRAIN),
}
QUICK = ("up.tgz, members with .. and /", "fifo.csv, without a writer", "nul.csv, NUL bytes", "empty.csv, nothing")
GROUPS = tuple(CASES)
