"""The models of the house: from three finished runs to the folders that come with the package, and their entries.

    python -m bench.house --runs FOLDER --text WHAT --licence NAME --held-out TEXT ... [--precision int8|float16]

FOLDER holds the finished runs words-mini, elmo-mini and bert-mini. Each is checked against its recipe, written as a
compact run into src/headstart/house, and measured on the held-out text before and after. Standard output gets their
part of src/headstart/weights/catalogue.toml.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.atomic import sha256_of
from headstart.config import cache_home, overlay, read_toml, resolve, to_toml
from headstart.errors import ConfigError, HeadstartError
from headstart.pretrained import Pretrained, load_run
from headstart.pretraining.compact import PRECISION, CompactLoss, loss_text, write_compact
from headstart.pretraining.held_out import FinishedRun
from headstart.pretraining.pretrain import flat, with_length
from headstart.progress import result_of
from headstart.training.machine import machine
from headstart.training.run import RunDirectory

ROOT = Path(__file__).parents[1]
HOUSE = "house"
WORDS = "words-mini"
MODELS = {WORDS: "static", "elmo-mini": "elmo", "bert-mini": "bert"}
"""Name -> the kind that `headstart pretrain` makes."""
MOST_BYTES = 30_000_000
"""Of all of them together."""
OF_THE_TEXT = ("text.", "objective.workers", "tokenizer.size", "tokenizer.most")
"""Settings that follow from the text or the machine; the size of the vocabulary is compared by itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    sizes: dict[str, int] = {}
    stanzas: list[str] = []
    for name in given.only:
        try:
            loss = made(name, given)
        except HeadstartError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        folder = given.out / name
        sizes[name] = sum(path.stat().st_size for path in folder.iterdir())
        stanzas.append(stanza(name, load_run(folder), folder, given.licence, sizes[name]))
        print(f"{name}: {loss_text(loss)}", file=sys.stderr)
    total = sum(sizes.values())
    too_much = "" if total <= MOST_BYTES else f", more than the {MOST_BYTES:,} that the package has room for"
    print(f"{total:,} bytes in all{too_much}.", file=sys.stderr)
    print("\n".join(stanzas))
    return 1 if too_much else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.house", description=__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="folder of the finished runs")
    parser.add_argument("--text", required=True, help="what they were pretrained on, for the cards")
    parser.add_argument("--licence", required=True, help="of the models")
    parser.add_argument("--held-out", nargs="+", required=True, help="text to measure them on, before and after")
    parser.add_argument("--precision", default=PRECISION, help="of the matrices: int8 or float16")
    parser.add_argument("--only", choices=MODELS, nargs="+", default=list(MODELS))
    parser.add_argument("--recipes", type=Path, default=ROOT / "recipes")
    parser.add_argument("--out", type=Path, default=ROOT / "src/headstart" / HOUSE)
    return parser.parse_args(arguments)


def made(name: str, given: argparse.Namespace) -> CompactLoss:
    """The compact run of one model, in its place."""
    run, recipe = given.runs / name, given.recipes / f"{name}.toml"
    finished = FinishedRun.open(run)
    check_recipe(finished, recipe)
    command = f"headstart pretrain {MODELS[name]} TEXT --out {name} --config recipes/{name}.toml"
    notes = {
        "Text": f"{given.text}{words_of(finished, given.runs)}",
        "Licence": given.licence,
        "Made with": f"`{command}`",
    }
    if "machine" not in finished.data:
        notes = {"On": machine(), **notes}
    return result_of(
        write_compact(
            load_run(run), run, given.out / name, precision=given.precision, held_out=given.held_out, notes=notes,
            cache=cache_home(),
        )
    )  # fmt: skip


def words_of(finished: FinishedRun, runs: Path) -> str:
    """How many words the text has, which a BERT's own record counts in pieces."""
    words = RunDirectory(runs / WORDS).read_config()["data"]
    return f" ({words['units']:,} words)" if words["content"] == finished.data["content"] else ""


def check_recipe(finished: FinishedRun, recipe: Path) -> None:
    """The recipe that the card names is the one that made the run."""
    table = read_toml(recipe)
    pretraining = finished.pretraining
    defaults = with_length(pretraining.defaults(None, table), table)
    wanted = resolve(pretraining.config, overlay(defaults, table), str(recipe))
    had, asked = comparable(finished.config.model_dump()), comparable(wanted.model_dump())
    for key in sorted(had.keys() | asked.keys()):
        if had.get(key) != asked.get(key):
            raise ConfigError(
                f"{finished.path}: '{key}' is {had.get(key)!r}, and {recipe} gives {asked.get(key)!r}. "
                "Change the recipe to what made the run."
            )
    tokenizer = table.get("tokenizer", {})
    most, found = tokenizer.get("size", tokenizer.get("most")), finished.data["vocabulary"]
    if most is not None and found > most:
        raise ConfigError(f"{finished.path}: has a vocabulary of {found:,}, and {recipe} gives {most:,}.")


def comparable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without what depends on the text; word vectors by their name, wherever the run found them."""
    leaves = {key: value for key, value in flat(settings).items() if not key.startswith(OF_THE_TEXT)}
    return {**leaves, "vectors": leaves.get("vectors") and Path(leaves["vectors"]).name}


def stanza(name: str, pretrained: Pretrained, folder: Path, licence: str, size: int) -> str:
    """The entry in catalogue.toml."""
    K, D = pretrained.encoder.shape
    layers = f"{K - 1} layers of {D}" if K > 1 else f"{D} dimensions"
    entry = {
        "kind": pretrained.kind,
        "what": f"{pretrained.encoder.title}: {layers}, {len(pretrained.tokenizer):,} {pretrained.encoder.units}",
        "licence": licence,
        "size": size,
        "package": f"{HOUSE}/{name}",
        "files": {path.name: sha256_of(path) for path in sorted(folder.iterdir())},
    }
    return to_toml({name: entry})


if __name__ == "__main__":
    raise SystemExit(main())
