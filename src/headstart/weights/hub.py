"""Models from the Hugging Face Hub: only the files that Headstart reads, verified by the Hub's checksums."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.atomic import sha256_of
from headstart.errors import ConfigError, DataError
from headstart.progress import Progress
from headstart.weights.catalogue import HubSource
from headstart.weights.placing import claimed, git_blob_of, has_files, placing, writing_under
from headstart.weights.watching import Ended, SpoiltError, UnavailableError, watched

PREFIX = "hf:"
HUB_PAGES = "https://huggingface.co"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
PLAN = "plan.json"
# Of the library's transports, only plain HTTP resumes a partial file.
ENVIRONMENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_ENABLE_HF_TRANSFER": "0",
}


def fetch_hub(repo: str, home: Path) -> Generator[Progress, None, Path]:
    """The folder of a repository, `org/name` or `hf:org/name@revision`, downloaded unless it is in the cache.

    A cached repository is not looked up again, even if it has changed since. An interrupted download is resumed.
    """
    source = parse(repo)
    target = home / "hub" / folder_name(source)
    if holds_model(target):
        return target
    try:
        with writing_under(home):
            yield from download_hub(source, home, target, None, 0)
    except UnavailableError as error:
        if holds_model(target):  # another process downloaded it and removed our partial files
            return target
        raise DataError(
            f"{PREFIX}{source.repo} could not be downloaded: {error}. Put config.json, {' or '.join(WEIGHTS)}, and "
            f"vocab.txt into {target} by hand instead."
        ) from error
    return target


def parse(repo: str) -> HubSource:
    name, at, revision = repo.removeprefix(PREFIX).partition("@")
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name) or (at and not revision):
        raise ConfigError(f"'{repo}' is not a repository of the Hub; wanted hf:org/name or hf:org/name@revision.")
    if revision and not re.fullmatch(r"\w[\w./-]*", revision):
        raise ConfigError(
            f"'{revision}' is not a revision; wanted a branch, a tag or a commit, as in hf:org/name@main."
        )
    return HubSource(name, revision or None)


def folder_name(source: HubSource) -> str:
    name = source.repo if source.revision is None else f"{source.repo}@{source.revision}"
    return name.replace("/", "--")


def holds_model(folder: Path) -> bool:
    """Whether a folder of the cache has the files of a model, downloaded or put there by hand."""
    names = chosen_files([path.name for path in folder.iterdir()]) if folder.is_dir() else None
    return names is not None and has_files(folder, dict.fromkeys(names, ""))


def chosen_files(names: Sequence[str]) -> list[str] | None:
    """The files of a BERT or an ELMo among those of a repository; None if it holds neither."""
    weights = next((name for name in WEIGHTS if name in names), None)
    if weights is not None and "config.json" in names:
        return ["config.json", weights, *(name for name in TOKENIZER_FILES if name in names)]
    at_top = [name for name in names if "/" not in name and "\\" not in name]
    options = [name for name in at_top if name.endswith("options.json")]
    hdf5 = [name for name in at_top if name.endswith("weights.hdf5")]
    return [*options, *hdf5] if len(options) == len(hdf5) == 1 else None


def download_hub(
    source: HubSource, home: Path, target: Path, files: Mapping[str, str] | None, size: int
) -> Generator[Progress, None, None]:
    """Download into `target`. An interrupted download leaves partial files, which the next call resumes.

    files: name -> sha256, or ""; None for the files of a BERT or an ELMo. size: in bytes, until the Hub states it.
    """
    partial = home / "partial" / folder_name(source)
    is_resumed = (partial / "files").exists()
    try:
        yield from download_claimed(partial, source, target, files, size)
    except SpoiltError:
        if not is_resumed:
            raise
        # A power loss may have torn what an earlier call left.
        yield from download_claimed(partial, source, target, files, size)


def download_claimed(
    partial: Path, source: HubSource, target: Path, files: Mapping[str, str] | None, size: int
) -> Generator[Progress, None, None]:
    """`download_into`, unless another process does it meanwhile. What cannot be resumed is removed."""
    claim, has_waited = yield from claimed(partial)
    try:
        if has_waited and (holds_model(target) if files is None else has_files(target, files)):
            shutil.rmtree(partial, ignore_errors=True)
        else:
            yield from download_into(partial, source, target, files, size)
    except SpoiltError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(claim)


def download_into(
    partial: Path, source: HubSource, target: Path, files: Mapping[str, str] | None, size: int
) -> Generator[Progress, None, None]:
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
        check_download(arriving / file["name"], file["etag"], (files or {}).get(file["name"], ""))
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
        raise SpoiltError(f"huggingface_hub failed ({last})") from None
    if report["errno"]:  # an OSError, for `writing_under` to report
        raise OSError(report["errno"], os.strerror(report["errno"]))
    raise UnavailableError(report["reason"])


def check_download(path: Path, etag: str, sha256: str) -> None:
    """Compare a file with the catalogue's sha256, and with the Hub's etag: a sha256, or git's SHA-1."""
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
            kind = "sha256" if digest is sha256_of else "git checksum"
            raise SpoiltError(f"{path.name} has the {kind} {found}, wanted {expected}; it was not used")
