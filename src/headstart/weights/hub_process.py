"""The process that downloads from the Hub: `python -m headstart.weights.hub_process REQUEST`.

huggingface_hub reads its settings from the environment at import, and can be stopped in the middle of a file only by
ending its process. So it is never imported in Headstart's own process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from headstart.weights.hub import PLAN, chosen_files
from headstart.weights.placing import DISK_ERRORS, replace_text
from headstart.weights.watching import UnavailableError

try:  # the library's transport: httpx since its version 1; before, requests, whose errors are OSErrors
    from httpx import HTTPError
except ImportError:
    HTTPError = OSError

SECONDS_FOR_AN_ANSWER = 20.0
# A broken connection loses at most one block, and progress moves by blocks; the library's default is 10 MB.
BLOCK = 1 << 20
# Reported as a reason; anything else is our bug, and its traceback goes to stderr.
EXPECTED = (UnavailableError, HfHubHTTPError, EntryNotFoundError, HTTPError, OSError)


def main() -> None:
    request = json.loads(sys.argv[1])
    constants.DOWNLOAD_CHUNK_SIZE = BLOCK
    try:
        download(request["repo"], request["revision"], request["names"], Path(request["folder"]))
    except EXPECTED as error:
        number = getattr(error, "errno", None)
        report = {"errno": number if number in DISK_ERRORS else None, "reason": reason_of(error, request)}
        print(json.dumps(report))
        sys.exit(1)


def download(repo: str, revision: str | None, names: list[str] | None, folder: Path) -> None:
    """Write name, size and etag of each file to folder/plan.json, then download the files into folder/files."""
    found = HfApi().model_info(repo, revision=revision, timeout=SECONDS_FOR_AN_ANSWER)
    there = [file.rfilename for file in found.siblings or []]
    wanted = chosen_files(there) if names is None else names
    if wanted is None:
        raise UnavailableError(
            "it holds neither a BERT (config.json with weights) nor an ELMo (options.json with weights.hdf5)"
        )
    plan = [planned(repo, found.sha or revision, name) for name in wanted]
    replace_text(folder / PLAN, json.dumps(plan))
    for name in wanted:
        hf_hub_download(repo, name, revision=found.sha or revision, local_dir=folder / "files")


def planned(repo: str, revision: str | None, name: str) -> dict[str, Any]:
    stated = get_hf_file_metadata(hf_hub_url(repo, name, revision=revision), timeout=SECONDS_FOR_AN_ANSWER)
    return {"name": name, "size": stated.size or 0, "etag": stated.etag or ""}


def reason_of(error: Exception, request: dict[str, Any]) -> str:
    """Why it failed, as a clause. Subclasses come before their base classes."""
    if isinstance(error, UnavailableError):
        return str(error)
    if isinstance(error, GatedRepoError):
        return f"{request['repo']} is gated: accept its terms on its page, and set HF_TOKEN to your token"
    if isinstance(error, RepositoryNotFoundError):
        return f"the Hub has no repository {request['repo']}, or it is private"
    if isinstance(error, RevisionNotFoundError):
        return f"{request['repo']} has no revision '{request['revision']}'"
    if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
        return f"{request['repo']} does not have all of {', '.join(request['names'] or [])}"
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return f"the Hub answered with HTTP status {error.response.status_code}"
    return f"the Hub at {constants.ENDPOINT} cannot be reached, or the connection broke ({first_cause(error)})"


def first_cause(error: BaseException) -> str:
    """The innermost error, such as an unknown host or a refused connection."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    lines = (getattr(error, "strerror", None) or str(error)).strip().splitlines()
    return lines[0][:120].rstrip(".") if lines else type(error).__name__


if __name__ == "__main__":
    main()
