"""CARD.md of a task model: what it answers, from how many labelled examples, with which score and spread."""

from __future__ import annotations

from headstart.report.results import Forgetting, LayerWeights, Mixes, Run, TransferResults
from headstart.report.wording import duration, percent, score_name


def task_card(results: TransferResults) -> str:
    labels = f"{len(results.classes)} labels, " if results.classes else ""
    lines = [
        f"# {results.task}: {labels}from {results.source} ({results.how})",
        "",
        *([f"- **Labels**: {', '.join(results.classes)}."] if results.classes else []),
        f"- **Trained on** {results.labels:,} labelled examples; {results.parameters:,} trained parameters.",
        f"- **Dev {score_text(results)}**, on {results.dev:,} examples, which also chose when to stop.",
    ]
    if results.baseline is not None:
        lines.append(f"- **Baseline**: {results.baseline.title}, {percent(results.baseline.score)}.")
    lines.append(f"- **Kept**: seed {results.best_seed}.")
    lines += [f"- **Layer weights** ({place}): {mix_text(mix)}." for place, mix in learned(results.mix).items()]
    if results.forgetting is not None:
        lines.append(f"- **Forgetting**: {forgetting_text(results.forgetting)}.")
    if results.truncated:
        many = "1 example was" if results.truncated == 1 else f"{results.truncated:,} examples were"
        lines.append(f"- **Truncated**: {many} longer than the model reads, so that a part was left out.")
    names = list(results.means)
    lines += [
        "",
        f"| seed | {' | '.join(map(score_name, names))} | best step | time | |",
        "|---" * (len(names) + 4) + "|",
    ]
    lines += [run_row(run, names, "label" if results.classes else "answer") for run in results.runs]
    return "\n".join([*lines, "", "`headstart predict` and `headstart evaluate` read this folder.", ""])


def run_row(run: Run, names: list[str], answer: str) -> str:
    """answer: what an answer of the task is called."""
    scores = " | ".join(percent(run.scores[name]) for name in names)
    flag = f"collapsed: one {answer} only" if run.collapsed else ""
    return f"| {run.seed} | {scores} | {run.best_step:,} of {run.steps:,} | {duration(run.seconds)} | {flag} |"


def score_text(results: TransferResults) -> str:
    """accuracy 84.2 % (sd 1.1 over 3 seeds), macro-F1 83.9 %."""
    others = [f", {score_name(name)} {percent(mean)}" for name, mean in results.means.items() if name != results.metric]
    return f"{results.metric_title} {task_score(results)}{''.join(others)}"


def task_score(results: TransferResults) -> str:
    """84.2 % (sd 1.1 over 3 seeds), or a warning that one seed shows no spread."""
    if results.spread is None:
        return f"{percent(results.mean)} (one seed only, so its spread is not known)"
    return f"{percent(results.mean)} (sd {100 * results.spread:.1f} over {len(results.runs)} seeds)"


def learned(mixes: Mixes) -> Mixes:
    """The mixes that have a choice: more than one layer to weigh."""
    return {place: mix for place, mix in mixes.items() if len(mix.weights) > 1}


def mix_text(mix: LayerWeights) -> str:
    """words 0.21, layer 1 0.45, layer 2 0.34; gamma 1.08."""
    weights = ", ".join(f"{'words' if k == 0 else f'layer {k}'} {weight:.2f}" for k, weight in enumerate(mix.weights))
    return weights if mix.gamma is None else f"{weights}; gamma {mix.gamma:.2f}"


def forgetting_text(forgot: Forgetting) -> str:
    """With a verdict, as a ratio of perplexities alone says little to most readers."""
    ratio = forgot.after / forgot.before
    verdict = "none" if ratio < 1.05 else "a little" if ratio < 1.5 else "much"
    return (
        f"the encoder's held-out perplexity went from {forgot.before:,.1f} to {forgot.after:,.1f} "
        f"({ratio:.2f} times): it forgot {verdict} of its pretraining"
    )
