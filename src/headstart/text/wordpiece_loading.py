"""Loads a WordPiece tokenizer from the files of Hugging Face: tokenizer.json, or vocab.txt with its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers  # type: ignore[import-untyped]

from headstart.errors import DataError
from headstart.text.wordpiece import SETTINGS, SPECIALS, TOKENIZER, VOCAB, WordPieceTokenizer, build_wordpiece


def load_wordpiece(path: Path, *, lowercase: bool | None = None) -> WordPieceTokenizer:
    """From vocab.txt, tokenizer.json or a folder with either.

    lowercase: None takes what the files say. A vocab.txt alone says it by its pieces: those of an uncased model have no
    capital letter.
    """
    if path.is_dir():
        path = path / (TOKENIZER if (path / TOKENIZER).exists() else VOCAB)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"{path}: the WordPiece vocabulary cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the WordPiece vocabulary is not UTF-8 (byte {error.start}).") from error
    return from_json(text, path, lowercase) if path.suffix == ".json" else from_vocab(text, path, lowercase)


def from_vocab(text: str, path: Path, lowercase: bool | None) -> WordPieceTokenizer:
    pieces = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    check_specials(pieces, path)
    first_lines: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if first_lines.setdefault(piece, line) != line:
            raise DataError(f"{path}:{line}: the piece {piece!r} is already on line {first_lines[piece]}.")
    settings = read_settings(path.parent / SETTINGS)
    says = {key: value for key, value in settings.items() if isinstance(value, bool)}
    if lowercase is None:
        lowercase = says.get("do_lower_case")
    if lowercase is None:
        lowercase = not any(piece != piece.lower() for piece in pieces if not is_bracketed(piece))
    return build_wordpiece(
        pieces,
        lowercase,
        strip_accents=says.get("strip_accents"),
        split_chinese=says.get("tokenize_chinese_chars", True),
    )


def from_json(text: str, path: Path, lowercase: bool | None) -> WordPieceTokenizer:
    try:
        description = json.loads(text)
        kind = description["model"].get("type")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: not a tokenizer of the tokenizers library ({error}).") from error
    if kind != "WordPiece":
        raise DataError(f"{path}: a WordPiece tokenizer is needed, got one of type {kind}.")
    check_ids(description, path)
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"{path}: the tokenizers library cannot read it ({error}).") from error
    check_specials(backend.get_vocab(), path)
    says = bool((description.get("normalizer") or {}).get("lowercase", False))
    if lowercase is not None and lowercase != says:
        raise DataError(
            f"{path}: has lowercase = {says}, but {lowercase} was asked for. Leave it out, or use its vocab.txt."
        )
    return WordPieceTokenizer(backend, says)


def check_ids(description: dict[str, Any], path: Path) -> None:
    """Refuse ids with gaps: the library counts up to the highest, and aborts the process where that is huge."""
    vocabulary, added = description["model"].get("vocab"), description.get("added_tokens") or []
    if not isinstance(vocabulary, dict) or not isinstance(added, list):
        raise DataError(f"{path}: not a tokenizer: 'vocab' must be an object of pieces and ids, 'added_tokens' a list.")
    ids = [*vocabulary.values(), *(token.get("id") for token in added if isinstance(token, dict))]
    wrong = [id for id in ids if type(id) is not int]
    if wrong or set(ids) != set(range(len(set(ids)))):
        got = f"{wrong[0]!r:.60}" if wrong else f"{len(set(ids)):,} different ones up to {max(ids):,}"
        raise DataError(f"{path}: the ids of the pieces must be the whole numbers from 0, without a gap; got {got}.")


def check_specials(pieces: list[str] | dict[str, int], path: Path) -> None:
    missing = [special for special in SPECIALS if special not in pieces]
    if missing:
        raise DataError(
            f"{path}: has no piece {', '.join(missing)}; a WordPiece vocabulary needs {' '.join(SPECIALS)}."
        )


def read_settings(path: Path) -> dict[str, Any]:
    """tokenizer_config.json, or {} if there is none."""
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(settings, dict):
        raise DataError(f"{path}: holds a JSON {type(settings).__name__}; wanted an object with keys.")
    return settings


def is_bracketed(piece: str) -> bool:
    return piece.startswith("[") and piece.endswith("]")
