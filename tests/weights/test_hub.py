from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.progress import Progress
from headstart.weights.catalogue import Entry, HubSource, catalogue
from headstart.weights.fetching import fetch
from headstart.weights.hub import chosen_files, fetch_hub

COMMIT = "a" * 40
BERT = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": bytes(range(256)) * 12_000,
    "pytorch_model.bin": b"a pickle that is not wanted",
    "vocab.txt": b"[PAD]\n[UNK]\n",
    "onnx/model.onnx": b"nor is this",
}
LARGE = 10_000


@dataclass
class Hub:
    """What the stand-in for the Hub holds, how it behaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(BERT))
    gated: bool = False
    breaks_after: int | None = None
    stated: dict[str, str] = field(default_factory=dict)
    """Etags that do not fit the contents."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def etag(self, name: str) -> str:
        content = self.files[name]
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        return self.stated.get(name) or (hashlib.sha256(content).hexdigest() if len(content) > LARGE else blob)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        self.hub.asked.append((self.command, self.path, self.headers.get("Range") or ""))
        if self.path.startswith("/api/models/"):
            self.tell_of_repository()
        elif "/resolve/" not in self.path or not self.path.startswith("/org/model/"):
            self.refuse(404, "RepoNotFound")
        elif self.hub.gated:
            self.refuse(403, "GatedRepo")
        else:
            self.send_file(self.path.partition(f"/resolve/{COMMIT}/")[2], with_body)

    def tell_of_repository(self) -> None:
        repo, _, revision = self.path.removeprefix("/api/models/").partition("?")[0].partition("/revision/")
        if repo != "org/model":
            self.refuse(401, "RepoNotFound")
        elif revision not in ("", "main", "v1", COMMIT):
            self.refuse(404, "RevisionNotFound")
        else:
            siblings = [{"rfilename": name} for name in self.hub.files]
            self.send(200, json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings}).encode(), {})

    def send_file(self, name: str, with_body: bool) -> None:
        if name not in self.hub.files:
            self.refuse(404, "EntryNotFound")
            return
        content, etag = self.hub.files[name], self.hub.etag(name)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if len(content) > LARGE:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(content))}
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.send(206 if start else 200, content[start:], headers, with_body)

    def send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool = True) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        cut = self.hub.breaks_after
        if with_body and cut is not None and len(body) > LARGE:
            self.wfile.write(body[:cut])
            self.close_connection = True
        elif with_body:
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.send(status, b"", {"X-Error-Code": code})

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server on this machine that speaks the endpoints that the Hub's library uses."""
    handler = type("Handler", (Answers,), {"hub": Hub()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield handler.hub  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def result(work: Generator[Progress, None, Path]) -> tuple[Path, list[Progress]]:
    readings = []
    while True:
        try:
            readings.append(next(work))
        except StopIteration as end:
            return Path(end.value), readings


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_a_bert_is_fetched_checked_and_kept(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder, readings = result(fetch_hub("hf:org/model", home))
    assert folder == home / "hub" / "org--model"
    assert files(home) == [
        f"hub/org--model/{name}" for name in ("checked", "config.json", "model.safetensors", "vocab.txt")
    ]
    assert all((folder / name).read_bytes() == BERT[name] for name in ("config.json", "model.safetensors", "vocab.txt"))
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert {reading.stage for reading in readings} == {"downloading"}
    asked = len(hub.asked)
    assert result(fetch_hub("hf:org/model", home))[0] == folder
    assert len(hub.asked) == asked


def test_a_damaged_file_is_named_and_downloaded_anew(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, _ = result(fetch_hub("org/model", tmp_path))
    for name in ("vocab.txt", "checked"):
        content = bytearray((folder / name).read_bytes())
        content[3] ^= 1
        (folder / name).write_bytes(content)
        assert result(fetch_hub("org/model", tmp_path))[0] == folder
        assert "it is damaged, and is downloaded anew" in caplog.text
        assert (folder / "vocab.txt").read_bytes() == BERT["vocab.txt"]
        caplog.clear()
    result(fetch_hub("org/model", tmp_path))
    assert caplog.text == ""


def test_a_revision_has_its_own_folder(hub: Hub, tmp_path: Path) -> None:
    folder, _ = result(fetch_hub("hf:org/model@v1", tmp_path))
    assert folder == tmp_path / "hub" / "org--model@v1"
    assert files(folder) == ["checked", "config.json", "model.safetensors", "vocab.txt"]


def test_a_broken_download_is_gone_on_with(hub: Hub, tmp_path: Path) -> None:
    hub.breaks_after = 2_500_000
    with pytest.raises(DataError, match=r"could not be downloaded: .*the connection broke"):
        result(fetch_hub("org/model", tmp_path))
    assert not (tmp_path / "hub" / "org--model").exists()
    arrived = max(path.stat().st_size for path in (tmp_path / "partial").rglob("*") if path.is_file())
    assert 1_000_000 < arrived < len(BERT["model.safetensors"])
    hub.breaks_after, hub.asked = None, []
    folder, _ = result(fetch_hub("org/model", tmp_path))
    gets = [(path.rpartition("/")[2], span) for method, path, span in hub.asked if method == "GET"]
    assert ("model.safetensors", f"bytes={arrived}-") in gets
    assert (folder / "model.safetensors").read_bytes() == BERT["model.safetensors"]
    assert not (tmp_path / "partial" / "org--model").exists()


def test_two_processes_download_it_once_and_one_waits(hub: Hub, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as both:  # each has its own lock, as processes have
        folders = list(both.map(lambda _: result(fetch_hub("org/model", tmp_path)), range(2)))
    assert {folder for folder, _ in folders} == {tmp_path / "hub" / "org--model"}
    stages = [{reading.stage for reading in readings} for _, readings in folders]
    assert {"waiting for another process that downloads it"} in stages
    assert sum(method == "GET" and path.endswith("model.safetensors") for method, path, _ in hub.asked) == 1
    assert len((tmp_path / "hub" / "org--model" / "checked").read_text().splitlines()) == 3
    assert not list((tmp_path / "partial").iterdir())


@pytest.mark.parametrize(
    ("name", "etag", "kind"), [("model.safetensors", "c" * 64, "sha256"), ("vocab.txt", "d" * 40, "git checksum")]
)
def test_contents_that_are_not_what_the_hub_states_are_not_used(
    hub: Hub, tmp_path: Path, name: str, etag: str, kind: str
) -> None:
    hub.stated[name] = etag
    with pytest.raises(DataError, match=rf"{name} has the {kind} [0-9a-f]+, wanted {etag}; it was not used"):
        result(fetch_hub("org/model", tmp_path))
    assert files(tmp_path) == [], "a file that failed would fail again"


@pytest.mark.parametrize(
    ("repo", "reason"),
    [
        ("org/unknown", "the Hub has no repository org/unknown, or it is private"),
        ("org/model@v2", "org/model has no revision 'v2'"),
    ],
)
def test_what_is_not_there_is_one_sentence(hub: Hub, tmp_path: Path, repo: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"could not be downloaded: {reason}"):
        result(fetch_hub(repo, tmp_path))


def test_a_gated_repository_says_what_to_do(hub: Hub, tmp_path: Path) -> None:
    hub.gated = True
    with pytest.raises(DataError, match=r"org/model is gated: accept its terms on its page, and set HF_TOKEN"):
        result(fetch_hub("org/model", tmp_path))


def test_a_repository_without_usable_files(hub: Hub, tmp_path: Path) -> None:
    hub.files = {"config.json": b"{}", "flax_model.msgpack": b"weights of another library"}
    with pytest.raises(DataError, match=r"it holds neither a BERT .* nor an ELMo"):
        result(fetch_hub("org/model", tmp_path))


def test_no_network_names_the_folder_and_files_put_there_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "hub" / "org--model"
    with pytest.raises(DataError, match=rf"cannot be reached.*\(Connection refused\).* into {folder} by hand"):
        result(fetch_hub("org/model", tmp_path))
    folder.mkdir(parents=True)
    for name in ("config.json", "pytorch_model.bin", "vocab.txt"):
        (folder / name).write_bytes(BERT[name])
    assert result(fetch_hub("org/model", tmp_path))[0] == folder
    assert (folder / "checked").is_file()


def test_an_entry_of_the_catalogue_comes_from_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"config.json": "", "vocab.txt": hashlib.sha256(BERT["vocab.txt"]).hexdigest()}
    entry = Entry("tiny", "bert", "a test", "none", 9, (HubSource("org/model", COMMIT),), wanted, {})
    monkeypatch.setitem(catalogue(), "tiny", entry)
    folder, _ = result(fetch("tiny", tmp_path))
    assert folder == tmp_path / "models" / "tiny"
    assert files(tmp_path) == [f"models/tiny/{name}" for name in ("checked", "config.json", "vocab.txt")]


def test_the_catalogues_checksum_goes_before_the_hubs(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Entry("tiny", "bert", "a test", "none", 9, (HubSource("org/model", COMMIT),), {"vocab.txt": "b" * 64}, {})
    monkeypatch.setitem(catalogue(), "tiny", entry)
    with pytest.raises(DataError, match=r"vocab\.txt has the sha256 .*, wanted b{64}"):
        result(fetch("tiny", tmp_path))
    assert files(tmp_path) == []


def test_a_home_that_cannot_be_a_folder_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(DataError, match="HEADSTART_HOME"):
        result(fetch_hub("org/model", tmp_path / "home"))


@pytest.mark.parametrize("torn", ["note", "content"])
def test_what_a_power_loss_has_torn_is_downloaded_anew(torn: str, hub: Hub, tmp_path: Path) -> None:
    arriving = tmp_path / "partial" / "org--model" / "files"
    notes = arriving / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    if torn == "note":
        (notes / "config.json.metadata").write_bytes(bytes(90))
        (arriving / "config.json").write_bytes(BERT["config.json"])
    else:
        hashed = hashlib.sha1(b"model.safetensors.metadata").digest()
        stem = base64.urlsafe_b64encode(hashed).decode()
        (notes / f"{stem}.{hub.etag('model.safetensors')}.incomplete").write_bytes(bytes(5_000))
    folder, _ = result(fetch_hub("org/model", tmp_path))
    assert (folder / "model.safetensors").read_bytes() == BERT["model.safetensors"]
    assert not (tmp_path / "partial" / "org--model").exists()


@pytest.mark.parametrize("repo", ["hf:", "hf:a/b/c", "hf:../b", "hf:a/..", "hf:a/b@", "hf:a/b@../c", "hf:a b/c"])
def test_what_is_no_repository_is_refused_before_anything_is_asked(repo: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hf:org/name"):
        result(fetch_hub(repo, tmp_path))


def test_which_files_are_chosen() -> None:
    assert chosen_files(["config.json", "pytorch_model.bin", "vocab.txt"]) == [
        "config.json", "pytorch_model.bin", "vocab.txt",
    ]  # fmt: skip
    assert chosen_files(["options.json", "weights.hdf5", "README.md"]) == ["options.json", "weights.hdf5"]
    assert chosen_files(["a/options.json", "a/weights.hdf5"]) is None
    assert chosen_files(["config.json", "vocab.txt"]) is None
    assert chosen_files(["model.safetensors"]) is None
