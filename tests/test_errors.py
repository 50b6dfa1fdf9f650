from __future__ import annotations

import pickle

import pytest

from headstart.errors import LONGEST, ConfigError, DataError, Remedy, settings_renamed

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


def test_a_message_is_one_printable_line_whatever_the_file_held() -> None:
    assert str(DataError("There are: a\x1b]0;x\x07, b\ud800\nand c.")) == "There are: a\\x1b]0;x\\x07, b\\ud800 and c."
    assert str(DataError("Köln: 'schön 🙂'.")) == "Köln: 'schön 🙂'."


def test_a_message_with_a_long_name_keeps_its_beginning_and_its_end() -> None:
    message = str(DataError(f"a.csv:2: has no key 'text'; there are: {'y' * 100_000}. Rename one.", REMEDY))
    assert message.startswith("a.csv:2: has no key 'text'; there are: yyy")
    assert message.endswith("yyy. Rename one. Name the column with --field.")
    assert len(message) < LONGEST + 60


def test_an_error_without_a_remedy_is_passed_on_as_it_is() -> None:
    raised = ConfigError("It cannot be.")
    with pytest.raises(ConfigError) as error, settings_renamed(in_comparison):
        raise raised
    assert error.value is raised
    assert str(raised) == "It cannot be."


@pytest.mark.parametrize("error", [DataError("Wrong."), DataError("Wrong.", REMEDY)])
def test_errors_cross_processes(error: DataError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
