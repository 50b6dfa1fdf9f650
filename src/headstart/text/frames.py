"""Messages between processes: a JSON header, arrays and texts, each with its length in front (no pickling)."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

SIZES = struct.Struct("<IQ")  # bytes of the header, bytes of everything after it


@dataclass(frozen=True, slots=True)
class Frame:
    header: dict[str, Any] = field(default_factory=dict)
    arrays: list[NDArray[Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    encoded = [text.encode("utf-8") for text in frame.texts]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    arrays = [lengths, *(np.ascontiguousarray(array) for array in frame.arrays)]
    layout = {"header": frame.header, "arrays": [[array.dtype.str, array.size] for array in arrays]}
    header = json.dumps(layout).encode("utf-8")
    body = b"".join([*(array.tobytes() for array in arrays), *encoded])
    stream.write(SIZES.pack(len(header), len(body)))
    stream.write(header)
    stream.write(body)
    stream.flush()


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next message; None at the end of the stream. EOFError if the stream ends within a message."""
    sizes = stream.read(SIZES.size)
    if not sizes:
        return None
    header_size, body_size = SIZES.unpack(exactly(sizes, SIZES.size))
    layout = json.loads(exactly(stream.read(header_size), header_size))
    body = exactly(stream.read(body_size), body_size)
    arrays: list[NDArray[Any]] = []
    first = 0
    for dtype, size in layout["arrays"]:
        arrays.append(np.frombuffer(body, dtype=dtype, count=size, offset=first))
        first += arrays[-1].nbytes
    texts: list[str] = []
    for length in arrays[0].tolist():
        texts.append(body[first : first + length].decode("utf-8"))
        first += length
    return Frame(layout["header"], arrays[1:], texts)


def exactly(some: bytes, size: int) -> bytes:
    if len(some) < size:
        raise EOFError(f"the stream ended after {len(some)} of {size} bytes")
    return some
