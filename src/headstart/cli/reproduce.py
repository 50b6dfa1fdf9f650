"""`headstart reproduce`: claims of the field, tested here; the verdicts go to stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import SOURCES, Quiet

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from headstart.claims.base import Part
    from headstart.claims.reproduce import ReproduceEvent
    from headstart.claims.results import ClaimResult

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CLAIM]...", help="Which claims; --list names them. Default: all.", show_default=False),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Folder of open data. Default: film reviews, which are downloaded."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for results and runs; what is there goes on.")]
Page = Annotated[Path | None, typer.Option("--page", metavar="FILE.md", help="The page. Default: claims.md in --out.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller experiments: each claim in under ten minutes.")]
List = Annotated[bool, typer.Option("--list", help="Show the claims with what they cost, and exit.")]
Static = Annotated[str | None, typer.Option("--static", metavar="SRC", help="Word vectors. Default: words-mini.")]
Elmo = Annotated[str | None, typer.Option("--elmo", metavar="SRC", help="An ELMo. Default: elmo-mini.")]
Bert = Annotated[str | None, typer.Option("--bert", metavar="SRC", help="A BERT. Default: bert-mini.")]
Published = Annotated[
    str | None,
    typer.Option("--published", metavar="SRC", help=f"A BERT of others, or off. Default: minilm. {SOURCES}"),
]


def reproduce(
    claims: Names = None,
    *,
    data: Data = None,
    out: Out = Path("claims"),
    page: Page = None,
    quick: Quick = False,
    list_: List = False,
    static: Static = None,
    elmo: Elmo = None,
    bert: Bert = None,
    published: Published = None,
    quiet: Quiet = False,
) -> None:
    """Test what the field claims of these models on this machine, and write it down, failures included.

    After a stop or a kill, the same command goes on where it was.
    """
    from headstart.claims.reproduce import reproduce as run_claims

    scale = "quick" if quick else "full"
    if list_:
        list_claims(scale)
        return
    given = {"static": static, "elmo": elmo, "bert": bert, "published": published}
    events = run_claims(
        claims or (),
        out=out,
        data=data,
        encoders={role: source for role, source in given.items() if source is not None},  # type: ignore[misc]
        scale=scale,
        page=page,
    )
    watch(events, page or out / "claims.md", quiet)


def list_claims(scale: str) -> None:
    from headstart.claims.registry import CLAIMS
    from headstart.claims.reproduce import assumed_setting
    from headstart.claims.scales import SCALES

    setting = assumed_setting(SCALES[scale])
    for claim in CLAIMS.values():
        typer.echo(f"{claim.number}. {claim.name} ({minutes_text(claim.plan(setting))}): {claim.title}.")


def minutes_text(parts: Sequence[Part]) -> str:
    minutes = sum(part.minutes for part in parts)
    return f"about {minutes:.0f} min" if minutes >= 1 else f"about {max(10, round(60 * minutes, -1)):.0f} s"


def watch(events: Generator[ReproduceEvent, None, list[ClaimResult]], page: Path, quiet: bool) -> None:
    """Show each event, and each verdict on stdout; the first Ctrl-C stops with everything saved."""
    from headstart.claims.page import finding_text, verdicts_text
    from headstart.claims.reproduce import ClaimDone
    from headstart.cli.claim_lines import watching
    from headstart.cli.stopping import stop_requests

    done = 0
    with stop_requests() as stop, watching(quiet) as show:
        for event in events:
            show(event)
            if isinstance(event, ClaimDone):
                done += 1
                result = event.result
                typer.echo(f"{result.number}. {result.title}: {verdicts_text(result.outcome)}")
                for finding in result.outcome.findings:
                    typer.echo(f"   {finding_text(finding)}")
            if stop.asked:
                events.close()
                typer.echo("Stopped, with everything saved. The same command goes on from here.", err=True)
                raise typer.Exit(130)
    if done:
        typer.echo(page)
