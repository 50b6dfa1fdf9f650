from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
import typer

from headstart.cli.compare import compare
from headstart.comparison.events import RowPretraining
from headstart.comparison.options import RENAMED, option_of_compare, with_options_of_compare
from headstart.errors import DataError
from headstart.progress import Notice, result_of


def options_of_compare() -> set[str]:
    app = typer.Typer()
    app.command()(compare)
    return {name for parameter in typer.main.get_command(app).params for name in parameter.opts}


@pytest.mark.parametrize("name", RENAMED)
def test_what_is_renamed_is_an_option_of_compare(name: str) -> None:
    words = option_of_compare(f"Do this: {name}", "bert").split()
    assert {word for word in words if word.startswith("--")} <= options_of_compare()


def test_notices_and_errors_are_renamed_and_the_rest_is_as_it_was() -> None:
    def job() -> Iterator[object]:
        yield Notice("It is gone; name some with --held-out.")
        yield RowPretraining("elmo", 1.0)
        raise DataError("Use --set optimizer.learning_rate=0.1, or name the text with --field.")

    events: list[object] = []
    with pytest.raises(DataError) as error:
        events.extend(event for event in with_options_of_compare(as_generator(job())))
    assert str(error.value) == (
        "Use --set pretrain.elmo.optimizer.learning_rate=0.1, or name the text with --set pretrain.text.field=NAME."
    )


def as_generator(events: Iterator[object], result: int = 7) -> Generator[object, None, int]:
    yield from events
    return result


def test_the_result_is_passed_on_and_a_stop_reaches_the_job() -> None:
    assert result_of(with_options_of_compare(as_generator(iter([1, 2])))) == 7
    closed: list[bool] = []

    def job() -> Generator[object, None, int]:
        try:
            yield Notice("Gone; name some with --held-out.")
            return 1
        finally:
            closed.append(True)

    running = with_options_of_compare(job())
    assert next(running) == Notice("Gone.")
    running.close()
    assert closed == [True]
