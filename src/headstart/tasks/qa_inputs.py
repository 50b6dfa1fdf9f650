"""The questions that `predict` answers: SQuAD files, JSON lines, or questions about one text file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from headstart.errors import DataError
from headstart.tasks.questions import Question, with_own_ids
from headstart.tasks.squad import SQUAD, QaInputConfig, in_articles, in_json_lines, new_question, squad_document
from headstart.text.files import Source
from headstart.text.formats import without_surrogates
from headstart.text.lines import STANDARD_INPUT, StandardInput

TWO_WAYS = (
    'Give JSON lines such as {"context": "...", "question": "..."}, or one text file with --context FILE --question '
    '"...".'
)


def read_unanswered(source: str, config: QaInputConfig) -> Iterator[Question]:
    """The questions of a file, or of standard input if `source` is "-", without their answers.

    A file whose name ends in .json, also with .gz, is a SQuAD file. Any other, and standard input, is JSON lines,
    which are read as they come; the keys of a line are kept in `record`.
    """
    if source == STANDARD_INPUT:
        yield from in_lines(StandardInput(), config)
        return
    path = Path(source).expanduser()
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a file of questions.")
    if path.name.lower().endswith(SQUAD):
        for question, _ in with_own_ids(in_articles(squad_document(path), path, labelled=False)):
            yield question
        return
    with Source(path) as opened:
        yield from in_lines(opened, config)


def in_lines(source: Source, config: QaInputConfig) -> Iterator[Question]:
    # An id may repeat here: it may be that of a document. Only predictions by id need one for each question.
    for found in in_json_lines(source, object_lines(source), config, labelled=False):
        yield found.question


def object_lines(source: Source) -> Iterator[str]:
    """The lines of a file, each of which must look like a JSON object."""
    for line in source.lines():
        if line.strip() and not line.lstrip().startswith("{"):
            raise DataError(
                f"{source.path}:{source.line}: expected a JSON object with a context and a question, got "
                f"{line.strip()!r:.60}. {TWO_WAYS}"
            )
        yield line


def read_context(path: Path) -> str:
    """A text file, or standard input (-), as one context, with every character of it, line breaks included."""
    with StandardInput() if str(path) == STANDARD_INPUT else Source(path) as source:
        context = "".join(source.chunks())
    if not context.strip():
        raise DataError(f"{source.path}: is empty. Give the text that the questions are about.")
    return context


def questions_about(context: str, questions: Iterable[str], where: str, blank: bool = False) -> Iterator[Question]:
    """Questions about one context, numbered from 1. where: the file of the context, for messages.

    blank: an empty question is no error; as a blank line of a file, it gets an empty answer.
    """
    context = without_surrogates(context)
    for number, question in enumerate(questions, 1):
        id = f"question {number}"
        if blank and not question.strip():
            yield Question(id, "", context, where=f"{where}, {id}")
        else:
            yield new_question(id, question, context, f"{where}, {id}")
