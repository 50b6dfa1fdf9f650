from __future__ import annotations

from pathlib import Path

import pytest

from headstart.comparison.rows import RowEncoder, check_names, choose_rows, kinds_needed
from headstart.errors import ConfigError

SOURCES = [RowEncoder("bert", Path("runs/b")), RowEncoder("static", Path("runs/s")), RowEncoder("elmo", Path("runs/e"))]


def names(sources: list[RowEncoder], wanted: list[str] | None = None) -> list[str]:
    return [row.name for row in choose_rows(sources, wanted)]


def test_rows_come_in_the_order_of_the_generations() -> None:
    assert names(SOURCES) == [
        "scratch", "static-frozen", "elmo-frozen", "elmo-finetune", "stack-frozen", "bert-finetune",
    ]  # fmt: skip
    assert names(SOURCES, ["bert-frozen", "elmo-gradual", "scratch"]) == ["scratch", "elmo-gradual", "bert-frozen"]


def test_a_generation_without_a_source_has_no_row() -> None:
    assert names([RowEncoder("elmo", Path("runs/e"))]) == ["scratch", "elmo-frozen", "elmo-finetune"]


def test_several_runs_of_a_kind_are_told_apart_by_folder() -> None:
    two = [RowEncoder("elmo", Path("runs/large")), RowEncoder("elmo", Path("runs/small"))]
    found = choose_rows(two, ["elmo-frozen"])
    assert [row.name for row in found] == ["elmo-frozen:large", "elmo-frozen:small"]
    assert found[0].title == "ELMo (large), frozen"
    assert names(two, ["elmo-frozen:small"]) == ["elmo-frozen:small"]
    with pytest.raises(ConfigError, match="Did you mean 'elmo-frozen:small'"):
        choose_rows(two, ["elmo-frozen:smal"])


def test_two_folders_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="folders called 'e'"):
        choose_rows([RowEncoder("elmo", Path("one/e")), RowEncoder("elmo", Path("two/e"))], None)


def test_an_unknown_row_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'elmo-frozen'"):
        check_names(["scratch", "elmo-frosen"])


def test_a_row_without_its_encoder_says_how_to_give_one() -> None:
    with pytest.raises(ConfigError, match="--with RUN"):
        choose_rows([], ["scratch", "bert-finetune"])
    with pytest.raises(ConfigError, match="nothing to compare"):
        choose_rows([], None)


def test_only_the_kinds_of_the_rows_are_needed() -> None:
    assert kinds_needed(None) == {"static", "elmo", "bert"}
    assert kinds_needed(["scratch", "bert-frozen"]) == {"bert"}
