"""BERT folders of Hugging Face, with transformers as the reference in both directions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headstart.checksums import SUMS
from headstart.config import cache_home
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.heads.language_model import MaskedLMHead
from headstart.heads.plain import head_logits
from headstart.pretrained import Pretrained, weights_of
from headstart.text.wordpiece import SPECIALS, build_wordpiece
from headstart.weights import huggingface
from headstart.weights.huggingface import is_huggingface, read_huggingface, write_huggingface

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

# Read before the tests get a cache of their own: what `headstart get minilm` fetched on this machine.
MINILM = cache_home() / "models" / "minilm"
PIECES = [*SPECIALS, "the", "cat", "##s", "sat", "Cat", "café", "cafe", "中", "中文", ".", "##é", *"abcdefghijklmnop"]
V = len(PIECES)
SMALL = {"layers": 2, "width": 24, "heads": 4, "inner": 40}
TRUE = ("tiny", "mini")
SIZES = {
    name: size if name in TRUE else {**size, "width": size["width"] // 8, "inner": size["inner"] // 8}
    for name, size in BERT_SIZES.items()
}
TEXTS = ["The cats sat.", "Café 中文 [MASK] zzz", "the CATS"]


def their_config(size: dict[str, int], **settings: Any) -> Any:
    return transformers.BertConfig(
        vocab_size=V,
        hidden_size=size["width"],
        num_hidden_layers=size["layers"],
        num_attention_heads=size["heads"],
        intermediate_size=size["inner"],
        max_position_embeddings=20,
        **{"initializer_range": 0.1, **settings},
    )


def make(folder: Path, kind: str, size: dict[str, int] = SMALL, **settings: Any) -> nn.Module:
    """A random model of transformers, saved as transformers saves it. Biases and norms vary, so that a mixup shows."""
    torch.manual_seed(0)
    model = getattr(transformers, kind)(their_config(size, **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name or "LayerNorm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    write_vocabulary(folder)
    return model


def write_vocabulary(folder: Path, pieces: list[str] = PIECES) -> None:
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def batch(vocabulary: int) -> dict[str, Tensor]:
    """Rows of three lengths, with two segments."""
    generator = torch.Generator().manual_seed(1)
    T = 11
    mask = torch.arange(T) < torch.tensor([[11], [7], [3]])
    return {
        "input_ids": torch.randint(0, vocabulary, (3, T), generator=generator),
        "attention_mask": mask.long(),
        "token_type_ids": (torch.arange(T) > 4).long().expand(3, T),
    }


@torch.no_grad()
def ours(pretrained: Pretrained) -> dict[str, Tensor]:
    """Every layer at real pieces, the pooled vector, and each head's logits."""
    encoder: Any = pretrained.encoder
    inputs = batch(encoder.vocabulary_size)
    mask = inputs["attention_mask"].bool()
    states = encoder.hidden_states(inputs["input_ids"], mask, inputs["token_type_ids"])
    found = {f"layer {k}": state[mask] for k, state in enumerate(states)}
    for name, head in pretrained.heads.items():
        logits = head_logits(name, head, encoder, states[-1])
        found[name] = logits[mask] if logits.dim() == 3 else logits
    return {**found, "pooled": encoder.pooled(states[-1])}


OUTPUTS = {"prediction_logits": "masked", "seq_relationship_logits": "next", "pooler_output": "pooled"}
LOGITS = {"BertForMaskedLM": "masked", "BertForSequenceClassification": "classify", "BertForTokenClassification": "tag"}


@torch.no_grad()
def reference(model: Any) -> dict[str, Tensor]:
    inputs = batch(model.config.vocab_size)
    mask = inputs["attention_mask"].bool()
    out = model(**inputs, output_hidden_states=True)
    found = {f"layer {k}": state[mask] for k, state in enumerate(out.hidden_states)}
    for theirs, mine in {**OUTPUTS, "logits": LOGITS.get(type(model).__name__)}.items():
        if theirs in out:
            found[mine] = out[theirs][mask] if out[theirs].dim() == 3 else out[theirs]
    if "start_logits" in out:
        found["span"] = torch.stack([out.start_logits, out.end_logits], dim=-1)[mask]
    return found


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert expected.keys() <= found.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


def edit_config(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def edit_weights(folder: Path, edit: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    path = folder / "model.safetensors"
    save_file(edit(load_file(path)), path)


KINDS = {
    "BertModel": (),
    "BertForPreTraining": ("masked", "next"),
    "BertForMaskedLM": ("masked",),
    "BertForSequenceClassification": ("classify",),
    "BertForTokenClassification": ("tag",),
    "BertForQuestionAnswering": ("span",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_agrees(tmp_path: Path, kind: str) -> None:
    settings = {"num_labels": 3} if "Classification" in kind else {}
    model = make(tmp_path, kind, **settings)
    assert is_huggingface(tmp_path)
    state = torch.get_rng_state()
    pretrained = read_huggingface(tmp_path)
    assert torch.equal(state, torch.get_rng_state())
    assert tuple(pretrained.heads) == KINDS[kind]
    assert pretrained.labels == (("LABEL_0", "LABEL_1", "LABEL_2") if settings else ())
    assert (pretrained.kind, pretrained.name) == ("bert", tmp_path.name)
    has_pooler = any("pooler" in name for name in model.state_dict())
    assert ("no pooler" in " ".join(pretrained.notices)) is not has_pooler
    assert_same(ours(pretrained), reference(model))


@pytest.mark.parametrize("size", SIZES)
def test_every_released_size_agrees(tmp_path: Path, size: str) -> None:
    model = make(tmp_path, "BertForPreTraining", SIZES[size], initializer_range=0.02)
    pretrained = read_huggingface(tmp_path)
    assert pretrained.notices == ()
    assert_same(ours(pretrained), reference(model))


@torch.no_grad()
def test_attention_agrees(tmp_path: Path) -> None:
    model = make(tmp_path, "BertModel", initializer_range=0.5)
    model.set_attn_implementation("eager")  # the only one that gives the probabilities
    inputs = batch(len(PIECES))
    mask = inputs["attention_mask"].bool()
    theirs = model(**inputs, output_attentions=True).attentions
    _, found = read_huggingface(tmp_path).encoder.attention(inputs["input_ids"], mask, inputs["token_type_ids"])
    assert len(found) == len(theirs) == SMALL["layers"]
    for mine, expected in zip(found, theirs, strict=True):
        torch.testing.assert_close(mine.transpose(1, 2)[mask], expected.transpose(1, 2)[mask], atol=1e-5, rtol=1e-5)


def without_prefix(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("bert."): tensor for name, tensor in weights.items()}


def as_converted_from_tensorflow(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in weights.items()
    }
    return {f"module.{name}": tensor for name, tensor in old.items()} | {
        "module.bert.embeddings.position_ids": torch.arange(20)[None],
        "module.cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"].clone(),
    }


def bias_at_the_decoder(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.replace("predictions.bias", "predictions.decoder.bias"): tensor for name, tensor in weights.items()}


def other_bias_at_the_decoder(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**weights, "cls.predictions.decoder.bias": torch.ones(V)}


@pytest.mark.parametrize(
    "rename", [without_prefix, as_converted_from_tensorflow, bias_at_the_decoder, other_bias_at_the_decoder]
)
def test_other_names_of_the_same(tmp_path: Path, rename: Any) -> None:
    model = make(tmp_path, "BertForPreTraining")
    edit_weights(tmp_path, rename)
    pretrained = read_huggingface(tmp_path)
    assert pretrained.notices == ()
    assert_same(ours(pretrained), reference(model))


@pytest.mark.parametrize("tied", [True, False])
def test_output_matrix_of_its_own_only_where_the_config_says_so(tmp_path: Path, tied: bool) -> None:
    make(tmp_path, "BertForMaskedLM", tie_word_embeddings=False)
    edit_config(tmp_path, tie_word_embeddings=tied)
    pretrained = read_huggingface(tmp_path)
    assert_same(ours(pretrained), reference(transformers.BertForMaskedLM.from_pretrained(tmp_path)))
    assert (pretrained.heads["masked"].decoder is None) is tied
    assert ("decoder.weight is not used" in pretrained.notices[0]) is tied


def test_untied_without_a_matrix_uses_the_word_embeddings(tmp_path: Path) -> None:
    model = make(tmp_path, "BertForMaskedLM")
    edit_config(tmp_path, tie_word_embeddings=False)
    pretrained = read_huggingface(tmp_path)
    assert_same(ours(pretrained), reference(model))
    assert "the word embeddings are used" in pretrained.notices[0]


@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_files(tmp_path: Path, zipped: bool) -> None:
    model = make(tmp_path, "BertForPreTraining")
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    assert_same(ours(read_huggingface(tmp_path)), reference(model))


def test_shards(tmp_path: Path) -> None:
    model = make(tmp_path, "BertForPreTraining")
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_same(ours(read_huggingface(tmp_path)), reference(model))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    model = make(tmp_path, "BertForPreTraining")
    edit_weights(tmp_path, lambda weights: {name: tensor.to(dtype) for name, tensor in weights.items()})
    found = weights_of(read_huggingface(tmp_path))
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    expected = model.bert.embeddings.word_embeddings.weight.to(dtype).float()
    assert torch.equal(found["encoder.words.weight"], expected)


def test_missing_and_surplus_parts_are_told_in_one_sentence(tmp_path: Path) -> None:
    model = make(tmp_path, "BertForPreTraining")

    def edit(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name and "relation" not in name}
        return {**kept, **{f"projection.{i}": torch.zeros(2) for i in range(5)}}

    edit_weights(tmp_path, edit)
    pretrained = read_huggingface(tmp_path)
    assert pretrained.notices == (
        f"{tmp_path.name}: it has no pooler, so tanh of the first piece's vector is used as the pooled vector; it "
        "lacks the head next of BertForPreTraining, or a part of it; not used: projection.0, projection.1, "
        "projection.2 and 2 more.",
    )
    assert tuple(pretrained.heads) == ("masked",)
    found, expected = ours(pretrained), reference(model)
    assert_same(found, {name: expected[name] for name in expected.keys() - {"next", "pooled"}})
    top = torch.randn(2, 3, SMALL["width"])
    assert torch.equal(pretrained.encoder.pooled(top), torch.tanh(top[:, 0]))


def test_a_classifier_is_what_the_architecture_says(tmp_path: Path) -> None:
    make(tmp_path, "BertForSequenceClassification", id2label={0: "no", 1: "maybe", 2: "yes"})
    assert read_huggingface(tmp_path).labels == ("no", "maybe", "yes")
    for architectures, head in ((["BertForTokenClassification"], "tag"), (..., "classify")):
        edit_config(tmp_path, architectures=architectures)
        assert tuple(read_huggingface(tmp_path).heads) == (head,)
    edit_config(tmp_path, architectures=["BertForMultipleChoice"])
    pretrained = read_huggingface(tmp_path)
    assert not pretrained.heads
    assert pretrained.labels == ()
    assert "not used: classifier.bias, classifier.weight" in pretrained.notices[0]


def test_an_old_config_without_a_type(tmp_path: Path) -> None:
    model = make(tmp_path, "BertModel")
    dropped = ("model_type", "layer_norm_eps", "position_embedding_type", "architectures")
    edit_config(tmp_path, **dict.fromkeys(dropped, ...))
    assert_same(ours(read_huggingface(tmp_path)), reference(model))


def test_casing_comes_from_the_files(tmp_path: Path) -> None:
    make(tmp_path, "BertModel")
    assert read_huggingface(tmp_path).tokenizer.encode("Cat").units == ["Cat"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert read_huggingface(tmp_path).tokenizer.encode("Cat").units == ["cat"]
    build_wordpiece(PIECES, lowercase=False).save(tmp_path)
    assert read_huggingface(tmp_path).notices == ()
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert "do_lower_case = true, but tokenizer.json disagrees" in read_huggingface(tmp_path).notices[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "roberta"}, 'is a model of type "roberta"; only BERT'),
        ({"model_type": ..., "hidden_size": ...}, "not the configuration of a BERT; it has no hidden_size"),
        ({"hidden_act": "relu"}, 'has hidden_act = "relu"; only a BERT with "gelu"'),
        ({"position_embedding_type": "relative_key"}, 'only a BERT with "absolute"'),
        ({"is_decoder": True}, "has is_decoder = true; only a BERT with false"),
        ({"hidden_size": "24"}, "hidden_size does not fit a BERT.*got '24'"),
        ({"num_attention_heads": 5}, "hidden_size must divide evenly by num_attention_heads; got 24 / 5"),
        (
            {"num_hidden_layers": 3},
            r"has no tensor 'encoder.layer.2.attention.self.query.weight', which .* config.json",
        ),
        ({"intermediate_size": 41}, r"intermediate.dense.weight' has shape \(40, 24\), wanted \(41, 24\); config.json"),
        ({"vocab_size": V + 1}, f"the tokenizer has {V} entries, but config.json says vocab_size = {V + 1}"),
        ({"vocab_size": "many"}, "vocab_size must be a whole number"),
        ({"id2label": {"0": "a", "2": "b", "1": "c"}}, "id2label must name the classes 0 to 1"),
        ({"id2label": ["a", "b"]}, "id2label must name the classes 0 to 1"),
    ],
)
def test_configs_that_do_not_fit(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    make(tmp_path, "BertForSequenceClassification")
    edit_config(tmp_path, **settings)
    with pytest.raises(CheckpointError, match=message):
        read_huggingface(tmp_path)


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    make(tmp_path, "BertModel")
    write_vocabulary(tmp_path, PIECES[:-1])
    with pytest.raises(CheckpointError, match=f"tokenizer has {V - 1} entries, but config.json says vocab_size = {V}"):
        read_huggingface(tmp_path)
    write_vocabulary(tmp_path, [*PIECES, "one more"])
    edit_config(tmp_path, vocab_size=V + 1)
    with pytest.raises(
        CheckpointError, match=rf"word_embeddings.weight' has shape \({V}, 24\), wanted \({V + 1}, 24\)"
    ):
        read_huggingface(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(DataError, match="vocabulary cannot be read"):
        read_huggingface(tmp_path)
    for broken in (b"[]", b"{", b"\xff", b"[" * 100_000):
        (tmp_path / "config.json").write_bytes(broken)
        with pytest.raises(CheckpointError, match=r"config.json: (not a JSON file|holds a JSON list)"):
            read_huggingface(tmp_path)
    (tmp_path / "config.json").unlink()
    assert not is_huggingface(tmp_path)
    assert not is_huggingface(tmp_path / "vocab.txt")
    with pytest.raises(CheckpointError, match=r"config\.json: cannot be read"):
        read_huggingface(tmp_path)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    make(tmp_path, "BertModel")
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for name, tensor, message in (
        ("embeddings.LayerNorm.bias", torch.zeros(24, dtype=torch.int8), r"LayerNorm.bias' holds torch.int8"),
        ("bert.embeddings.LayerNorm.bias", torch.zeros(24), r"has the tensor 'embeddings.LayerNorm.bias' twice"),
        ("classifier.weight", torch.zeros(2, 23), r"'classifier.weight' has shape \(2, 23\), wanted \(2, 24\)"),
    ):
        edit_weights(tmp_path, lambda w, n=name, t=tensor: {**w, "classifier.bias": torch.zeros(2), n: t})
        with pytest.raises(CheckpointError, match=message):
            read_huggingface(tmp_path)
        path.write_bytes(whole)
    path.write_bytes(whole[:-10])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        read_huggingface(tmp_path)


def random_bert(*heads: str, lowercase: bool = True, untied: bool = False, labels: tuple[str, ...] = ()) -> Pretrained:
    torch.manual_seed(3)
    config = BertConfig(**SMALL, positions=17, norm_eps=1e-9)
    width = config.width
    made: dict[str, nn.Module] = {
        "masked": MaskedLMHead(width, V, config.norm_eps, untied=untied),
        "next": nn.Linear(width, 2),
        "classify": nn.Linear(width, 3),
        "tag": nn.Linear(width, 3),
        "span": nn.Linear(width, 2),
    }
    encoder = Bert(config, V).eval()
    with torch.no_grad():
        for module in (encoder, made["masked"]):
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    tokenizer = build_wordpiece(PIECES, lowercase=lowercase)
    return Pretrained(encoder, tokenizer, {head: made[head] for head in heads}, labels)


AUTO = {
    "AutoModel": (),
    "AutoModelForPreTraining": ("masked", "next"),
    "AutoModelForMaskedLM": ("masked",),
    "AutoModelForSequenceClassification": ("classify",),
    "AutoModelForTokenClassification": ("tag",),
    "AutoModelForQuestionAnswering": ("span",),
}
WITHOUT_POOLER = {"masked", "tag", "span"}


@pytest.mark.parametrize("auto", AUTO)
def test_transformers_opens_what_was_written(tmp_path: Path, auto: str) -> None:
    heads = AUTO[auto]
    pretrained = random_bert(*heads, labels=("x", "y", "z") if {"classify", "tag"} & set(heads) else ())
    folder = tmp_path / "out" / "model"
    write_huggingface(pretrained, folder)
    model, info = getattr(transformers, auto).from_pretrained(folder, output_loading_info=True)
    assert type(model).__name__ == next(kind for kind, held in KINDS.items() if held == heads)
    assert model.config.architectures == [type(model).__name__]
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    # transformers' models of pieces have no place for the pooler; AutoModel has, and gets it from the same folder.
    left = (
        {"bert.pooler.dense.weight", "bert.pooler.dense.bias"} if set(heads) and set(heads) <= WITHOUT_POOLER else set()
    )
    assert set(info["unexpected_keys"]) == left
    assert_same(ours(pretrained), reference(model))
    encoder, info = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert_same(ours(pretrained), reference(encoder))
    if pretrained.labels:
        assert model.config.id2label == {0: "x", 1: "y", 2: "z"}
        assert model.config.label2id == {"x": 0, "y": 1, "z": 2}


@pytest.mark.parametrize(
    "heads", [(), ("masked", "next"), ("masked",), ("tag",), ("span",), ("masked", "next", "classify")]
)
@pytest.mark.parametrize("untied", [True, False])
def test_written_and_read_again_is_the_same_bit_for_bit(tmp_path: Path, heads: tuple[str, ...], untied: bool) -> None:
    pretrained = random_bert(*heads, untied=untied, labels=("x", "y", "z") if {"classify", "tag"} & set(heads) else ())
    write_huggingface(pretrained, tmp_path / "once")
    again = read_huggingface(tmp_path / "once")
    assert again.notices == ()
    assert again.labels == pretrained.labels
    assert again.encoder.config == pretrained.encoder.config
    assert again.tokenizer.fingerprint == pretrained.tokenizer.fingerprint
    expected, found = weights_of(pretrained), weights_of(again)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    write_huggingface(again, tmp_path / "twice")
    files = sorted(path.name for path in (tmp_path / "once").iterdir())
    expected_files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert files == sorted([*expected_files, SUMS])
    assert all((tmp_path / "once" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes() for name in files)


@pytest.mark.parametrize("kind", KINDS)
def test_read_and_written_is_what_transformers_wrote(tmp_path: Path, kind: str) -> None:
    model = make(tmp_path / "theirs", kind, tie_word_embeddings=kind != "BertForMaskedLM")
    pretrained = read_huggingface(tmp_path / "theirs")
    write_huggingface(pretrained, tmp_path / "ours")
    expected, found = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert_same(ours(read_huggingface(tmp_path / "ours")), reference(model))


def test_heads_of_two_architectures_go_into_one_folder(tmp_path: Path) -> None:
    pretrained = random_bert("masked", "next", "classify")
    write_huggingface(pretrained, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    expected = ours(pretrained)
    for auto in ("AutoModelForSequenceClassification", "AutoModelForPreTraining", "AutoModelForMaskedLM"):
        model, info = getattr(transformers, auto).from_pretrained(tmp_path / "model", output_loading_info=True)
        assert not info["missing_keys"]
        assert_same(expected, reference(model))


def test_a_pooler_that_the_task_needs_is_written_even_as_a_stand_in(tmp_path: Path) -> None:
    make(tmp_path / "theirs", "BertForMaskedLM")
    pretrained = read_huggingface(tmp_path / "theirs")
    pretrained = replace(pretrained, heads={"classify": nn.Linear(SMALL["width"], 2)})
    write_huggingface(pretrained, tmp_path / "ours")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    assert_same(ours(pretrained), reference(model))


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False, None])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_tokenizers_agree(tmp_path: Path, lowercase: bool, strip_accents: bool | None, split_chinese: bool) -> None:
    tokenizer = build_wordpiece(PIECES, lowercase, strip_accents=strip_accents, split_chinese=split_chinese)
    write_huggingface(replace(random_bert(), tokenizer=tokenizer), tmp_path / "model")
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert fast.model_max_length == 17
    assert fast.pad_token_id == tokenizer.pad
    expected = [tokenizer.encode(text).ids.tolist() for text in TEXTS]
    assert [fast(text, add_special_tokens=False)["input_ids"] for text in TEXTS] == expected
    assert fast("the", "cat")["input_ids"] == [tokenizer.cls, 5, tokenizer.sep, 6, tokenizer.sep]
    (tmp_path / "model" / "tokenizer.json").unlink()
    again = read_huggingface(tmp_path / "model").tokenizer
    assert [again.encode(text).ids.tolist() for text in TEXTS] == expected


def test_writing_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrained = random_bert("masked")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is already there and not an empty folder"):
        write_huggingface(pretrained, full)
    with pytest.raises(CheckpointError, match="is already there"):
        write_huggingface(pretrained, full / "notes.txt")
    with pytest.raises(CheckpointError, match=r"cannot be written \(Not a directory|File exists"):
        write_huggingface(pretrained, full / "notes.txt" / "model")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "notes.txt"]

    def fail(path: Path, tensors: Any) -> None:
        raise CheckpointError(f"{path}: the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(huggingface, "write_tensors", fail)
        with pytest.raises(CheckpointError, match="disk is full"):
            write_huggingface(pretrained, tmp_path / "new")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "notes.txt"]
    (tmp_path / "empty").mkdir()
    write_huggingface(pretrained, tmp_path / "empty")
    assert is_huggingface(tmp_path / "empty")


def test_what_cannot_be_written(tmp_path: Path) -> None:
    static = Pretrained(Static(StaticConfig(dim=4), V), build_wordpiece(PIECES, True))
    for pretrained, message in (
        (static, "Only a BERT can be written for transformers; this is a static encoder"),
        (random_bert("classify", "tag"), "classify and tag have the same name"),
        (random_bert("classify", labels=("x", "y")), "2 labels for a head with 3 classes"),
        (
            replace(random_bert(), heads={"spam": nn.Linear(2, 2)}),
            "No head of a BERT called 'spam'. Did you mean 'span'",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            write_huggingface(pretrained, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_real_weights_agree(tmp_path: Path) -> None:
    folder = MINILM
    if not is_huggingface(folder):
        pytest.skip("minilm is not in the cache; `headstart get minilm` fetches it")
    pretrained = read_huggingface(folder)
    assert pretrained.notices == ()
    model = transformers.AutoModel.from_pretrained(folder)
    assert_same(ours(pretrained), reference(model))
    write_huggingface(pretrained, tmp_path / "model")
    again = load_file(tmp_path / "model" / "model.safetensors")
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert name == "embeddings.position_ids" or torch.equal(again[name], tensor)
    theirs = [transformers.AutoTokenizer.from_pretrained(path) for path in (folder, tmp_path / "model")]
    for text in TEXTS:
        ids = pretrained.tokenizer.encode(text).ids.tolist()
        assert [tokenizer(text, add_special_tokens=False, padding=False)["input_ids"] for tokenizer in theirs] == [
            ids
        ] * 2
