"""CARD.md: what a run is, trained on what, how long, with which result."""

from __future__ import annotations

from collections.abc import Sequence

from headstart.config import Table
from headstart.training.events import Finished

WHAT = {
    "static": "Word vectors: one vector per word, whatever its context.",
    "elmo": "An ELMo: a forward and a backward LSTM language model over characters.",
    "bert": "A BERT: a transformer trained to restore hidden pieces, aware of both sides at every layer.",
}
MEANING = {
    "static": "perplexity of a word's neighbours under the softmax its objective implies; not comparable with a "
    "language model's",
    "elmo": "perplexity per word (sentence ends included, words outside the vocabulary as one class); the figure "
    "without a direction is the mean of the two",
    "bert": "perplexity and accuracy over the hidden pieces only; not comparable with a language model's",
}


def run_card(config: Table, data: Table, finished: Finished, *, complete: bool) -> str:
    kind, size = config["kind"], config.get("size")
    state = "Finished." if complete else "Not finished: go on with `--resume`."
    lines = [
        f"# {finished.out.name}: {kind}{f' ({size})' if size else ''}",
        "",
        WHAT[kind],
        "",
        f"- **Trained on** {', '.join(name.rsplit('/', 1)[-1] for name in data['sources'])}: "
        f"{data['documents']:,} documents, {data['units']:,} units, vocabulary {data['vocabulary']:,}.",
        f"- **For** {finished.steps:,} steps over {finished.units:,} units, {duration(finished.elapsed)}, "
        f"seed {config['seed']}. {state}",
        f"- **Weights** are those of step {finished.kept_step:,}.",
        "",
    ]
    if finished.scores:
        lines += ["| held out | |", "|---|---|"]
        lines += [f"| {name.replace('_', ' ')} | {score(name, value)} |" for name, value in finished.scores.items()]
        lines += ["", f"Held out: {MEANING[kind]}.", ""]
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
            WHAT[kind],
            "",
            f"- **Imported** from {record['imported']}; it was pretrained elsewhere.",
            f"- **Holds** {', '.join(record['parts'])}: {numbers:,} numbers, vocabulary {vocabulary:,}.",
            *(f"- **Note** {notice}" for notice in notices),
            "",
            f"Kept by headstart {record['headstart']}. `config.toml` has the shape, `weights.safetensors` the weights.",
            "",
        ]
    )


def score(name: str, value: float) -> str:
    if name.endswith("accuracy"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if name == "units" else f"{value:,.2f}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def task_card(results: Table) -> str:
    """CARD.md of a classifier: what it tells apart, from how many labels, with which score and spread."""
    runs = results["runs"]
    lines = [
        f"# A classifier of {len(results['classes'])} labels, from {results['source']} ({results['how']})",
        "",
        f"- **Tells apart** {', '.join(results['classes'])}.",
        f"- **Learned from** {results['labels']:,} labelled examples; {results['parameters']:,} numbers were trained.",
        f"- **Dev accuracy** {task_score(results)}, macro-F1 {100 * results['macro_f1']:.1f} %, "
        f"on {results['dev']:,} examples, which also chose when to stop.",
        f"- **Kept** is seed {results['best_seed']}.",
    ]
    mixes = {place: mix for place, mix in results["mix"].items() if len(mix["weights"]) > 1}
    lines += [f"- **Layer weights** ({place}): {mix_text(mix)}." for place, mix in mixes.items()]
    if results["forgetting"]:
        lines.append(f"- **Forgot**: {forgetting_text(results['forgetting'])}.")
    if results["truncated"]:
        lines.append(f"- **Cut short**: {results['truncated']:,} texts were longer than what it reads.")
    lines += ["", "| seed | accuracy | macro-F1 | best step | time | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {run['seed']} | {100 * run['accuracy']:.1f} % | {100 * run['macro_f1']:.1f} % | {run['best_step']:,} of "
        f"{run['steps']:,} | {duration(run['seconds'])} | {'one label only!' if run['collapsed'] else ''} |"
        for run in runs
    ]
    return "\n".join([*lines, "", "`headstart predict` and `headstart evaluate` read this folder.", ""])


def task_score(results: Table) -> str:
    """84.2 % (sd 1.1 over 3 seeds), or a warning that one seed shows no spread."""
    score = f"{100 * results['accuracy']:.1f} %"
    if results["spread"] is None:
        return f"{score} (one seed only, so its spread is not known)"
    return f"{score} (sd {100 * results['spread']:.1f} over {len(results['runs'])} seeds)"


def mix_text(mix: Table) -> str:
    """words 0.21, layer 1 0.45, layer 2 0.34; gamma 1.08."""
    weights = [f"{'words' if k == 0 else f'layer {k}'} {weight:.2f}" for k, weight in enumerate(mix["weights"])]
    return f"{', '.join(weights)}; gamma {mix['gamma']:.2f}"


def forgetting_text(forgetting: Table) -> str:
    before, after = forgetting["before"], forgetting["after"]
    return f"the encoder's held-out perplexity went from {before:,.1f} to {after:,.1f} ({after / before:.2f} times)"
