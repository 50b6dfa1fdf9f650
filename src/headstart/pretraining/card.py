"""CARD.md, the model card: what a run is, trained on what, how long, with which result."""

from __future__ import annotations

from collections.abc import Sequence

from headstart.config import Table
from headstart.encoders.registry import ENCODERS
from headstart.pretraining.events import Finished
from headstart.report.wording import duration, score


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
        f"{data['documents']:,} documents, {data['units']:,} units, vocabulary {data['vocabulary']:,}.",
        f"- **For** {finished.steps:,} steps over {finished.units:,} units, {duration(finished.elapsed)}, "
        f"seed {config['seed']}. {state}",
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
        f"`log.jsonl` every step, `weights.safetensors` the weights.",
        "",
    ]
    return "\n".join(lines)


def imported_card(name: str, kind: str, vocabulary: int, numbers: int, record: Table, notices: Sequence[str]) -> str:
    """CARD.md of weights that were trained elsewhere."""
    return "\n".join(
        [
            f"# {name}: {kind}",
            "",
            ENCODERS[kind].description,
            "",
            f"- **Imported** from {record['imported']}; it was pretrained elsewhere.",
            f"- **Holds** {', '.join(record['parts'])}: {numbers:,} numbers, vocabulary {vocabulary:,}.",
            *(f"- **Note** {notice}" for notice in notices),
            "",
            f"Kept by headstart {record['headstart']}. `config.toml` has the shape, `weights.safetensors` the weights.",
            "",
        ]
    )
