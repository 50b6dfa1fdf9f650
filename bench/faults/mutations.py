"""Changes to the bytes of a valid file, each following from its seed."""

from __future__ import annotations

import gzip
import json
import random
import re
import struct
import tomllib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import tomli_w

Mutation = Callable[[bytes, random.Random], bytes]
DIGITS = re.compile(rb"-?\d+(\.\d+)?")
HUGE = (b"1e999", b"-1", b"0", b"9" * 40, b"9" * 5_000, b"NaN", b"2147483648", b"18446744073709551615", b"1e-320")
DEPTH = 100_000
OPENINGS = (b"[", b'{"a":', b"(", b"(2 ", b"a.", b"[[", b"#")
STRANGE = (
    b"\x00",
    b"\x00" * 4_096,
    b"\xff\xfe",
    b"\xed\xa0\x80",  # a lone surrogate in UTF-8
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\x1b]0;x\x07",
    b"\r",
    b"\n\n",
    b"\t",
    b'"',
    b"\\",
    b"null",
    b"{}",
    b"[]",
    b"true",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    3,
    2**31,
    2**63,
    10**30,
    0.5,
    1e308,
    "",
    " ",
    "x",
    "off",
    "\ud800",
    "a\x00b",
    "y" * 100_000,
    [],
    {},
    [[]],
    [1, "x"],
    {"a": None},
)
"""In place of a value in JSON or TOML."""
LENGTH = struct.Struct("<Q")
"""What a safetensors file begins with: the bytes of its header, which is JSON."""
FIRST = 512
"""Half of all places are among so many first bytes: formats have their headers there."""


def place(content: bytes, rng: random.Random) -> int:
    return rng.randrange(min(len(content), FIRST) + 1 if rng.random() < 0.5 else len(content) + 1)


def piece(content: bytes, rng: random.Random) -> tuple[int, int]:
    """Where a piece of the content begins and ends."""
    first = place(content, rng)
    return first, min(len(content), first + rng.choice((1, 4, 16, 64, 1_024)))


def bits_flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        at = min(place(content, rng), len(changed) - 1)
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def bytes_replaced(content: bytes, rng: random.Random) -> bytes:
    first, last = piece(content, rng)
    return content[:first] + rng.randbytes(last - first) + content[last:]


def cut_short(content: bytes, rng: random.Random) -> bytes:
    return content[: place(content, rng)]


def cut_out(content: bytes, rng: random.Random) -> bytes:
    first, last = piece(content, rng)
    return content[:first] + content[last:]


def repeated(content: bytes, rng: random.Random) -> bytes:
    first, last = piece(content, rng)
    return content[:last] + content[first:last] * rng.choice((1, 2, 100)) + content[last:]


def moved(content: bytes, rng: random.Random) -> bytes:
    first, last = piece(content, rng)
    rest = content[:first] + content[last:]
    at = place(rest, rng)
    return rest[:at] + content[first:last] + rest[at:]


def huge_number(content: bytes, rng: random.Random) -> bytes:
    numbers = list(DIGITS.finditer(content))
    if not numbers:
        return strange_bytes(content, rng)
    number = rng.choice(numbers)
    return content[: number.start()] + rng.choice(HUGE) + content[number.end() :]


def deeply_nested(content: bytes, rng: random.Random) -> bytes:
    at = place(content, rng)
    return content[:at] + rng.choice(OPENINGS) * rng.choice((3, 1_000, DEPTH)) + content[at:]


def strange_bytes(content: bytes, rng: random.Random) -> bytes:
    first, last = piece(content, rng)
    return content[:first] + rng.choice(STRANGE) + content[last if rng.random() < 0.5 else first :]


def values_swapped(content: bytes, rng: random.Random) -> bytes:
    """Two values of a text format change places, so that keys have values of another type."""
    values = list(re.finditer(rb'"[^"\n]*"|[\w.+-]+|\[[^\[\]\n]*\]', content[:100_000]))
    if len(values) < 2:
        return bits_flipped(content, rng)
    first, second = sorted(rng.sample(values, 2), key=lambda found: found.start())
    middle = content[first.end() : second.start()]
    return content[: first.start()] + second[0] + middle + first[0] + content[second.end() :]


def lines_mixed(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    one = rng.randrange(len(lines))
    changes = (lambda: lines.pop(one), lambda: lines.insert(one, rng.choice(lines)), lambda: rng.shuffle(lines))
    rng.choice(changes)()
    return b"\n".join(lines)


def value_replaced(content: bytes, rng: random.Random) -> bytes:
    """The file stays JSON, JSON lines, TOML or safetensors, with another value or without one of its keys."""
    for change in (json_changed, json_line_changed, toml_changed, header_changed):
        with suppress(ValueError, RecursionError, TypeError, AttributeError, struct.error):
            return change(content, rng)
    return huge_number(content, rng)


def json_changed(content: bytes, rng: random.Random) -> bytes:
    return json.dumps(changed_inside(json.loads(content), rng)).encode()


def json_line_changed(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines()
    one = rng.randrange(len(lines))
    lines[one] = json_changed(lines[one], rng)
    return b"\n".join(lines) + b"\n"


def toml_changed(content: bytes, rng: random.Random) -> bytes:
    if len(content) > DEPTH:
        raise ValueError("nested by an earlier change, which tomllib would take minutes to read")
    return tomli_w.dumps(changed_inside(tomllib.loads(content.decode()), rng)).encode()


def header_changed(content: bytes, rng: random.Random) -> bytes:
    (length,) = LENGTH.unpack_from(content)
    header = json_changed(content[LENGTH.size : LENGTH.size + length], rng)
    return LENGTH.pack(len(header)) + header + content[LENGTH.size + length :]


def changed_inside(value: Any, rng: random.Random) -> Any:
    """The value with one change at a random depth."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        if rng.random() < 0.15:
            del value[key]
        elif rng.random() < 0.1:
            value[key] = value[rng.choice(keys)]
        else:
            value[key] = changed_inside(value[key], rng)
        return value
    return rng.choice(VALUES)


MUTATIONS: tuple[Mutation, ...] = (
    bits_flipped,
    bytes_replaced,
    cut_short,
    cut_out,
    repeated,
    moved,
    huge_number,
    deeply_nested,
    strange_bytes,
    values_swapped,
    lines_mixed,
)
OF_VALUES = 0.4
"""How often a change keeps the syntax: most others end at the first line of a reader."""


def mutated(content: bytes, seed: str, packed: bool) -> bytes:
    """One to three changes. packed: of a file in gzip; half of the changes are then made to what is in it."""
    rng = random.Random(seed)
    inside = packed and rng.random() < 0.5
    changed = gzip.decompress(content) if inside else content
    for _ in range(rng.choice((1, 1, 2, 3))):
        change = value_replaced if rng.random() < OF_VALUES else rng.choice(MUTATIONS)
        changed = change(changed, rng) or b"\n"
    return gzip.compress(changed, 1, mtime=0) if inside else changed
