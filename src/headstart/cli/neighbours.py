"""`headstart neighbours SRC WORD`: the words with the nearest vectors, in the vocabulary or in sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from headstart.cli.fill import Most, check_most
from headstart.cli.options import Quiet, SourceArgument
from headstart.cli.weights import watched

MOST_SENTENCES = 2_000


def neighbours(
    source: SourceArgument,
    word: Annotated[str, typer.Argument(metavar="WORD")],
    sentence: Annotated[
        str | None, typer.Option("--in", metavar="SENTENCE", help="The sentence that WORD stands in.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--among", metavar="TEXT", help="Text whose sentences are searched.")
    ] = None,
    most: Most = 8,
    quiet: Quiet = False,
) -> None:
    """The words nearest to WORD: of the vocabulary (word vectors), or in other sentences (ELMo, BERT)."""
    from headstart.errors import ConfigError
    from headstart.inspection.neighbours import neighbours_in_context, word_neighbours
    from headstart.weights.sources import open_source

    check_most(most)
    pretrained = watched(open_source(source), quiet)
    if not pretrained.encoder.contextual:
        for found in word_neighbours(pretrained, word, most):
            typer.echo(f"{found.cosine:6.3f}  {found.word}")
        return
    if sentence is None or not text:
        raise ConfigError(
            f"{source}: a word's vector in {pretrained.kind} depends on its sentence: "
            f"give --in SENTENCE with '{word}' in it, and --among TEXT to search."
        )
    for found in neighbours_in_context(pretrained, sentence, word, first_sentences(text), most):
        typer.echo(f"{found.cosine:6.3f}  {found.word}:  {found.sentence}")


def first_sentences(sources: list[str]) -> list[str]:
    """The first sentences of a text, one by one."""
    from headstart.text.documents import TextConfig, discover, read_blocks
    from headstart.text.sentences import sentence_spans

    found: list[str] = []
    for block in read_blocks(discover(sources), TextConfig()):
        found += [block.text[start:end] for start, end in sentence_spans(block.text, False)]
        if len(found) >= MOST_SENTENCES:
            break
    return [" ".join(sentence.split()) for sentence in found[:MOST_SENTENCES] if len(sentence) < 400]
