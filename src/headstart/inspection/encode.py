"""The vectors of every line of a text in a file, written as they are computed; a stopped run goes on where it was."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Table
from headstart.encoders.base import Encoder
from headstart.errors import ConfigError, EndedElsewhereError
from headstart.inspection.sharing import Sharing, begun, help_encoding, lead_encoding, wait_for_first
from headstart.inspection.stretches import Rows
from headstart.inspection.unfinished import claimed, folder_of
from headstart.inspection.vector_files import VectorFile, file_of, lengths_of, pool_for
from headstart.pretrained import Layers, Pretrained, chosen_layers
from headstart.progress import Notice, Progress, plain
from headstart.text.lines import Lines
from headstart.training.coordination import helping, leading
from headstart.training.ranks import Alone, Ranks
from headstart.transfer.features import tensors_digest
from headstart.weights.sources import Source, open_source


@dataclass(frozen=True, slots=True)
class Encoded:
    """A finished file. lengths: of a .npy with a row per word, the file with the number of words of every text."""

    path: Path
    shape: tuple[int, ...]
    """Of all vectors as one array; what a .npy file holds."""
    texts: int
    empty: int
    """Texts without a word: a row of zeros each or, with a row per word, no row."""
    cut: int
    """Texts longer than the encoder's input, whose middle was left out."""
    lengths: Path | None


def encode(
    source: Source,
    text: str | Path,
    out: str | Path,
    *,
    layers: Layers = "top",
    pool: str | None = None,
    precision: str = "float32",
    field: str | None = None,
    ranks: Ranks | None = None,
) -> Generator[Progress | Notice, None, Encoded]:
    """Write the vectors of every line of `text` into the new file `out`, .npy, .h5 or .parquet, in constant memory.

    pool: "mean" of the words' vectors or the sequence's "first" position: row i is line i, and zeros if the line is
    empty; "words": a row for each word, and how many each line has in a second file. By default mean; .h5 has ELMo's
    layout, which is of words. layers: "top" or a number gives rows (D,), "all" or several give rows (K, D). text: - is
    standard input. field: the column of a table with the text. precision: float32, or int8, with which a BERT is faster
    and its vectors slightly rounded. Stopped or killed, the same call goes on where it was. ranks: the processes that
    share the lines (`headstart.training.ranks.joined`), which are all to see the folder of `out`; the result of each is
    that of the first.
    """
    sharing = Sharing(ranks or Alone(), Path(out))

    def opened() -> Generator[Progress | Notice, None, Encoded | None]:
        is_first = sharing.ranks.launch.is_first
        if is_first:
            # Before a download: `encode_lines` would find the same mistakes after it.
            check_out(sharing.out, pool_for(file_of(sharing.out), pool))
        elif (yield from wait_for_first(sharing)) is None:
            return None
        lines = Lines(text, field)
        if is_first:
            check_divisible(lines, sharing)
        pretrained = yield from open_source(source, precision=precision)
        return (yield from part_of(sharing, pretrained, lines, layers, pool))

    return (yield from together(sharing, opened()))


def encode_lines(
    pretrained: Pretrained,
    lines: Lines,
    out: Path,
    *,
    layers: Layers = "top",
    pool: str | None = None,
    ranks: Ranks | None = None,
) -> Generator[Progress | Notice, None, Encoded]:
    """`encode` with an encoder and lines that are open."""
    sharing = Sharing(ranks or Alone(), out)
    return (yield from together(sharing, part_of(sharing, pretrained, lines, layers, pool)))


def together(
    sharing: Sharing, job: Generator[Progress | Notice, None, Encoded | None]
) -> Generator[Progress | Notice, None, Encoded]:
    """One process's part of a job, with the result that all of them have."""
    ranks = sharing.ranks
    done = yield from (leading if ranks.launch.is_first else helping)(ranks, job)
    if done is not None:
        return done
    told: Any = ranks.published(sharing.done)
    if told is None:
        raise EndedElsewhereError("The first process was stopped, and has said so.")
    paths = {name: told[name] and Path(told[name]) for name in ("path", "lengths")}
    return Encoded(**{**told, **paths, "shape": tuple(told["shape"])})


def part_of(
    sharing: Sharing, pretrained: Pretrained, lines: Lines, layers: Layers, pool: str | None
) -> Generator[Progress | Notice, None, Encoded | None]:
    """The first process gives the result."""
    out, ranks = sharing.out, sharing.ranks
    file = file_of(out)
    pool = pool_for(file, pool)
    if ranks.launch.is_first:
        check_out(out, pool)
        check_divisible(lines, sharing)
    settings = settings_of(pretrained, file, layers, pool)
    rows = Rows(pretrained, lines, file, pool, layers)
    if not ranks.launch.is_first:
        yield from help_encoding(sharing, rows, settings)
        return None
    places = file.places(out, pool)
    with claimed(out, settings, main=list(places)[-1], resumable=lines.can_be_read_again) as part:
        if not part.reached.whole:
            with begun(sharing, part) as gathering:
                yield from lead_encoding(gathering, rows)
                if part.reached.empty == part.reached.lines:
                    part.discard()
                    raise lines.nothing_there()
                part.complete()
                for written in file.assemble(part):
                    yield Progress("writing", written, part.reached.lines, "texts")
        reached, shape = part.reached, (part.reached.rows, *settings["row"])
        part.put_in_place(places)
    lengths = lengths_of(out) if out.suffix == ".npy" and pool == "words" else None
    done = Encoded(out, shape, reached.lines, reached.empty, reached.cut, lengths)
    ranks.publish(sharing.done, plain(done))
    return done


def settings_of(pretrained: Pretrained, file: VectorFile, layers: Layers, pool: str) -> Table:
    """Everything but the text that decides what is written."""
    numbers = chosen_layers(layers, pretrained.encoder)
    D = pretrained.encoder.shape[1]
    one_layer = isinstance(layers, int) or layers == "top"
    return {
        "format": file.name,
        "encoder": f"{fingerprint(pretrained.encoder)} {pretrained.tokenizer.fingerprint}",
        "layers": numbers,
        "pool": pool,
        "row": [D] if one_layer else [len(numbers), D],
        "texts": file.keeps_texts,
    }


def fingerprint(encoder: Encoder) -> str:
    """SHA-256 of the encoder. An int8 encoder has no `state_dict`, and some of its tensors only its kernels can read;
    those follow from the others."""
    tensors = {**dict(encoder.named_parameters()), **dict(encoder.named_buffers())}
    return tensors_digest(encoder, {name: tensor for name, tensor in tensors.items() if not tensor.is_mkldnn})


def check_divisible(lines: Lines, sharing: Sharing) -> None:
    many = sharing.ranks.launch.world
    if many > 1 and not lines.can_be_read_again:
        raise ConfigError(
            f"Standard input can be read by one process only, and torchrun started {many}. Give the text as a file, or "
            "start without torchrun."
        )


def check_out(out: Path, pool: str) -> None:
    """Nothing is written over; a run that was killed at its very end may have put a second file in place."""
    file_of(out).check()
    for path in file_of(out).places(out, pool).values():
        if path.exists() and (path == out or not folder_of(out).exists()):
            raise ConfigError(f"{path}: is already there. Remove it, or give another --out.")
