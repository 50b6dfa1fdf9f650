"""Film reviews in the layout of aclImdb: a folder or archive with pos/ and neg/, one review per file."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from headstart.errors import DataError
from headstart.text.files import CHUNK_BYTES, Source, decode

LABELS = ("neg", "pos")
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read_folder(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(where, review, label) of each file, sorted by name, from pos/ and neg/ in the folder or in its train/."""
    for candidate in (folder, folder / "train"):
        if all((candidate / label).is_dir() for label in LABELS):
            break
    else:
        raise DataError(
            f"{folder}: this folder holds no examples: it has neither pos/ and neg/ nor train/pos/ and train/neg/, as "
            f"aclImdb has. Give a folder that does, or one file."
        )
    for label in LABELS:
        for path in reviews_in(candidate / label):
            yield str(path), review(read_bytes(path), str(path)), label


def read_archive(path: Path) -> Iterator[tuple[str, str, str]]:
    """(where, review, label) of each member, sorted by name. If there is a train/, only that is read.

    Nothing is extracted to the disk, so a member's path can do no harm.
    """
    parts: dict[PurePosixPath, dict[PurePosixPath, bytes]] = {}
    with Source(path) as source:
        for name, content in members(source):
            parts.setdefault(name.parent.parent, {})[name] = content
    chosen = [part for part in parts if part.name == "train"] or list(parts)
    if not chosen:
        raise DataError(f"{path}: holds no review. Its files need names such as aclImdb/train/pos/0_9.txt.")
    if len(chosen) > 1:
        there = ", ".join(sorted(map(str, chosen)))
        raise DataError(f"{path}: holds more than one folder of reviews: {there}. Pack the one you mean by itself.")
    reviews = parts[chosen[0]]
    for name in sorted(reviews):
        where = f"{path}, {name}"
        yield where, review(reviews[name], where), name.parent.name


def members(source: Source) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Names and contents of the reviews in an archive, in one pass."""
    try:
        # Stream mode needs only read(), and that of Source reports a damaged gzip in our words.
        with tarfile.open(fileobj=source, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                name = PurePosixPath(member.name)
                file = archive.extractfile(member) if member.isreg() and is_review(name) else None
                if file is not None:
                    yield name, file.read()
    except tarfile.TarError as error:
        raise DataError(f"{source.path}: not a tar archive, or cut short ({error}). Fetch or pack it again.") from error
    # The gzip checksum comes after the last member: read to the end to verify it.
    while source.read(CHUNK_BYTES):
        pass


def is_review(path: PurePosixPath | Path) -> bool:
    return path.suffix == ".txt" and path.parent.name in LABELS and not path.name.startswith(".")


def reviews_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if is_review(path))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}).") from error


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error


def review(content: bytes, where: str) -> str:
    return LINE_BREAK.sub(" ", decode(content, where, "FILE"))
