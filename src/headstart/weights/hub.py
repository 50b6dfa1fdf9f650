"""Models of the Hugging Face Hub in the cache: the files that Headstart reads, verified by the Hub's checksums."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headstart.atomic import sha256_of
from headstart.errors import ConfigError, DataError
from headstart.progress import Progress
from headstart.weights.catalogue import HubSource
from headstart.weights.checksums import git_blob_of, is_checked, write_checked
from headstart.weights.placing import placing, writing_under
from headstart.weights.watching import Ended, UnavailableError, watched

PREFIX = "hf:"
HUB_PAGES = "https://huggingface.co"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
BESIDES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
PLAN = "plan.json"
# Only plain HTTP resumes a partial file; the library's other transports do not.
ENVIRONMENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_ENABLE_HF_TRANSFER": "0",
}


def fetch_hub(
    repo: str, home: Path, *, revision: str | None = None, files: Mapping[str, str] | None = None
) -> Generator[Progress, None, Path]:
    """The folder of a repository, `org/name` or `hf:org/name@revision`, downloaded if it is not cached.

    files: name -> sha256, or "" for the Hub's own; left out, the files of a BERT or an ELMo. A cached repository is not
    looked up again, even if it has changed since. An interrupted download is resumed.
    """
    source = parse(repo, revision)
    target = home / "hub" / folder_name(source)
    if hub_folder_is_whole(target, files):
        return target
    try:
        with writing_under(home):
            yield from download_hub(source, home, target, files, 0)
    except UnavailableError as error:
        if hub_folder_is_whole(target, files):  # another process finished first and took the partial files
            return target
        names = ", ".join(files) if files else f"config.json, {' or '.join(WEIGHTS)}, and vocab.txt"
        raise DataError(
            f"{PREFIX}{source.repo} could not be fetched: {error}. Put {names} into {target} by hand, and they are "
            "used from there."
        ) from error
    return target


def parse(repo: str, revision: str | None) -> HubSource:
    name, at, inline = repo.removeprefix(PREFIX).partition("@")
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name) or (at and not inline):
        raise ConfigError(f"'{repo}' is no repository of the Hub; wanted hf:org/name or hf:org/name@revision.")
    revision = revision or inline or None
    if revision is not None and not re.fullmatch(r"\w[\w./-]*", revision):
        raise ConfigError(f"'{revision}' is no revision; wanted a branch, a tag or a commit, as in hf:org/name@main.")
    return HubSource(name, revision)


def folder_name(source: HubSource) -> str:
    name = source.repo if source.revision is None else f"{source.repo}@{source.revision}"
    return name.replace("/", "--")


def hub_folder_is_whole(folder: Path, files: Mapping[str, str] | None) -> bool:
    """Whether a folder has the files. Files put there by hand are accepted, and verified if `files` has a checksum."""
    if files is not None and is_checked(folder, files):
        return True
    if not folder.is_dir():
        return False
    names = chosen_files([path.name for path in folder.iterdir()]) if files is None else list(files)
    if names is None or not all((folder / name).is_file() for name in names):
        return False
    for name, sha256 in (files or {}).items():
        check(folder / name, sha256, folder)
    if not is_checked(folder, dict.fromkeys(names, "")):
        with suppress(OSError):  # a shared folder may be read-only
            write_checked(folder, names)
    return True


def check(path: Path, sha256: str, where: Path) -> None:
    if sha256 and (found := sha256_of(path)) != sha256:
        raise DataError(
            f"{where}: {path.name} has the sha256 {found}, wanted {sha256}. Put the right file there, or remove it."
        )


def chosen_files(names: Sequence[str]) -> list[str] | None:
    """The files of a BERT or an ELMo among those of a repository; None if it has neither."""
    weights = next((name for name in WEIGHTS if name in names), None)
    if weights is not None and "config.json" in names:
        return ["config.json", weights, *(name for name in BESIDES if name in names)]
    at_top = [name for name in names if "/" not in name and "\\" not in name]
    options = [name for name in at_top if name.endswith("options.json")]
    hdf5 = [name for name in at_top if name.endswith("weights.hdf5")]
    return [*options, *hdf5] if len(options) == len(hdf5) == 1 else None


def download_hub(
    source: HubSource, home: Path, target: Path, files: Mapping[str, str] | None, size: int
) -> Generator[Progress, None, None]:
    """Download files into `target`. Partial files stay in the cache's `partial` folder for the next call."""
    partial = home / "partial" / folder_name(source)
    partial.mkdir(parents=True, exist_ok=True)
    (partial / PLAN).unlink(missing_ok=True)
    names = None if files is None else list(files)
    request = {"repo": source.repo, "revision": source.revision, "names": names, "folder": str(partial)}
    command = [sys.executable, "-m", "headstart.weights.hub_process", json.dumps(request)]
    arriving = partial / "files"
    try:
        ended = yield from watched(command, arriving, lambda: planned_bytes(partial, size), ENVIRONMENT)
    finally:
        if not arriving.exists():
            shutil.rmtree(partial, ignore_errors=True)
    raise_failure(ended)
    plan = read_plan(partial)
    for file in plan:
        check_download(arriving / file["name"], file["etag"], (files or {}).get(file["name"], ""), partial)
    arrived = [file["name"] for file in plan]
    with placing(target, arrived) as folder:
        for name in arrived:
            os.replace(arriving / name, folder / name)
    shutil.rmtree(partial, ignore_errors=True)


def read_plan(partial: Path) -> list[dict[str, Any]]:
    """Name, size and etag of each file being downloaded; empty until the Hub has answered."""
    try:
        plan: list[dict[str, Any]] = json.loads((partial / PLAN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return plan


def planned_bytes(partial: Path, size: int) -> int:
    return sum(int(file["size"]) for file in read_plan(partial)) or size


def raise_failure(ended: Ended) -> None:
    if ended.code == 0:
        return
    try:
        report = json.loads(ended.out)
    except ValueError:
        last = (ended.errors.strip().splitlines() or [f"exit code {ended.code}"])[-1]
        raise UnavailableError(f"the Hub's library failed ({last})") from None
    if report["errno"]:
        raise OSError(report["errno"], os.strerror(report["errno"]))
    raise UnavailableError(report["reason"])


def check_download(path: Path, etag: str, sha256: str, partial: Path) -> None:
    """A file against the catalogue's sha256, and against what the Hub states: a sha256, or git's name for it."""
    wanted = [(sha256, sha256_of)] if sha256 else []
    if re.fullmatch(r"[0-9a-f]{64}", etag):
        wanted.append((etag, sha256_of))
    elif re.fullmatch(r"[0-9a-f]{40}", etag):
        wanted.append((etag, git_blob_of))
    elif not sha256:
        raise UnavailableError(f"the Hub states no checksum for {path.name}")
    for expected, digest in wanted:
        found = digest(path)
        if found != expected:
            shutil.rmtree(partial, ignore_errors=True)  # going on with it would fail again
            kind = "sha256" if digest is sha256_of else "git checksum"
            raise UnavailableError(f"{path.name} has the {kind} {found}, wanted {expected}; it was not used")
