"""An open text file: gunzipped, decoded from UTF-8, in chunks of whole lines or line by line."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from headstart.errors import DataError

# Small enough that the allocator reuses the same memory; with larger chunks the heap slowly grows.
CHUNK_BYTES = 1 << 16
LONGEST_LINE = 64 << 20
BOMB_BYTES, BOMB_RATIO = 256 << 20, 200
"""A packed file that unpacks to more than both is refused: text is packed to a third or a tenth of its size."""
BOM = b"\xef\xbb\xbf"
# UTF-32's little-endian mark begins with UTF-16's, so it is tried first.
OTHER_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
SNIFFED_BYTES = 1024


class Source:
    """A file opened for reading, unpacked if its name ends in .gz or .tgz, with its position on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 0  # number of the last line returned, counted from 1
        self._unpacked = 0
        check_regular(path)
        try:
            self._raw = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
        packed = path.name.lower().endswith((".gz", ".tgz"))
        self.file: IO[bytes] = gzip.GzipFile(fileobj=self._raw) if packed else self._raw  # type: ignore[assignment]

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.file.close()
        self._raw.close()

    def position(self) -> int:
        """Bytes of the (packed) file read so far."""
        return min(self._raw.tell(), self.size)

    def chunks(self) -> Iterator[str]:
        """The text in pieces of whole lines."""
        parts: list[bytes] = []
        length = 0
        first = True
        while some := self.read(CHUNK_BYTES):
            some, first = (some.removeprefix(BOM), False) if first else (some, False)
            cut = some.rfind(b"\n") + 1
            if cut:
                yield self._decoded(b"".join([*parts, some[:cut]]))
                parts, length = [], 0
            parts.append(some[cut:])
            length += len(some) - cut
            if length > LONGEST_LINE:
                raise self._too_long()
        if length:
            yield self._decoded(b"".join(parts))

    def lines(self) -> Iterator[str]:
        """The text line by line, each with its line break. A byte order mark before the first is dropped."""
        while some := self.read(LONGEST_LINE + 1, whole_line=True):
            if len(some) > LONGEST_LINE:
                raise self._too_long()
            yield self._decoded(some.removeprefix(BOM) if self.line == 0 else some)

    def _decoded(self, some: bytes) -> str:
        """Whole lines as text; advances the line number."""
        if self.line == 0 and (encoding := other_encoding(some)):
            raise DataError(not_utf8(str(self.path), encoding, self.path.name))
        try:
            text = some.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.line + some.count(b"\n", 0, error.start) + 1
            raise DataError(not_utf8(f"{self.path}:{line}", some[error.start], self.path.name)) from error
        self.line += some.count(b"\n") + (not some.endswith(b"\n"))
        return text

    def read(self, most: int, whole_line: bool = False) -> bytes:
        if most < 0 and isinstance(self.file, gzip.GzipFile):
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        try:
            some = self.file.readline(most) if whole_line else self.file.read(most)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.path}: damaged or cut short ({error}). Check it with gzip -t, and download or pack it again."
            ) from error
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror}).") from error
        self._unpacked += len(some)
        is_packed = self._unpacked > BOMB_BYTES and isinstance(self.file, gzip.GzipFile)
        if is_packed and self._unpacked > BOMB_RATIO * self._raw.tell():
            raise DataError(
                f"{self.path}: unpacks to more than {BOMB_RATIO} times its size, which no text does. If it is right, "
                f"unpack it with gunzip and give the file."
            )
        return some

    def _too_long(self) -> DataError:
        return DataError(
            f"{self.path}:{self.line + 1}: this line is longer than {LONGEST_LINE >> 20} MB. Break the text into lines."
        )


def check_regular(path: Path) -> None:
    """Refuse pipes and devices: a file is read several times, and a pipe without a writer would be waited for."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(f"{path}: is a pipe or a device, not a file. Save what it gives as a file first.")


def other_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32 if a file begins so, by its byte order mark or its zero bytes; None: neither.

    Latin letters in UTF-16 have a zero byte each, all at even or all at odd places. UTF-8 accepts zero bytes, so such
    a file would otherwise be read as text.
    """
    for mark, name in OTHER_BOMS.items():
        if start.startswith(mark):
            return name
    sample = start[:SNIFFED_BYTES]
    even, odd = sample[::2], sample[1::2]
    if len(odd) >= 2 and odd.count(0) > 0.4 * len(odd) and even.count(0) < 0.1 * len(even):
        return "UTF-16LE"
    if len(even) >= 2 and even.count(0) > 0.4 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "UTF-16BE"
    return None


def not_utf8(where: str, found: str | int, name: str) -> str:
    """The sentence for a file in another encoding. found: the encoding, or the byte that is not UTF-8."""
    if isinstance(found, str):
        return f"{where}: is {found}, but UTF-8 is expected. Convert it with: iconv -f {found} -t UTF-8 {name}"
    return (
        f"{where}: not UTF-8 (byte 0x{found:02x}). Convert the file first; if it is Latin-1, with: "
        f"iconv -f LATIN1 -t UTF-8 {name}"
    )


def decode(content: bytes, where: str, name: str) -> str:
    """A whole small file as text."""
    if encoding := other_encoding(content):
        raise DataError(not_utf8(where, encoding, name))
    try:
        return content.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(where, content[error.start], name)) from error
