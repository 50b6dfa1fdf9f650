"""The clusters of a word's occurrences as a picture: a point for each, on the first two principal components."""

from __future__ import annotations

from pathlib import Path

from headstart.inspection.sense_results import SenseClusters
from headstart.report.scatter import Cloud, Scatter, scatter_svg, write_scatter


def write_senses(found: SenseClusters, path: Path) -> None:
    """As .svg, .png or .pdf, by the name's ending."""
    write_scatter(scatter_of(found), path)


def sense_svg(found: SenseClusters) -> str:
    return scatter_svg(scatter_of(found), "senses")


def scatter_of(found: SenseClusters) -> Scatter:
    first, second = (
        f"component {number} ({100 * share:.0f} % of the variance)"
        for number, share in enumerate(found.variances, start=1)
    )
    clouds = [
        Cloud(f"{cluster.name} ({len(cluster.occurrences):,})", [(one.x, one.y) for one in cluster.occurrences])
        for cluster in found.clusters
    ]
    return Scatter(f"{found.word} in {found.encoder}, layer {found.layer}", clouds, first, second)
