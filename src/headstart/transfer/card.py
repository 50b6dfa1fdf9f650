"""CARD.md of a task model: what it answers, from how many labels, with which score and spread."""

from __future__ import annotations

from headstart.config import Table
from headstart.report.wording import duration


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
