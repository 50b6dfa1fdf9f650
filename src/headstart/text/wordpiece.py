"""BERT's WordPiece tokenizer: text to pieces and their ids, and the files that other tools open."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from headstart.atomic import write_text
from headstart.text.encoding import Encoding, SentenceIds, UnitIds, places_of
from headstart.text.formats import without_surrogates
from headstart.text.runs import RunCache, flatten, to_bytes

PREFIX = "##"
"""Marks a piece that continues a word."""
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_SEQUENCE = 512  # BERT's positions
LONGEST_WORD = 100  # BERT's: a longer word is [UNK]
VOCAB, TOKENIZER, SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
FEW_PARTS = 32
"""For fewer, starting the library's threads takes longer than the work."""
# White space to Python, but control characters to BERT, which removes them and joins the text around them.
CONTROL_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
PLAIN_PARTS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9]")


class WordPieceTokenizer:
    """Pieces of words. The ids equal those of transformers' BertTokenizer for the same vocabulary."""

    kind = "wordpiece"

    def __init__(self, backend: tokenizers.Tokenizer, lowercase: bool) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.lowercase = lowercase
        serialised = backend.to_str()
        self.fingerprint = hashlib.sha256(f"wordpiece {serialised}".encode()).hexdigest()
        self.pad, self.unknown, self.cls, self.sep, self.mask = (self.id(special) for special in SPECIALS)
        description = json.loads(serialised)
        self._normalizer: dict[str, Any] = description["normalizer"] or {}
        self._splits_at_space = splits_at_space(description)
        self._marks_words = self._splits_at_space and marks_words(description)
        # If so, splitting a run without brackets at punctuation never cuts an added token.
        self._added_have_brackets = all("[" in token["content"] for token in description["added_tokens"])
        self._cache = RunCache()

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size())

    def id(self, piece: str) -> int:
        """The piece's id, or that of [UNK]."""
        found = self.backend.token_to_id(piece)
        return int(self.backend.token_to_id("[UNK]") if found is None else found)

    @property
    def pieces(self) -> list[str]:
        """Every piece, in the order of the ids."""
        vocabulary = self.backend.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def encode(self, text: str) -> Encoding:
        """Words are what BERT's pre-tokenizer gives, by white space and punctuation."""
        found = self.backend.encode(without_surrogates(text), add_special_tokens=False)
        # The library's word numbers have gaps where it dropped white space; ours have none.
        _, words = np.unique(np.array(found.word_ids, dtype=np.int32), return_inverse=True)
        return Encoding(
            text,
            found.tokens,
            np.array(found.ids, dtype=np.int32),
            np.array(found.offsets, dtype=np.int32).reshape(-1, 2),
            words.astype(np.int32),
        )

    def encode_words(self, words: Sequence[str]) -> Encoding:
        """A word without pieces, such as a control character, is [UNK]."""
        plain = [without_surrogates(word) for word in words]
        found = self.backend.encode(plain, is_pretokenized=True, add_special_tokens=False)
        starts = np.array(places_of(words), dtype=np.int32).reshape(-1, 2)
        of_word = np.array(found.word_ids, dtype=np.int32)
        missing = np.setdiff1d(np.arange(len(words), dtype=np.int32), of_word)
        order = np.argsort(np.concatenate([of_word, missing]), kind="stable")
        of_word = np.concatenate([of_word, missing])[order]
        offsets = np.array(found.offsets, dtype=np.int32).reshape(-1, 2)
        whole = np.stack([np.zeros(len(missing)), np.diff(starts[missing]).ravel()], axis=1).astype(np.int32)
        pieces = found.tokens + ["[UNK]"] * len(missing)  # once: the library makes a new list at every look
        return Encoding(
            " ".join(words),
            [pieces[i] for i in order],
            np.array(found.ids + [self.unknown] * len(missing), dtype=np.int32)[order],
            np.concatenate([offsets, whole])[order] + starts[of_word, :1],
            of_word,
        )

    def encode_ids(self, text: str) -> UnitIds:
        """Only the ids and words of `encode`, several times faster, through the cache."""
        if not self._marks_words:
            found = self.encode(text)
            return UnitIds(found.ids, found.words)
        self._cache.make_room()
        ids = np.frombuffer(b"".join(self._pieces_of(self._runs(text))), dtype=np.int32)
        return UnitIds(ids, self._begins_word[ids].cumsum(dtype=np.int32) - 1)

    @cached_property
    def _begins_word(self) -> NDArray[np.bool_]:
        """By id, whether the piece starts a word."""
        ids = self.backend.get_vocab()
        begins = np.ones(max(ids.values()) + 1, dtype=bool)
        begins[[id for piece, id in ids.items() if piece.startswith(PREFIX)]] = False
        return begins

    def encode_sentences(self, sentences: list[str]) -> SentenceIds:
        """The same ids as `encode`, many times faster: pieces never span white space, so runs can be cached."""
        self._cache.make_room()
        runs: list[str] = []
        counts: list[int] = []
        for sentence in sentences:
            mine = self._runs(sentence)
            runs += mine
            counts.append(len(mine))
        ids, lengths = flatten(self._pieces_of(runs), counts)
        return SentenceIds(ids, lengths, [])

    def _runs(self, text: str) -> list[str]:
        text = without_surrogates(text)
        whole = not self._splits_at_space or CONTROL_SPACE.search(text)
        return [text] if whole else text.split()

    def _pieces_of(self, runs: list[str]) -> list[bytes]:
        """The ids of each run, as bytes."""
        known = self._cache.get
        pieces = [known(run, b"") for run in runs]
        if not all(pieces):
            missing = [place for place, piece in enumerate(pieces) if not piece]
            learnt = self._learn_runs({runs[place]: None for place in missing})
            for place in missing:
                pieces[place] = learnt[runs[place]]
        return pieces

    def _learn_runs(self, runs: Iterable[str]) -> dict[str, bytes]:
        """Encode runs that are not cached. Each entry is read once: another thread may clear the cache meanwhile."""
        parts = {run: self._parts(run) for run in runs}
        pieces = {part: self._cache.get(part, b"") for mine in parts.values() for part in mine}
        new = [part for part, known in pieces.items() if not known]
        for part, found in zip(new, self._encode_parts(new), strict=True):
            pieces[part] = to_bytes(found.ids)
            self._cache.keep(part, pieces[part])
        learnt = {run: b"".join([pieces[part] for part in mine]) for run, mine in parts.items()}
        for run, ids in learnt.items():
            if run not in self._cache:
                self._cache.keep(run, ids)
        return learnt

    def _encode_parts(self, parts: list[str]) -> list[tokenizers.Encoding]:
        if len(parts) < FEW_PARTS:
            return [self.backend.encode(part, add_special_tokens=False) for part in parts]
        found: list[tokenizers.Encoding] = self.backend.encode_batch_fast(parts, add_special_tokens=False)
        return found

    def _parts(self, run: str) -> list[str]:
        """BERT splits at punctuation, so "good", "good," and "(good)" need only one call of the library."""
        splits = self._splits_at_space and self._added_have_brackets
        plain = splits and run.isascii() and run.isprintable() and "[" not in run
        return PLAIN_PARTS.findall(run) if plain else [run]

    def save(self, directory: Path, *, longest: int = LONGEST_SEQUENCE) -> None:
        """Write tokenizer.json for fast tokenizers, and vocab.txt and tokenizer_config.json for the others.

        longest: the model's maximum sequence length, at which transformers truncates.
        """
        write_text(directory / TOKENIZER, self.backend.to_str(pretty=True))
        write_text(directory / VOCAB, "".join(f"{piece}\n" for piece in self.pieces))
        settings = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            # Without these keys, transformers uses its defaults and ignores tokenizer.json.
            "strip_accents": self._normalizer.get("strip_accents"),
            "tokenize_chinese_chars": self._normalizer.get("handle_chinese_chars", True),
            "model_max_length": longest,
        }
        write_text(directory / SETTINGS, json.dumps(settings, indent=2) + "\n")


def build_wordpiece(
    pieces: list[str], lowercase: bool, *, strip_accents: bool | None = None, split_chinese: bool = True
) -> WordPieceTokenizer:
    """BERT's tokenizer with these pieces, ids by position. The special tokens must be among them.

    strip_accents: None follows `lowercase`. split_chinese: every Chinese character is a word.
    """
    ids = {piece: id for id, piece in enumerate(pieces)}
    backend = tokenizers.Tokenizer(
        models.WordPiece(
            ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD, continuing_subword_prefix=PREFIX
        )
    )
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents, handle_chinese_chars=split_chinese
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    backend.add_special_tokens(list(SPECIALS))
    return WordPieceTokenizer(backend, lowercase)


def splits_at_space(description: dict[str, Any]) -> bool:
    """Whether the ids of a text are the ids of its runs between white space, concatenated."""
    plain_tokens = all(
        not (token["lstrip"] or token["rstrip"] or token["single_word"]) and not re.search(r"\s", token["content"])
        for token in description["added_tokens"]
    )
    normalizer, splitter = description["normalizer"] or {}, description["pre_tokenizer"] or {}
    return plain_tokens and normalizer.get("type") == "BertNormalizer" and splitter.get("type") == "BertPreTokenizer"


def marks_words(description: dict[str, Any]) -> bool:
    """Whether exactly the pieces without ## start a word.

    BERT makes every # of the text a word of its own, so no longer word starts with one.
    """
    added = any(token["content"].startswith(PREFIX) for token in description["added_tokens"])
    return description["model"].get("continuing_subword_prefix") == PREFIX and not added
