"""ELMo's options.json: the settings of an encoder under the names of the original code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headstart.config import Depth, Width, lower_first
from headstart.encoders.elmo import ElmoConfig, TokenKind
from headstart.errors import CheckpointError
from headstart.text.characters import MAX_CHARACTERS


class Part(BaseModel):
    """A section of options.json. Keys that are not listed here do not matter to the encoder."""

    model_config = ConfigDict(frozen=True, strict=True)


class LstmOptions(Part):
    dim: Width
    projection_dim: Width
    n_layers: Depth
    use_skip_connections: bool
    cell_clip: float | None = Field(default=None, gt=0, le=1e30)
    proj_clip: float | None = Field(default=None, gt=0, le=1e30)


class CharacterEmbedding(Part):
    dim: Width


class CharacterOptions(Part):
    embedding: CharacterEmbedding
    filters: list[list[int]]
    n_highway: int | None = Field(default=None, ge=0)
    n_characters: Literal[261, 262]
    max_characters_per_token: int
    activation: Literal["relu", "tanh"]


class Options(Part):
    lstm: LstmOptions
    char_cnn: CharacterOptions | None = None
    """Left out in a model that has a table of words in its place."""
    tokens: TokenKind | None = None
    """Ours: a model with a character network may also have a table of words."""
    bidirectional: bool = True
    dropout: float | None = Field(default=None, ge=0, lt=1)


def read_options(path: Path) -> ElmoConfig:
    try:
        options = Options.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: the options of an ELMo cannot be read ({error.strerror}).") from error
    except ValidationError as error:
        raise CheckpointError(f"{path}: {what_is_wrong(error)}") from error
    characters, lstm = options.char_cnn, options.lstm
    if characters is not None and characters.max_characters_per_token != MAX_CHARACTERS:
        raise CheckpointError(
            f"{path}: 'char_cnn.max_characters_per_token' is {characters.max_characters_per_token}; only models with "
            f"{MAX_CHARACTERS}, as all published ones have, can be read."
        )
    settings: dict[str, Any] = {} if options.dropout is None else {"dropout": options.dropout}
    if characters is None:
        settings["tokens"] = "words"
    else:
        settings |= {
            "tokens": "both" if options.tokens == "both" else "characters",
            "filters": characters.filters,
            "char_width": characters.embedding.dim,
            "highway": characters.n_highway or 0,
            "activation": characters.activation,
        }
    try:
        return ElmoConfig(
            cell=lstm.dim,
            projection=lstm.projection_dim,
            layers=lstm.n_layers,
            directions="both" if options.bidirectional else "forward",
            cell_clip=lstm.cell_clip,
            projection_clip=lstm.proj_clip,
            residual=lstm.use_skip_connections,
            **settings,
        )
    except ValidationError as error:  # the other fields were checked as options
        raise CheckpointError(
            f"{path}: 'char_cnn.filters' must be [width, count] pairs with widths from 1 to {MAX_CHARACTERS}; got "
            f"{str(settings.get('filters'))[:80]}."
        ) from error


def what_is_wrong(error: ValidationError) -> str:
    """The first problem, as a sentence."""
    first = error.errors()[0]
    key, message = ".".join(map(str, first["loc"])), lower_first(first["msg"])
    if first["type"] == "json_invalid":
        return f"not a JSON file ({message.removeprefix('invalid JSON: ')})."
    if first["type"] == "missing":
        return f"the key '{key}' is missing, which the options of an ELMo have."
    return f"'{key or 'options'}': {message}; got {str(first['input'])[:80]!r}."


def options_of(config: ElmoConfig) -> str:
    """options.json of an encoder.

    n_characters: the original code trains with 261, the rows in the file, and wants 262 in the options to read it.
    """
    characters = None
    if config.tokens != "words":
        characters = CharacterOptions(
            embedding=CharacterEmbedding(dim=config.char_width),
            filters=config.filters,
            n_highway=config.highway,
            n_characters=262,
            max_characters_per_token=MAX_CHARACTERS,
            activation=config.activation,
        )
    lstm = LstmOptions(
        dim=config.cell,
        projection_dim=config.projection,
        n_layers=config.layers,
        use_skip_connections=config.residual,
        cell_clip=config.cell_clip,
        proj_clip=config.projection_clip,
    )
    both = config.directions == "both"
    tokens: TokenKind | None = "both" if config.tokens == "both" else None
    options = Options(lstm=lstm, char_cnn=characters, tokens=tokens, bidirectional=both, dropout=config.dropout)
    absent = {name for name in ("char_cnn", "tokens") if getattr(options, name) is None}
    return options.model_dump_json(indent=2, exclude=absent) + "\n"
