from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headstart.cli.main import app
from headstart.errors import ConfigError
from headstart.weights.catalogue import Entry, catalogue

RUNNER = CliRunner()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An entry that is here: its file was put in place by hand."""
    monkeypatch.setenv("HEADSTART_HOME", str(tmp_path))
    entry = Entry("tiny", "texts", "a test", "none", 5, (), {"tiny.csv": ""}, {"tiny.csv": "https://example.org"})
    monkeypatch.setitem(catalogue(), "tiny", entry)
    folder = tmp_path / "texts" / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.csv").write_text("text,label\n")
    return folder


def test_the_list_fits_and_says_what_is_here(tiny: Path) -> None:
    shown = RUNNER.invoke(app, ["get", "--list"]).stdout
    assert max(len(line) for line in shown.splitlines()) <= 100
    first_words = {line.split()[0]: line.split()[-1] for line in shown.splitlines() if not line.startswith(" ")}
    assert first_words["tiny"] == "here"
    assert first_words["google-bert-tiny"] == "Hub"
    assert catalogue().keys() <= first_words.keys()


def test_what_comes_with_the_package_is_listed_first_and_is_there(house: dict[str, Path]) -> None:
    lines = RUNNER.invoke(app, ["get", "--list"]).stdout.splitlines()
    listed = [line for line in lines[1:] if not line.startswith(" ")][: len(house)]
    assert [line.split()[0] for line in listed] == list(house)
    assert all("in the package" in line for line in listed)
    folder, use = RUNNER.invoke(app, ["get", "elmo-mini"]).stdout.splitlines()
    assert folder == str(house["elmo-mini"])
    assert use.startswith("It comes with the package. Use it with: headstart transfer sentiment --from elmo-mini ")


def test_a_name_gives_its_folder_and_how_to_use_it(tiny: Path) -> None:
    folder, use = RUNNER.invoke(app, ["get", "tiny"]).stdout.splitlines()
    assert folder == str(tiny)
    assert "--train tiny " in use
    assert str(tiny / "tiny.csv") in use


def test_quiet_is_silent(tiny: Path) -> None:
    done = RUNNER.invoke(app, ["get", "tiny", "--quiet"])
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    ("words", "told"), [(["minilmm"], "Did you mean 'minilm'"), ([], "--list"), (["a", "--list"], "--list")]
)
def test_wrong_requests_are_one_sentence(words: list[str], told: str) -> None:
    done = RUNNER.invoke(app, ["get", *words])
    assert isinstance(done.exception, ConfigError)
    assert told in str(done.exception)
