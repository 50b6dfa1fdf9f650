"""The index of a text's occurrences: planned, built part by part, opened. Its files: see `occurrence_files`."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from headstart.atomic import PARTIAL, locked, make_folder, write_text
from headstart.config import Table, cache_home
from headstart.errors import ConfigError, DataError, HeadstartError
from headstart.inspection.occurrence_files import (
    ADVICE,
    CENTRE,
    IDENTITY,
    LOCK,
    PLACE_BYTES,
    REMOVE,
    VECTORS,
    Committed,
    Files,
    broken,
    check_files,
    read_centre,
    read_committed,
    with_sums,
    write_centre,
    write_committed,
)
from headstart.inspection.occurrence_parts import next_part, write_part
from headstart.inspection.occurrence_search import (
    LARGEST_EXACT,
    OccurrenceIndex,
    build_search,
    can_search,
    centre_of,
    search_file,
)
from headstart.inspection.occurrence_text import read_sentences
from headstart.pretrained import Layers, Pretrained, chosen_layers
from headstart.progress import Notice, Progress
from headstart.text import sentences
from headstart.text.building import cache_key
from headstart.text.documents import TextConfig, content_key, discover, settle_layout
from headstart.transfer.features import encoder_fingerprint

LAYOUT = 1
"""Goes up when the files change, so that older folders are not read."""
WORDS = 1_000_000
"""Occurrences indexed, by default."""
PART = 1 << 16
"""Occurrences added at a time: a killed process loses at most so many, some seconds of work."""
SENTENCE_BYTES, LENGTH_BYTES = 12, 4
"""Of one occurrence: its share of its sentence, and its distance from the mean."""
BYTES_PER_WORD = 5.5
UNPACKED = 2.5
"""Of English text: bytes of a word with its space, and how much larger a .gz file is unpacked."""
NO_LIBRARY = "Every vector is compared. With faiss a search is quicker: pip install 'headstart[index]'"


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """What is to be indexed, and where. layer: its number. texts: empty, to use an index as it is."""

    pretrained: Pretrained
    layer: int
    texts: tuple[Path, ...]
    reading: TextConfig
    words: int
    folder: Path
    identity: Table = field(repr=False)

    @property
    def width(self) -> int:
        return self.pretrained.encoder.shape[1]

    @property
    def committed(self) -> Committed:
        return read_committed(self.folder)


def occurrence_index(
    pretrained: Pretrained,
    among: Sequence[str | Path] = (),
    *,
    layer: Layers = "top",
    words: int = WORDS,
    folder: str | Path | None = None,
    field: str | None = None,
    cache: Path | None = None,
) -> Generator[Progress | Notice, None, OccurrenceIndex]:
    """Open the index of a text, and build what it lacks; a killed process goes on from its last part.

    among: files, folders or patterns. words: occurrences to index, from the beginning of the text; a larger number
    later adds to what is there. folder: of the index, by default one in the cache; with `among` empty, the index there
    is used as it is. field: the column of tables with the text.
    """
    plan = plan_of(pretrained, among, layer, words, folder, field, cache)
    damage = damage_of(plan)
    if damage is not None and folder is not None:
        raise damage
    if among and (damage is not None or not is_whole(plan)):
        try:
            make_folder(plan.folder)
            with locked(plan.folder / LOCK, f"{plan.folder}: another process builds this index. Wait until it ends."):
                if damage is not None:
                    empty_if_damaged(plan)
                yield from build(plan)
        except OSError as error:
            raise DataError(f"{plan.folder}: cannot be written ({error.strerror}). {ADVICE}") from error
    if needs_library(plan):
        yield Notice(NO_LIBRARY)
    return open_index(plan)


def plan_of(
    pretrained: Pretrained,
    among: Sequence[str | Path],
    layer: Layers,
    words: int,
    folder: str | Path | None,
    field: str | None,
    cache: Path | None,
) -> IndexPlan:
    if words < 1:
        raise ConfigError(f"--words is a count of one or more; got {words}.")
    if not among and folder is None:
        raise ConfigError("There is no text to search: give --among TEXT, or the --index of one.")
    encoder = pretrained.encoder
    (number,) = chosen_layers(layer, encoder)
    identity: Table = {
        "layout": LAYOUT,
        "encoder": f"{encoder.kind} {encoder_fingerprint(encoder)} {pretrained.tokenizer.fingerprint}",
        "layer": number,
    }
    texts, reading = tuple(discover(among)) if among else (), TextConfig(field=field)
    if texts:
        reading, _ = settle_layout(texts, reading)
        read_as = {"sentences": sentences.RULE, "field": field, "one_per_line": reading.one_per_line}
        identity["text"] = cache_key(content=content_key(texts), **read_as)
    home = (cache or cache_home()) / "occurrences" / cache_key(**identity)[:32]
    return IndexPlan(pretrained, number, texts, reading, words, Path(folder) if folder else home, identity)


def damage_of(plan: IndexPlan) -> HeadstartError | None:
    """What is wrong with the files, or with the folder for them. The vectors of a large index are too many to read."""
    try:
        check_identity(plan)
        done = plan.committed
        check_files(plan.folder, plan.width, done, {VECTORS} if done.occurrences > LARGEST_EXACT else ())
        if (plan.folder / CENTRE).is_file():
            read_centre(plan.folder)
    except HeadstartError as error:
        return error
    return None


def empty_if_damaged(plan: IndexPlan) -> None:
    """Unless another process has made it anew since."""
    damage = damage_of(plan)
    if damage is None:
        return
    why = str(damage).removesuffix(REMOVE)
    logging.getLogger("headstart").warning(f"{why} This index is in the cache, and is made anew.")
    for path in plan.folder.iterdir():
        if path.name != LOCK:
            path.unlink()


def check_identity(plan: IndexPlan) -> None:
    """Refuse a folder that holds anything but the index of this encoder, layer and text."""
    path = plan.folder / IDENTITY
    if not path.exists():
        if not plan.texts:
            raise DataError(f"{plan.folder}: holds no index. Give --among TEXT to build one there.")
        held = [entry.name for entry in plan.folder.iterdir()] if plan.folder.is_dir() else []
        if any(name != LOCK and not name.endswith(PARTIAL) for name in held):
            raise DataError(f"{plan.folder}: is not empty and holds no index. Give a new folder as --index.")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        other = [name for name, value in plan.identity.items() if found[name] != value]
        described = f"{found['name']}, layer {found['layer']}, {', '.join(found['files'])}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise broken(path, error) from error
    if other:
        raise DataError(f"{plan.folder}: is the index of another {other[0]}: it has {described}. Give another --index.")


def is_whole(plan: IndexPlan) -> bool:
    """Whether there is nothing left to do, so that the folder need not be written to."""
    done = plan.committed
    centred = (plan.folder / CENTRE).is_file() and read_centre(plan.folder).occurrences == done.occurrences
    return centred and is_enough(done, plan.words) and (needs_library(plan) or not lacks_search(plan))


def is_enough(done: Committed, words: int) -> bool:
    return done.ended or done.occurrences >= words


def lacks_search(plan: IndexPlan) -> bool:
    n = plan.committed.occurrences
    return n > LARGEST_EXACT and not search_file(plan.folder, n).is_file()


def needs_library(plan: IndexPlan) -> bool:
    return lacks_search(plan) and not can_search()


def build(plan: IndexPlan) -> Generator[Progress | Notice, None, None]:
    for left in plan.folder.glob(f"*{PARTIAL}"):  # by a killed process
        left.unlink()
    if not is_enough(plan.committed, plan.words):
        yield announced(plan)
        yield from add_parts(plan)
    done = plan.committed
    if not done.occurrences:
        raise DataError(f"{plan.texts[0]}: has no sentence that {plan.pretrained.name} can read.")
    if done.too_long:
        yield Notice(f"Sentences that are longer than what this encoder reads, and were left out: {done.too_long:,}.")
    if not done.ended:
        yield Notice(f"The first {done.occurrences:,} words of the text are searched; a larger --words adds to them.")
    files = Files(plan.folder, plan.width, done)
    centre = yield from centre_of(files.vectors)
    write_centre(plan.folder, centre)
    if lacks_search(plan) and can_search():
        yield from build_search(plan.folder, files.vectors, centre)


def announced(plan: IndexPlan) -> Notice:
    """Where the index is and what it takes; a disk without so much room is an error."""
    done = plan.committed
    unpacked = sum(path.stat().st_size * (UNPACKED if path.suffix == ".gz" else 1) for path in plan.texts)
    words = max(0, min(plan.words, round(unpacked / BYTES_PER_WORD)) - done.occurrences)
    each = 2 * plan.width + PLACE_BYTES + SENTENCE_BYTES + LENGTH_BYTES
    if words + done.occurrences > LARGEST_EXACT:
        each += plan.width + 8  # a byte for each number and the occurrence's own number, for faiss
    needed, free = words * each, shutil.disk_usage(plan.folder).free
    if needed > free:
        raise DataError(
            f"{plan.folder}: an index of {words:,} words needs about {needed / 1e9:,.1f} GB there, and "
            f"{free / 1e9:,.1f} GB are free. Make room, give a smaller --words, or another --index."
        )
    going_on = f"going on from {done.occurrences:,} words, " if done.occurrences else ""
    return Notice(f"{plan.folder}: {going_on}indexing about {words:,} words, which take {needed / 1e9:,.2f} GB.")


def add_parts(plan: IndexPlan) -> Generator[Progress, None, None]:
    """Add parts of the text until there are enough, each committed when it is on disk."""
    done, read = plan.committed, 0

    def on_bytes(n: int) -> None:
        nonlocal read
        read = n

    if not (plan.folder / IDENTITY).exists():
        described = {"name": plan.pretrained.name, "files": [path.name for path in plan.texts], **plan.identity}
        write_text(plan.folder / IDENTITY, json.dumps(described, indent=1, ensure_ascii=False), ADVICE)
    in_all = sum(path.stat().st_size for path in plan.texts)
    text = islice(read_sentences(plan.texts, plan.reading, on_bytes), done.read, None)
    before = done.occurrences
    while not is_enough(done, plan.words):
        part = next_part(plan.pretrained, text, min(PART, plan.words - done.occurrences))
        counts = part.after(done)
        expected = counts.occurrences * in_all // max(1, read)
        total = counts.occurrences if part.ended else min(plan.words, max(expected, counts.occurrences))
        for share in write_part(plan.folder, plan.pretrained, plan.layer, done, part):
            added = done.occurrences + round(share * part.occurrences) - before
            yield Progress("indexing", added, total - before, "words")
        done = with_sums(plan.folder, plan.width, done, counts)
        write_committed(plan.folder, done)


def open_index(plan: IndexPlan) -> OccurrenceIndex:
    """The index as its last whole state is."""
    if not (plan.folder / CENTRE).is_file():
        raise DataError(f"{plan.folder}: this index is not finished. Give --among TEXT to go on with it.")
    done, centre = plan.committed, read_centre(plan.folder)
    try:
        files = Files(plan.folder, plan.width, done)
    except OSError as error:
        raise broken(plan.folder, error) from error
    n = centre.occurrences
    return OccurrenceIndex(
        folder=plan.folder,
        layer=plan.layer,
        vectors=files.vectors[:n],
        places=files.places[:n],
        text=files.text,
        ends=files.ends,
        centre=centre,
    )
