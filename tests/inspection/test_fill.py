"""Hidden pieces filled in, and who cannot do it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import headstart
from headstart.errors import ConfigError, DataError
from headstart.inspection.fill import fill
from headstart.progress import result_of

transformers = pytest.importorskip("transformers")
TEXT = "nobody [MASK] the [MASK] ."


def test_the_guesses_are_those_of_transformers(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    folder = result_of(headstart.export(pretrained_runs["bert"], "hf", tmp_path / "hf"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    encoded = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        chances = model(**encoded).logits[0].softmax(-1)[encoded["input_ids"][0] == tokenizer.mask_token_id]
    guesses = fill(headstart.load(pretrained_runs["bert"]), TEXT, most=3)
    assert len(guesses) == 2
    for mine, theirs in zip(guesses, chances, strict=True):
        best = theirs.topk(3)
        assert [guess.piece for guess in mine] == tokenizer.convert_ids_to_tokens(best.indices.tolist())
        assert [guess.probability for guess in mine] == pytest.approx(best.values.tolist(), abs=1e-5)


def test_who_cannot_fill_says_so(pretrained_runs: dict[str, Path]) -> None:
    bert = headstart.load(pretrained_runs["bert"])
    one_that_can = r".* bert-mini, which comes with headstart, can"
    with pytest.raises(ConfigError, match=f"came without the masked-LM head{one_that_can}"):
        fill(replace(bert, heads={}), TEXT)
    with pytest.raises(ConfigError, match=f"only a BERT fills in{one_that_can}"):
        fill(headstart.load(pretrained_runs["elmo"]), TEXT)
    with pytest.raises(DataError, match=r"has no \[MASK\]"):
        fill(bert, "nobody likes it")
