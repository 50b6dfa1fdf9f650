from __future__ import annotations

import pickle

import pytest

from headstart.errors import ConfigError, DataError, Remedy, settings_renamed

REMEDY = Remedy("Name the column with {}.", "text.field=NAME", "--field")


def in_comparison(setting: str) -> str:
    return f"pretrain.{setting}"


def test_a_remedy_names_the_option_and_otherwise_the_setting() -> None:
    assert str(DataError("There is no column 'text'.", REMEDY)) == (
        "There is no column 'text'. Name the column with --field."
    )
    assert str(Remedy("Lower it with {}.", "fitting.learning_rate=1e-3")) == (
        "Lower it with --set fitting.learning_rate=1e-3."
    )


def test_inside_another_job_a_remedy_names_the_setting_of_that_one() -> None:
    with pytest.raises(DataError) as error, settings_renamed(in_comparison):
        raise DataError("There is no column 'text'.", REMEDY)
    assert str(error.value) == "There is no column 'text'. Name the column with --set pretrain.text.field=NAME."


def test_an_error_without_a_remedy_is_passed_on_as_it_is() -> None:
    raised = ConfigError("It cannot be.")
    with pytest.raises(ConfigError) as error, settings_renamed(in_comparison):
        raise raised
    assert error.value is raised
    assert str(raised) == "It cannot be."


@pytest.mark.parametrize("error", [DataError("Wrong."), DataError("Wrong.", REMEDY)])
def test_errors_cross_processes(error: DataError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
