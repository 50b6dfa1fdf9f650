"""`reproduce`: each claim tested once with a setting, its result kept, and a page written of all results."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from headstart.atomic import write_text
from headstart.claims.base import Claim, ClaimEvent, Part, Setting
from headstart.claims.cutting import Limits
from headstart.claims.data import FETCHED, ClaimData, TaskFiles, TextFiles, open_data
from headstart.claims.encoders import ENCODERS, KINDS, LANGUAGE_MODELS, SHAPES, Encoder, EncoderRole, open_role
from headstart.claims.layouts import ROLES, Role
from headstart.claims.page import write_page
from headstart.claims.registry import CLAIMS
from headstart.claims.results import ClaimResult, Outcome, result_from_json, result_to_json
from headstart.claims.scales import SCALES, Scale
from headstart.config import OFF, cache_home, pick
from headstart.errors import CheckpointError, DataError
from headstart.progress import Notice, Progress
from headstart.training.machine import machine

NO_DATA = ClaimData({}, None, "")


@dataclass(frozen=True, slots=True)
class ClaimBegan:
    """The work for a claim begins. parts: what it consists of, with its cost."""

    claim: Claim
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class ClaimSkipped:
    """A claim cannot be tested with what is there. why: and what would do, in a sentence."""

    claim: Claim
    why: str


@dataclass(frozen=True, slots=True)
class ClaimDone:
    """A claim's result is kept in `out`. reused: it was there already."""

    result: ClaimResult
    out: Path
    reused: bool


ReproduceEvent = ClaimEvent | ClaimBegan | ClaimSkipped | ClaimDone


def reproduce(
    claims: Sequence[str] = (),
    *,
    out: str | Path,
    data: str | Path | None = None,
    encoders: Mapping[EncoderRole, str] | None = None,
    scale: str | Scale = "full",
    page: str | Path | None = None,
    cache: str | Path | None = None,
) -> Generator[ReproduceEvent, None, list[ClaimResult]]:
    """Test claims of the field here, all of them unless some are named, and write a page of what came of them.

    data: a folder of open data (see docs/reproduce.md); left out, what can be downloaded. encoders: who plays the parts
    "static", "elmo", "bert" and "published", "off" for nobody. scale: "full", or "quick" for some minutes each. A claim
    that was tested before with all of these is not tested again, and one that was stopped goes on.
    """
    chosen = [pick(CLAIMS, name, "claim") for name in claims] or list(CLAIMS.values())
    size = scale if isinstance(scale, Scale) else pick(SCALES, scale, "scale")
    sources = {**ENCODERS, **(encoders or {})}
    folder = Path(out)
    if folder.is_file():
        raise CheckpointError(f"{folder}: is a file; --out names the folder of the results.")
    home = Path(cache) if cache is not None else cache_home()
    request = Request(chosen, folder, None if data is None else Path(data), sources, size, home)
    return run_claims(request, Path(page) if page is not None else folder / "claims.md")


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of `reproduce`, checked as far as they can be without reading the data."""

    claims: list[Claim]
    out: Path
    data: Path | None
    encoders: Mapping[EncoderRole, str]
    scale: Scale
    cache: Path


def run_claims(request: Request, page: Path) -> Generator[ReproduceEvent, None, list[ClaimResult]]:
    setting = yield from open_setting(request)
    results = []
    for claim in request.claims:
        why = claim.missing(setting)
        if why is not None:
            yield ClaimSkipped(claim, why)
            continue
        folder = request.out / claim.name
        before = read_result(folder)
        if before is not None and before.key == claim.key(setting):
            results.append(before)
            yield ClaimDone(before, folder, reused=True)
        else:
            yield ClaimBegan(claim, claim.plan(setting))
            with Stopwatch(folder / "seconds") as spent:
                outcome = yield from claim.run(setting)
            results.append(result_of_claim(claim, setting, outcome, command_of(claim, request), spent.seconds))
            write_result(results[-1], folder)
            spent.forget()
            yield ClaimDone(results[-1], folder, reused=False)
        write_page(page, results_in(request.out))
    return results


class Stopwatch:
    """Counts the seconds of a piece of work over all the processes that worked on it, in a file until it is done."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds = float(file.read_text()) if file.is_file() else 0.0

    def __enter__(self) -> Stopwatch:
        self.began = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds += time.monotonic() - self.began
        write_text(self.file, str(self.seconds))

    def forget(self) -> None:
        self.file.unlink(missing_ok=True)


def result_of_claim(claim: Claim, setting: Setting, outcome: Outcome, command: str, seconds: float) -> ClaimResult:
    return ClaimResult(
        name=claim.name,
        number=claim.number,
        title=claim.title,
        source=claim.source,
        command=command,
        key=claim.key(setting),
        seconds=seconds,
        machine=machine(),
        threads=torch.get_num_threads(),
        scale=setting.scale.name,
        headstart=version("headstart"),
        outcome=outcome,
    )


def open_setting(request: Request) -> Generator[Progress | Notice, None, Setting]:
    """Whoever is not given and cannot be downloaded plays no part; claims that use no such data download none."""
    scale = request.scale
    data = NO_DATA
    roles: set[Role] = {role for claim in request.claims for role in claim.uses}
    if request.data is not None or not roles.isdisjoint(FETCHED):
        limits = Limits(scale.dev, scale.text_words, scale.valid_words, dev_by_role(scale))
        data = yield from open_data(request.data, request.out, limits, request.cache, roles)
    encoders: dict[EncoderRole, Encoder] = {}
    for role, source in request.encoders.items():
        if source == OFF:
            continue
        try:
            encoders[role] = yield from open_role(role, source, request.cache)
        except DataError as error:
            if source != ENCODERS[role]:
                raise
            yield Notice(f"{error} Nobody plays '{role}'.")
    return Setting(data, encoders, scale, request.out, request.cache)


def dev_by_role(scale: Scale) -> dict[Role, int]:
    return {role: sizes.dev for role, sizes in scale.six_tasks.items()}


def assumed_setting(scale: Scale) -> Setting:
    """Every kind of data and the usual encoders, without looking whether they are there: what costs are told from."""
    nowhere = Path()
    tasks = {
        role: TaskFiles(role, kind.title, kind.task, nowhere, nowhere)
        for role, kind in ROLES.items()
        if kind.task is not None
    }
    encoders = {
        role: Encoder(source, source, KINDS[role], SHAPES[role], "", (*LANGUAGE_MODELS.values(),))
        for role, source in ENCODERS.items()
    }
    return Setting(ClaimData(tasks, TextFiles(nowhere, nowhere), ""), encoders, scale, nowhere, nowhere)


def command_of(claim: Claim, request: Request) -> str:
    """What to type for the same result; the folders stand for the reader's own."""
    parts = ["headstart reproduce", claim.name]
    parts += ["--data DATA"] if request.data is not None else []
    for role, source in request.encoders.items():
        if source != ENCODERS[role]:
            parts.append(f"--{role} {Path(source).name}")
    parts += ["--quick"] if request.scale.name == "quick" else []
    return " ".join([*parts, "--out OUT"])


def write_result(result: ClaimResult, folder: Path) -> None:
    for picture in result.outcome.pictures:
        write_text(folder / f"{picture.name}.svg", picture.svg)
    write_text(folder / "result.json", result_to_json(result))


def read_result(folder: Path) -> ClaimResult | None:
    """The result kept in a claim's folder; None if there is none, or one of another version."""
    path = folder / "result.json"
    try:
        return result_from_json(path.read_text(encoding="utf-8")) if path.is_file() else None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error


def results_in(out: Path) -> list[ClaimResult]:
    """All results kept in `out`, in the order of the claims."""
    found = [read_result(out / name) for name in CLAIMS]
    return [result for result in found if result is not None]
