"""CARD.md, the model card: what a run is, trained on what, how long, with which result."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from headstart.config import Table
from headstart.encoders.registry import ENCODERS
from headstart.pretrained import Pretrained, weights_of
from headstart.pretraining.events import Finished
from headstart.report.wording import duration, score

POINT = "- **"
LOG_NOTE = "`log.jsonl` every step, "


def run_card(config: Table, data: Table, finished: Finished, *, complete: bool) -> str:
    kind, size = config["kind"], config.get("size")
    state = "Finished." if complete else "Not finished: go on with `--resume`."
    lines = [
        f"# {finished.out.name}: {kind}{f' ({size})' if size else ''}",
        "",
        ENCODERS[kind].description,
        "",
        *([f"- **Went on from** {config['start'].rsplit('/', 1)[-1]}."] if config.get("start") else []),
        f"- **Trained on** {', '.join(name.rsplit('/', 1)[-1] for name in data['sources'])}: "
        f"{data['documents']:,} documents, {data['units']:,} {ENCODERS[kind].units}, "
        f"vocabulary {data['vocabulary']:,}.",
        f"- **For** {finished.steps:,} steps over {finished.units:,} units, {duration(finished.elapsed)}, "
        f"seed {config['seed']}. {state}",
        f"- **On** {data['machine']}.",
        *(f"- **Warning:** {shortfall}" for shortfall in finished.shortfalls),
        f"- **Weights** are those of step {finished.kept_step:,}.",
        "",
    ]
    if finished.scores:
        lines += ["| held out | |", "|---|---|"]
        lines += [f"| {name.replace('_', ' ')} | {score(name, value)} |" for name, value in finished.scores.items()]
        lines += ["", f"Held out: {ENCODERS[kind].perplexity_note}.", ""]
    else:
        lines += ["Nothing was held out, so there is no score.", ""]
    lines += [
        f"Made by headstart {data['headstart']} with torch {data['torch']}. `config.toml` holds every setting, "
        f"{LOG_NOTE}`weights.safetensors` the weights.",
        "",
    ]
    return "\n".join(lines)


def import_record(pretrained: Pretrained) -> Table:
    """The entries of [data] that say where weights that were trained elsewhere come from."""
    parts = ["encoder", *sorted(pretrained.heads)]
    return {"imported": pretrained.name, "parts": parts, "headstart": version("headstart")}


def imported_card(name: str, pretrained: Pretrained, record: Table) -> str:
    """CARD.md of weights that were trained elsewhere."""
    numbers = sum(tensor.numel() for tensor in weights_of(pretrained).values())
    return "\n".join(
        [
            f"# {name}: {pretrained.kind}",
            "",
            ENCODERS[pretrained.kind].description,
            "",
            f"- **Imported** from {record['imported']}; it was pretrained elsewhere.",
            f"- **Holds** {', '.join(record['parts'])}: {numbers:,} numbers, vocabulary {len(pretrained.tokenizer):,}.",
            *(f"- **Note** {notice}" for notice in pretrained.notices),
            "",
            f"Kept by headstart {record['headstart']}. `config.toml` has the shape, `weights.safetensors` the weights.",
            "",
        ]
    )


def compact_card(card: str, loss: str, notes: Mapping[str, str]) -> str:
    """The card of a run with the points that a compact copy adds: what it lost, and `notes` by their titles."""
    added = [f"- **Compact**: {loss}", *(f"- **{title}**: {text}" for title, text in notes.items())]
    lines = card.replace(LOG_NOTE, "").splitlines()  # a compact run has no log
    place = max((number for number, line in enumerate(lines, 1) if line.startswith(POINT)), default=len(lines))
    return "\n".join([*lines[:place], *added, *lines[place:], ""])
