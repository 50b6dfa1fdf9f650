"""ELMo in its original files: options.json, weights.hdf5, and optionally precomputed vectors of a vocabulary.

The files hold the encoder without the softmax it was trained with. Their layout, with E the width of a character's
vector, F the number of filters, H cells and P projection:

    char_embed                                             (261, E), row c for character c; ours are one higher
    CNN/W_cnn_{i}, b_cnn_{i}                               (1, width, E, n), (n,)
    CNN_high_{i}/W_transform, b_transform, W_carry, b_..   (F, F), (F,); "carry" is what we call the gate
    CNN_proj/W_proj, b_proj                                (F, P), (P,); if F = P, may be missing: the identity
    RNN_{d}/RNN/MultiRNNCell/Cell{l}/LSTMCell/W_0, B       (2P, 4H), (4H,); d = 0 reads forward, 1 backward
                                              W_P_0        (H, P)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from headstart.atomic import write_text
from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.elmo import Elmo, ElmoConfig, TokenKind
from headstart.encoders.kernels.spelling import BATCH_PADDING
from headstart.encoders.lstm import FORGET_BIAS
from headstart.encoders.word_table import SpelledWords, WordTable
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import Pretrained
from headstart.text.characters import N_CHARACTERS, character_table
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.weights.elmo_options import options_of, read_options
from headstart.weights.hdf5 import Array, Datasets, open_hdf5, write_hdf5
from headstart.weights.new_folder import new_folder

OPTIONS, WEIGHTS, TOKEN_EMBEDDINGS, VOCABULARY = "options.json", "weights.hdf5", "token_embeddings.hdf5", "vocab.txt"
EMBEDDING = "embedding"
# The order of the gates: theirs are input, candidate, forget, output; ours input, forget, output, candidate.
OURS_IN_THEIRS = [0, 2, 3, 1]
THEIRS_IN_OURS = [0, 3, 1, 2]
FORGET = 1
EXACT_FORGET = "forget_bias_plus_1"
"""A dataset of our own beside B. B is the bias without the 1 that TensorFlow adds to the forget gate's; where
subtracting it in float32 loses digits, this has the exact sum."""
BLANK = " \t\r\n"
IN_ALLENNLP: dict[TokenKind, str] = {
    "words": (
        f"AllenNLP opens no ELMo without a character network. Its ElmoLstm reads {WEIGHTS}, and takes the vectors of "
        f"{TOKEN_EMBEDDINGS}; docs/weights.md shows how."
    ),
    "both": (
        f"AllenNLP opens these files, but it spells every word and does not read {TOKEN_EMBEDDINGS}, so that words of "
        f"{VOCABULARY} get other vectors than here, without a warning. docs/weights.md shows how to give it the table."
    ),
}
"""What to know about the files of an ELMo with a table of words."""
WORDS_AT_ONCE = 2048


def find_elmo(folder: Path) -> tuple[Path, ...] | None:
    """The options and weights in a folder, or None if it has no ELMo. Several ELMos are an error.

    If there is exactly one of each, precomputed vectors and their vocabulary follow.
    """
    if not folder.is_dir():
        return None
    options, weights, vectors, vocabularies = (
        sorted(path for path in folder.glob(pattern) if path.is_file())
        for pattern in (f"*{OPTIONS}", f"*{WEIGHTS}", f"*{TOKEN_EMBEDDINGS}", "*vocab*.txt")
    )
    if not options or not weights:
        return None
    for found in (options, weights):
        if len(found) > 1:
            raise CheckpointError(
                f"{folder}: holds several ELMos ({', '.join(path.name for path in found)}); put each into a folder of "
                "its own."
            )
    if len(vectors) == len(vocabularies) == 1:
        return options[0], weights[0], vectors[0], vocabularies[0]
    return options[0], weights[0]


def read_elmo(
    options: Path, weights: Path, token_embeddings: Path | None = None, vocabulary: Path | None = None
) -> Pretrained:
    """An ELMo from its original files.

    token_embeddings: precomputed vectors of the vocabulary's words, used instead of the character network as long as
    that is not trained. The vectors of other words are always computed.
    """
    config = read_options(options)
    words = read_vocabulary(vocabulary) if vocabulary is not None else list(SPECIALS)
    entries = (*SPECIALS, *(word for word in words if word not in SPECIALS))
    if token_embeddings is not None and vocabulary is None:
        raise ConfigError(f"{token_embeddings}: these vectors need the vocabulary that they were computed for.")
    if token_embeddings is None and config.tokens != "characters":
        raise CheckpointError(
            f"{options}: this ELMo has a table of words; give {TOKEN_EMBEDDINGS} and {VOCABULARY} as well, in a folder "
            "with the other two files."
        )
    vectors = None
    if token_embeddings is not None:
        vectors = read_token_embeddings(token_embeddings, len(words), config.projection)
    with open_hdf5(weights) as file:
        parts = our_tensors(file, config)
        notices = notices_of(file.unread(), options)
    if vectors is not None and config.tokens != "characters":
        line = {word: number for number, word in enumerate(words)}
        parts["words.weight"] = vectors[[line[word] for word in entries]]
    with torch.device("meta"):  # random weights would be overwritten at once
        encoder = Elmo(config, len(entries))
    encoder.load_state_dict(parts, assign=True)
    if vectors is not None and isinstance(encoder.tokens, CharacterNetwork):
        encoder.tokens.remember(torch.from_numpy(character_table(words)), vectors)
    tokenizer = WordTokenizer(Vocabulary(entries, np.zeros(len(entries), dtype=np.int64)), lowercase=False)
    return Pretrained(encoder, tokenizer, name=weights.resolve().parent.name, notices=notices)


def notices_of(unread: list[str], options: Path) -> tuple[str, ...]:
    if not unread:
        return ()
    some = ", ".join(f"'{name}'" for name in unread[:2]) + (" and others" if len(unread) > 2 else "")
    return (f"Not used: {len(unread)} datasets of the weights that {options.name} does not describe ({some}).",)


def write_elmo(pretrained: Pretrained, folder: Path, words: Sequence[str] | None = None) -> None:
    """The encoder as options.json and weights.hdf5 in a new folder. `read_elmo` restores it to the bit.

    A table of words is written beside them, as vectors of the vocabulary. words: of an encoder without one, also write
    the vectors of these words, and a vocabulary of the special tokens and these words. The projection is always
    written, but the original code does not apply it if there are as many filters as the projection is wide.
    """
    encoder = pretrained.encoder
    if not isinstance(encoder, Elmo):
        raise ConfigError(f"Only an ELMo can be written as {OPTIONS} and {WEIGHTS}; this is a {pretrained.kind}.")
    if isinstance(encoder.tokens, WordTable):
        if words is not None:
            raise ConfigError("This ELMo has a table of words, all of which are written; leave the list of words out.")
        words = vocabulary_of(pretrained)
    entries = None if words is None else entries_of(words)
    with new_folder(folder) as unfinished:
        write_text(unfinished / OPTIONS, options_of(encoder.config))
        write_hdf5(unfinished / WEIGHTS, their_arrays(encoder))
        if entries is not None:
            write_text(unfinished / VOCABULARY, "\n".join([*entries, ""]))
            write_hdf5(unfinished / TOKEN_EMBEDDINGS, {EMBEDDING: word_vectors(encoder, entries)})


def our_tensors(file: Datasets, config: ElmoConfig) -> dict[str, Tensor]:
    """The weights of a file by our names."""
    prefix = {"characters": "characters.", "both": "words.characters."}.get(config.tokens)
    arrays = {} if prefix is None else {prefix + name: a for name, a in character_arrays(file, config).items()}
    for depth in range(config.layers):
        for name, array in lstm_arrays(file, config, depth).items():
            arrays[f"layers.{depth}.{name}"] = array
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def character_arrays(file: Datasets, config: ElmoConfig) -> dict[str, Array]:
    E, P, F = config.char_width, config.projection, sum(count for _, count in config.filters)
    # Of 262 rows, the first is that of the batch's padding, which is always zero here.
    published = file.read("char_embed", (N_CHARACTERS - 1, E), (N_CHARACTERS, E))[-(N_CHARACTERS - 1) :]
    arrays = {"characters": np.concatenate([np.zeros((1, E), np.float32), published])}
    for i, (width, count) in enumerate(config.filters):
        arrays[f"filters.{i}"] = file.read(f"CNN/W_cnn_{i}", (1, width, E, count))[0]
    biases = [file.read(f"CNN/b_cnn_{i}", (count,)) for i, (_, count) in enumerate(config.filters)]
    arrays["filter_bias"] = np.concatenate(biases)
    for i in range(config.highway):
        weights = [file.read(f"CNN_high_{i}/W_{part}", (F, F)).T for part in ("transform", "carry")]
        biases = [file.read(f"CNN_high_{i}/b_{part}", (F,)) for part in ("transform", "carry")]
        arrays[f"highways.{i}.transform_and_gate.weight"] = np.concatenate(weights)
        arrays[f"highways.{i}.transform_and_gate.bias"] = np.concatenate(biases)
    if F == P and "CNN_proj" not in file:
        arrays["projection.weight"], arrays["projection.bias"] = np.eye(P, dtype=np.float32), np.zeros(P, np.float32)
    else:
        arrays["projection.weight"] = file.read("CNN_proj/W_proj", (F, P)).T
        arrays["projection.bias"] = file.read("CNN_proj/b_proj", (P,))
    return arrays


def cell_name(direction: int, depth: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"


def lstm_arrays(file: Datasets, config: ElmoConfig, depth: int) -> dict[str, Array]:
    """One layer, with its directions stacked."""
    H, P = config.cell, config.projection
    cells = [cell_name(direction, depth) for direction in range(2 if config.directions == "both" else 1)]
    weights = [file.read(f"{cell}/W_0", (2 * P, 4 * H)) for cell in cells]
    biases = [reordered(file.read(f"{cell}/B", (4 * H,)), OURS_IN_THEIRS) for cell in cells]
    for cell, bias in zip(cells, biases, strict=True):
        forget = bias[FORGET * H : (FORGET + 1) * H]
        exact = file.read(f"{cell}/{EXACT_FORGET}", (H,)) if f"{cell}/{EXACT_FORGET}" in file else None
        # Another tool may have changed B without knowing our dataset; then B is right.
        agrees = exact is not None and np.array_equal(exact - np.float32(FORGET_BIAS), forget)
        forget[:] = exact if agrees else forget + np.float32(FORGET_BIAS)
    return {
        "weight": np.stack([reordered(weight, OURS_IN_THEIRS) for weight in weights]),
        "bias": np.stack(biases),
        "projection_weight": np.stack([file.read(f"{cell}/W_P_0", (H, P)) for cell in cells]),
    }


def reordered(gates: Array, order: list[int]) -> Array:
    """The gates, (..., 4H), in another order."""
    return gates.reshape(*gates.shape[:-1], 4, -1)[..., order, :].reshape(gates.shape)


def their_arrays(encoder: Elmo) -> dict[str, Array]:
    """The encoder's weights by the names of the files."""
    ours = {name: array_of(tensor) for name, tensor in encoder.state_dict().items()}
    network = network_of(encoder)
    arrays = {} if network is None else their_characters(network, encoder.config)
    for depth in range(encoder.config.layers):
        for direction in range(encoder.directions):
            layer = {
                part: ours[f"layers.{depth}.{part}"][direction] for part in ("weight", "bias", "projection_weight")
            }
            arrays |= {f"{cell_name(direction, depth)}/{name}": array for name, array in their_cell(layer).items()}
    return arrays


def network_of(encoder: Elmo) -> CharacterNetwork | None:
    """What spells words, if anything does."""
    tokens = encoder.tokens
    if isinstance(tokens, SpelledWords):
        return tokens.characters
    return tokens if isinstance(tokens, CharacterNetwork) else None


def their_characters(network: CharacterNetwork, config: ElmoConfig) -> dict[str, Array]:
    ours = {name: array_of(tensor) for name, tensor in network.state_dict().items()}
    F = len(ours["filter_bias"])
    arrays = {"char_embed": np.delete(ours["characters"], BATCH_PADDING, axis=0)}
    ends = np.cumsum([count for _, count in config.filters])
    for i, (end, (_, count)) in enumerate(zip(ends, config.filters, strict=True)):
        arrays[f"CNN/W_cnn_{i}"] = ours[f"filters.{i}"][None]
        arrays[f"CNN/b_cnn_{i}"] = ours["filter_bias"][end - count : end]
    for i in range(config.highway):
        weight, bias = (ours[f"highways.{i}.transform_and_gate.{part}"] for part in ("weight", "bias"))
        for part, rows in (("transform", slice(F)), ("carry", slice(F, None))):
            arrays[f"CNN_high_{i}/W_{part}"], arrays[f"CNN_high_{i}/b_{part}"] = weight[rows].T, bias[rows]
    arrays["CNN_proj/W_proj"] = ours["projection.weight"].T
    arrays["CNN_proj/b_proj"] = ours["projection.bias"]
    return arrays


def their_cell(layer: Mapping[str, Array]) -> dict[str, Array]:
    """One direction of one layer."""
    bias = layer["bias"].copy()
    H = len(bias) // 4
    forget = bias[FORGET * H : (FORGET + 1) * H]
    exact = forget.copy()
    forget -= np.float32(FORGET_BIAS)
    arrays = {
        "W_0": reordered(layer["weight"], THEIRS_IN_OURS),
        "B": reordered(bias, THEIRS_IN_OURS),
        "W_P_0": layer["projection_weight"],
    }
    if not np.array_equal(forget + np.float32(FORGET_BIAS), exact):
        arrays[EXACT_FORGET] = exact
    return arrays


def array_of(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().float().numpy()
    return array


def read_vocabulary(path: Path) -> list[str]:
    """One word per line."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise CheckpointError(f"{path}: the vocabulary cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: the vocabulary is not UTF-8 ({error.reason} at byte {error.start}).") from error
    words = [line.strip(BLANK) for line in lines]
    if not words[-1]:
        words.pop()
    seen: set[str] = set()
    for number, word in enumerate(words, start=1):
        if not word or word in seen:
            what = f"the word {word[:60]!r} is there twice" if word else "the line is empty"
            raise CheckpointError(f"{path}:{number}: {what}; wanted one word per line, each once.")
        seen.add(word)
    missing = [special for special in SPECIALS if special not in seen]
    if missing:
        raise CheckpointError(f"{path}: {missing[0]} is missing; an ELMo's vocabulary has {', '.join(SPECIALS)}.")
    return words


def read_token_embeddings(path: Path, V: int, P: int) -> Tensor:
    """(V, P): row i belongs to line i of the vocabulary."""
    with open_hdf5(path) as file:
        rows = (file.shape(EMBEDDING) or (V,))[0]
        if rows != V:
            raise CheckpointError(
                f"{path}: '{EMBEDDING}' has {rows:,} rows, but the vocabulary has {V:,} words; row i belongs to "
                "line i. Give the vocabulary that these vectors were computed for."
            )
        return torch.from_numpy(file.read(EMBEDDING, (V, P)))


def entries_of(words: Sequence[str]) -> list[str]:
    """The special tokens, then these words, each of which has to fit on a line of its own."""
    for word in words:
        if not word or word != word.strip(BLANK) or "\n" in word or word.encode("utf-8", "ignore").decode() != word:
            raise ConfigError(f"The word {word!r} cannot be written as a line of a vocabulary. Leave it out.")
    return list(dict.fromkeys([*SPECIALS, *words]))


def vocabulary_of(pretrained: Pretrained) -> Sequence[str]:
    if not isinstance(pretrained.tokenizer, WordTokenizer):
        raise ConfigError("An ELMo with a table of words needs a tokenizer of words.")
    return pretrained.tokenizer.vocabulary.words


@torch.no_grad()
def word_vectors(encoder: Elmo, words: Sequence[str]) -> Array:
    """(V, P), from the table of words where there is one, else computed from the words' characters."""
    tokens = encoder.tokens
    if isinstance(tokens, WordTable):
        return array_of(tokens.weight)
    device = next(tokens.parameters()).device
    blocks = (words[start : start + WORDS_AT_ONCE] for start in range(0, len(words), WORDS_AT_ONCE))
    spelled = (torch.from_numpy(character_table(block)).to(device) for block in blocks)
    return np.concatenate([array_of(cast("CharacterNetwork", tokens).words(characters)) for characters in spelled])
