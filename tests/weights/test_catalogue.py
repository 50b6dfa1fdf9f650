from __future__ import annotations

import re
from pathlib import Path

import pytest

from headstart.errors import ConfigError
from headstart.progress import result_of
from headstart.weights.catalogue import HubSource, WheelSource, catalogue
from headstart.weights.fetching import check_package, fetch, find
from headstart.weights.hub import chosen_files
from headstart.weights.sources import load


@pytest.mark.parametrize("name", catalogue())
def test_every_entry_can_be_fetched_or_says_how_to_get_it(name: str) -> None:
    entry = catalogue()[name]
    assert entry.name == name
    assert entry.kind in ("bert", "elmo", "static", "texts")
    assert entry.what
    assert entry.licence
    assert entry.size > 0
    assert entry.files
    assert entry.package or entry.sources or entry.by_hand.keys() == entry.files.keys()


@pytest.mark.parametrize("name", catalogue())
def test_checksums_are_whole_and_left_out_only_where_the_hub_or_a_wheel_vouches(name: str) -> None:
    entry = catalogue()[name]
    for sha256 in entry.files.values():
        assert re.fullmatch(r"([0-9a-f]{64})?", sha256)
    for source in entry.sources:
        if isinstance(source, WheelSource):
            assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
            assert source.members.keys() == entry.files.keys()
            assert all(member.size > 0 for member in source.members.values())
        else:
            assert source.revision is not None
            assert re.fullmatch(r"[0-9a-f]{40}", source.revision), "without a pinned revision nothing vouches"


@pytest.mark.parametrize("name", [name for name, e in catalogue().items() if e.sources and e.kind in ("bert", "elmo")])
def test_the_files_of_an_entry_are_what_a_model_is_read_from(name: str) -> None:
    names = list(catalogue()[name].files)
    assert set(chosen_files(names) or []) == set(names) - {"README.md"}


def test_the_promised_names_are_there() -> None:
    assert {"minilm", "glove-50d", "rotten-tomatoes", "imdb", "bert-base-uncased"} <= catalogue().keys()
    assert catalogue()["bert-base-uncased"].sources == (
        HubSource("google-bert/bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594"),
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("minilmm", "Did you mean 'minilm'"),
        ("bert-tiny", "Did you mean 'google-bert-tiny'"),
        ("zzzzzz", "`headstart get --list` shows the names"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(wrong: str, says: str, house: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=says):
        find(wrong)


PACKAGED = [name for name, entry in catalogue().items() if entry.package is not None]
MOST_BYTES = 30_000_000


@pytest.mark.parametrize("name", PACKAGED)
def test_what_comes_with_the_package_is_whole_has_a_card_and_opens(name: str) -> None:
    entry = catalogue()[name]
    folder = result_of(fetch(name, Path("unused")))
    check_package(entry, folder, verify=True)
    assert all(entry.files.values())
    assert entry.files.keys() == {path.name for path in folder.iterdir()}
    assert entry.size == sum(path.stat().st_size for path in folder.iterdir())
    assert load(name).kind == entry.kind
    card = (folder / "CARD.md").read_text(encoding="utf-8")
    for point in ("Trained on", "For", "On", "Weights", "Compact", "Text", "Licence", "Made with"):
        assert f"- **{point}**" in card


def test_what_comes_with_the_package_is_small() -> None:
    assert sum(catalogue()[name].size for name in PACKAGED) <= MOST_BYTES
