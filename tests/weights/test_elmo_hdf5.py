import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.checksums import SUMS
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import Pretrained, load_run
from headstart.text.characters import character_table
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.weights.elmo_hdf5 import find_elmo, read_elmo, write_elmo

h5py = pytest.importorskip("h5py")

REFERENCE = Path(__file__).parents[3] / "shared" / "data" / "elmo_reference"
CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
SENTENCES = [["The", "cat", "naïve", "."], ["A"], ["Worte", "the", "the"]]


def pretrained(**changes: Any) -> Pretrained:
    torch.manual_seed(0)
    shape = {"cell": 6, "projection": 4, "filters": [[1, 3], [2, 4]], "char_width": 3, "highway": 2, **changes}
    encoder = Elmo(ElmoConfig(**shape))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        encoder.characters.characters[0] = 0
    tokenizer = WordTokenizer(Vocabulary(SPECIALS, np.zeros(3, dtype=np.int64)))
    return Pretrained(encoder, tokenizer)


def written(folder: Path, words: list[str] | None = None, **changes: Any) -> tuple[Pretrained, Path]:
    made = pretrained(**changes)
    write_elmo(made, folder, words)
    return made, folder


def read_back(folder: Path) -> Pretrained:
    found = find_elmo(folder)
    assert found is not None
    return read_elmo(*found)


def assert_same(a: Pretrained, b: Pretrained) -> None:
    theirs = b.encoder.state_dict()
    assert a.encoder.state_dict().keys() == theirs.keys()
    for name, tensor in a.encoder.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name
    assert a.encoder.config == b.encoder.config
    for ours, other in zip(a.represent(SENTENCES), b.represent(SENTENCES), strict=True):
        assert np.array_equal(ours, other)


def reference() -> Pretrained:
    if not REFERENCE.is_dir():
        pytest.skip("shared/data/elmo_reference is not there")
    return read_back(REFERENCE)


def test_the_published_outputs_come_out_when_states_are_carried() -> None:
    elmo = reference()
    lists = json.loads((REFERENCE / "lm_embeddings_sentences.json").read_text(encoding="utf-8"))
    for i in range(10):
        found = elmo.represent([sentences[i].split(" ") for sentences in lists], "top", carry_state=True)
        for k, (top,) in enumerate(found):
            with h5py.File(REFERENCE / f"lm_embeddings_{k}.hdf5") as file:
                forward, backward = file[str(i)][...]
            np.testing.assert_allclose(top, np.concatenate([forward, backward], axis=1), atol=1e-6, rtol=0)


def test_the_published_weights_are_written_as_they_were_read(tmp_path: Path) -> None:
    write_elmo(reference(), tmp_path / "elmo")
    theirs, ours = datasets(REFERENCE / "lm_weights.hdf5"), datasets(tmp_path / "elmo" / "weights.hdf5")
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        # The forget part of B has had 1 added and taken away again, which rounds.
        np.testing.assert_allclose(array, theirs[name], rtol=0, atol=1e-7 if name.endswith("/B") else 0)
    assert_same(reference(), read_back(tmp_path / "elmo"))


def datasets(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[...]}) if hasattr(item, "shape") else None)
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"residual": False, "activation": "tanh", "dropout": 0.25},
        {"directions": "forward", "layers": 3, "cell_clip": None, "projection_clip": 0.5},
        {"highway": 0, "layers": 1, "filters": [[3, 4]]},
    ],
)
def test_what_is_written_comes_back_to_the_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    made, folder = written(tmp_path / "elmo", **changes)
    assert_same(made, read_back(folder))
    assert sorted(path.name for path in folder.iterdir()) == [SUMS, "options.json", "weights.hdf5"]
    assert list(tmp_path.iterdir()) == [folder]


WORDS = (*SPECIALS, "the", "The", "cat", ".")


@pytest.mark.parametrize("tokens", ["words", "both"])
def test_a_table_of_words_goes_out_and_comes_back_to_the_bit(tokens: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"cell": 6, "projection": 4, "filters": [[1, 3], [2, 4]], "char_width": 3, "highway": 2}
    encoder = Elmo(ElmoConfig(**shape, tokens=tokens), len(WORDS))
    tokenizer = WordTokenizer(Vocabulary(WORDS, np.zeros(len(WORDS), dtype=np.int64)))
    made = Pretrained(encoder, tokenizer)
    write_elmo(made, tmp_path / "elmo")
    back = read_back(tmp_path / "elmo")
    assert back.encoder.config.tokens == tokens  # type: ignore[attr-defined]
    for name, tensor in made.encoder.state_dict().items():
        assert torch.equal(tensor, back.encoder.state_dict()[name]), name
    for ours, other in zip(made.represent(SENTENCES), back.represent(SENTENCES), strict=True):
        assert np.array_equal(ours, other)
    options = json.loads((tmp_path / "elmo" / "options.json").read_text(encoding="utf-8"))
    assert ("char_cnn" in options) == (tokens == "both")
    with h5py.File(tmp_path / "elmo" / "token_embeddings.hdf5") as file:
        assert np.array_equal(file["embedding"][...], encoder.state_dict()["words.weight"].numpy())
    assert (tmp_path / "elmo" / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == list(WORDS)


def test_a_table_in_another_order_of_words_is_read_by_their_names(tmp_path: Path) -> None:
    encoder = Elmo(ElmoConfig(cell=6, projection=4, tokens="words"), len(WORDS))
    tokenizer = WordTokenizer(Vocabulary(WORDS, np.zeros(len(WORDS), dtype=np.int64)))
    made = Pretrained(encoder, tokenizer)
    write_elmo(made, tmp_path / "elmo")
    turned = list(reversed(WORDS))
    (tmp_path / "elmo" / "vocab.txt").write_text("\n".join([*turned, ""]), encoding="utf-8")
    with h5py.File(tmp_path / "elmo" / "token_embeddings.hdf5", "r+") as file:
        rows = file["embedding"][...]
        file["embedding"][...] = rows[::-1]
    back = read_back(tmp_path / "elmo")
    for ours, other in zip(made.represent(SENTENCES), back.represent(SENTENCES), strict=True):
        assert np.array_equal(ours, other)


def test_a_table_needs_its_vocabulary(tmp_path: Path) -> None:
    encoder = Elmo(ElmoConfig(cell=6, projection=4, tokens="words"), len(WORDS))
    tokenizer = WordTokenizer(Vocabulary(WORDS, np.zeros(len(WORDS), dtype=np.int64)))
    write_elmo(Pretrained(encoder, tokenizer), tmp_path / "elmo")
    with pytest.raises(CheckpointError, match=r"has a table of words; give token_embeddings\.hdf5 and vocab\.txt"):
        read_elmo(tmp_path / "elmo" / "options.json", tmp_path / "elmo" / "weights.hdf5")
    with pytest.raises(ConfigError, match="leave the list of words out"):
        write_elmo(Pretrained(encoder, tokenizer), tmp_path / "again", ["cat"])


def test_a_run_of_our_own_goes_out_and_comes_back(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    run = load_run(pretrained_runs["elmo"])
    write_elmo(run, tmp_path / "elmo")
    assert_same(run, read_back(tmp_path / "elmo"))


def test_a_full_disk_is_one_sentence_and_nothing_of_h5py(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    made = pretrained()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, before[1]))
        with pytest.raises(CheckpointError, match=r"cannot be written \(File too large\)"):
            write_elmo(made, tmp_path / "elmo")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_the_files_have_the_published_layout(tmp_path: Path) -> None:
    made, folder = written(tmp_path / "elmo")
    layer = made.encoder.layers[1]
    with h5py.File(folder / "weights.hdf5") as file:
        assert file["char_embed"].shape == (261, 3)
        assert file["CNN/W_cnn_1"].shape == (1, 2, 3, 4)
        cell = file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"]
        for theirs, ours in enumerate([0, 3, 1, 2]):  # input, candidate, forget, output
            at, wanted = slice(6 * theirs, 6 * theirs + 6), slice(6 * ours, 6 * ours + 6)
            assert np.array_equal(cell["W_0"][:, at], layer.weight[1, :, wanted].detach().numpy())
            forget_bias = 1 if theirs == 2 else 0
            np.testing.assert_allclose(cell["B"][at] + forget_bias, layer.bias[1, wanted].detach().numpy(), atol=1e-6)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    assert options["char_cnn"]["n_characters"] == 262
    assert options["lstm"]["dim"] == 6


@pytest.mark.parametrize("value", [0.1, 1e-30, -0.7, -1234.567, 0.75, 1e8, 0.0])
def test_any_forget_bias_survives(value: float, tmp_path: Path) -> None:
    made = pretrained()
    with torch.no_grad():
        made.encoder.layers[0].bias[:, 6:12] = value
    write_elmo(made, tmp_path / "elmo")
    assert_same(made, read_back(tmp_path / "elmo"))


def test_a_bias_that_others_changed_counts(tmp_path: Path) -> None:
    made, folder = written(tmp_path / "elmo")
    with torch.no_grad():
        made.encoder.layers[0].bias[0, 6:12] = 1.5
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file[f"{CELL}/B"][12:18] = 0.5
    assert_same(made, read_back(folder))


@pytest.mark.parametrize("n_characters", [261, 262])
@pytest.mark.parametrize("rows", [261, 262])
def test_with_or_without_the_row_of_padding(n_characters: int, rows: int, tmp_path: Path) -> None:
    made, folder = written(tmp_path / "elmo")
    change_options(folder, lambda options: options["char_cnn"].update(n_characters=n_characters))
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        characters = np.concatenate([np.full((rows - 261, 3), 9, np.float32), file["char_embed"][...]])
        del file["char_embed"]
        file["char_embed"] = characters
    assert_same(made, read_back(folder))


def test_a_missing_projection_is_the_identity_where_it_can_be(tmp_path: Path) -> None:
    made = pretrained(projection=7)
    with torch.no_grad():
        made.encoder.characters.projection.weight.copy_(torch.eye(7))
        made.encoder.characters.projection.bias.zero_()
    for folder, encoder in (("square", made), ("narrow", pretrained())):
        write_elmo(encoder, tmp_path / folder)
        with h5py.File(tmp_path / folder / "weights.hdf5", "r+") as file:
            del file["CNN_proj"]
    assert_same(made, read_back(tmp_path / "square"))
    with pytest.raises(CheckpointError, match=r"'CNN_proj/W_proj' is missing; wanted one of shape \(7, 4\)"):
        read_back(tmp_path / "narrow")


def test_the_activation_is_that_of_the_filters(tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo", projection=7, highway=0)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file["CNN_proj"]
    with_relu = read_back(folder).represent(SENTENCES, 0)[0]
    change_options(folder, lambda options: options["char_cnn"].update(activation="tanh"))
    with_tanh = read_back(folder).represent(SENTENCES, 0)[0]
    assert 0 < (with_relu > 0).mean() < 1
    np.testing.assert_allclose(np.maximum(with_tanh, 0), np.tanh(with_relu), atol=1e-6)
    assert (with_tanh[with_relu == 0] < 0).all()


def test_what_the_options_do_not_speak_of_is_told(tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo", layers=1)
    assert read_back(folder).notices == ()
    change_options(folder, lambda options: options.update(bidirectional=False))
    (notice,) = read_back(folder).notices
    assert "RNN_1" in notice
    assert "RNN_0" not in notice


def change_options(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    change(options)
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o["lstm"].pop("dim"), r"the key 'lstm\.dim' is missing"),
        (lambda o: o.pop("char_cnn"), r"has a table of words; give token_embeddings\.hdf5"),
        (lambda o: o["lstm"].update(dim="6"), r"'lstm\.dim': input should be a valid integer; got '6'"),
        (lambda o: o["lstm"].update(n_layers=3), r"'RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0' is missing"),
        (lambda o: o["lstm"].update(dim=10**12), r"'lstm\.dim': input should be less than or equal to 1048576"),
        (lambda o: o["lstm"].update(dim=10**6), r"Cell0/LSTMCell/W_0' has shape \(8, 24\), but the options say"),
        (lambda o: o["char_cnn"].update(n_characters=300), r"'char_cnn\.n_characters': input should be 261 or 262"),
        (lambda o: o["char_cnn"].update(max_characters_per_token=20), r"is 20; only models with 50"),
        (
            lambda o: o["char_cnn"].update(activation="gelu"),
            r"'char_cnn\.activation': input should be 'relu' or 'tanh'",
        ),
        (lambda o: o["char_cnn"].update(filters=[[1]]), r"'char_cnn\.filters' must be \[width, count\] pairs"),
        (lambda o: o["char_cnn"].update(filters=[[1, 3], [2, 5]]), r"'CNN/W_cnn_1' has shape \(1, 2, 3, 4\)"),
    ],
)
def test_options_that_do_not_fit_are_refused(change: Callable[[Any], Any], message: str, tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo")
    change_options(folder, change)
    with pytest.raises(CheckpointError, match=message):
        read_back(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"[" * 100_000])
def test_options_that_are_none_are_refused(content: bytes, tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo")
    (folder / "options.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"options\.json: (not a JSON file|'options': input should be an object)"):
        read_back(folder)


def test_weights_that_are_no_weights_are_refused(tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo")
    weights = folder / "weights.hdf5"
    with h5py.File(weights, "r+") as file:
        del file["CNN/b_cnn_0"]
        file["CNN/b_cnn_0"] = ["a", "b", "c"]
    with pytest.raises(CheckpointError, match=r"'CNN/b_cnn_0' holds object, wanted floating-point numbers"):
        read_back(folder)
    with h5py.File(weights, "r+") as file:
        del file["CNN"]
    with pytest.raises(CheckpointError, match=r"the dataset 'CNN/W_cnn_0' is missing; wanted one of shape"):
        read_back(folder)
    whole = weights.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"text"):
        weights.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"weights\.hdf5: not a whole HDF5 file"):
            read_back(folder)
    with pytest.raises(CheckpointError, match="there is no such file"):
        read_elmo(folder / "options.json", folder / "absent.hdf5")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_elmo(folder / "absent.json", weights)


def test_a_folder_says_what_it_holds(tmp_path: Path) -> None:
    assert find_elmo(tmp_path / "absent") is None
    assert find_elmo(tmp_path) is None
    _, folder = written(tmp_path / "elmo", ["cat"])
    names = ["options.json", "weights.hdf5", "token_embeddings.hdf5", "vocab.txt"]
    assert find_elmo(folder) == tuple(folder / name for name in names)
    (folder / "vocab.txt").unlink()
    assert find_elmo(folder) == (folder / "options.json", folder / "weights.hdf5")
    shutil.copy(folder / "options.json", folder / "elmo_2x1024_options.json")
    with pytest.raises(CheckpointError, match=r"several ELMos \(elmo_2x1024_options\.json, options\.json\)"):
        find_elmo(folder)


def test_a_remembered_word_is_looked_up_unless_the_network_may_learn() -> None:
    encoder = pretrained().encoder
    network = encoder.characters.eval()
    ids = torch.from_numpy(character_table(["cat", "dog", "cat"])).long()[None]
    with torch.no_grad():
        computed = network(ids)
    names = encoder.state_dict().keys()
    network.remember(torch.from_numpy(character_table(["bird", "cat"])), torch.tensor([[5.0] * 4, [1.0, 2, 3, 4]]))
    with torch.no_grad():
        recalled = network(ids)
    assert recalled[0, [0, 2]].tolist() == [[1, 2, 3, 4], [1, 2, 3, 4]]
    torch.testing.assert_close(recalled[0, 1], computed[0, 1])
    assert encoder.state_dict().keys() == names
    torch.testing.assert_close(network(ids), computed)
    assert network.requires_grad_(False)(ids)[0, 0].tolist() == [1, 2, 3, 4]
    network.requires_grad_(True).train()(ids)
    with torch.no_grad():
        torch.testing.assert_close(network.eval()(ids), computed)


def test_the_vectors_of_a_vocabulary_stand_for_its_spelling(tmp_path: Path) -> None:
    made, folder = written(tmp_path / "elmo", ["cat", "naïve", "The", "cat"])
    assert (folder / "vocab.txt").read_text(encoding="utf-8").split() == [*SPECIALS, "cat", "naïve", "The"]
    elmo = read_back(folder)
    assert elmo.tokenizer.encode_words(["cat", "Cat"]).ids.tolist() == [3, 2]
    for ours, theirs in zip(made.represent(SENTENCES), elmo.represent(SENTENCES), strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-6)
    with h5py.File(folder / "token_embeddings.hdf5", "r+") as file:
        file["embedding"][3] = [1, 2, 3, 4]
    assert read_back(folder).represent([["cat"]], 0)[0][0, 0].tolist() == [1, 2, 3, 4, 1, 2, 3, 4]


def test_a_vocabulary_in_any_order_keeps_its_rows(tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo")
    (folder / "vocab.txt").write_text("cat\r\n</S>\r\n<S>\r\n<UNK>\r\ndog\r\n", encoding="utf-8")
    with h5py.File(folder / "token_embeddings.hdf5", "w") as file:
        file["embedding"] = np.arange(20).reshape(5, 4).astype(np.float64)
    elmo = read_back(folder)
    assert elmo.represent([["dog", "cat"]], 0)[0][0, :, :4].tolist() == [[16, 17, 18, 19], [0, 1, 2, 3]]
    assert elmo.tokenizer.encode_words(["cat", "dog", "bird"]).ids.tolist() == [3, 4, 2]


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (b"<S>\n</S>\n<UNK>\n", r"'embedding' has 4 rows, but the vocabulary has 3 words"),
        (b"<S>\n</S>\ncat\ndog\n", r"<UNK> is missing"),
        (b"<S>\n</S>\n<UNK>\n\ncat\n", r"vocab\.txt:4: the line is empty"),
        (b"<S>\n</S>\n<UNK>\n<S>\n", r"vocab\.txt:4: the word '<S>' is there twice"),
        (b"<S>\n</S>\n<UNK>\n\xff\n", r"not UTF-8"),
    ],
)
def test_vectors_need_their_own_vocabulary(vocabulary: bytes, message: str, tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo", ["cat"])
    (folder / "vocab.txt").write_bytes(vocabulary)
    with pytest.raises(CheckpointError, match=message):
        read_back(folder)
    with pytest.raises(ConfigError, match="need the vocabulary"):
        read_elmo(folder / "options.json", folder / "weights.hdf5", folder / "token_embeddings.hdf5")


def test_vectors_of_another_width_are_refused(tmp_path: Path) -> None:
    _, folder = written(tmp_path / "elmo", ["cat"])
    with h5py.File(folder / "token_embeddings.hdf5", "w") as file:
        file["embedding"] = np.zeros((4, 5), np.float32)
    with pytest.raises(CheckpointError, match=r"'embedding' has shape \(4, 5\), but the options say \(4, 4\)"):
        read_back(folder)


def test_nothing_is_written_over_or_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, folder = written(tmp_path / "elmo")
    with pytest.raises(CheckpointError, match="already there and not an empty folder"):
        write_elmo(made, folder)
    with pytest.raises(CheckpointError, match="already there and not an empty folder"):
        write_elmo(made, folder / "options.json")
    for word in ("two\nlines", "", " x", "\ud800"):
        with pytest.raises(ConfigError, match="cannot be written as a line of a vocabulary"):
            write_elmo(made, tmp_path / "words", [word])
    with pytest.raises(CheckpointError, match=r"cannot be written \(.+\)\. Give another --out"):
        write_elmo(made, folder / "options.json" / "inside")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    with pytest.raises(CheckpointError, match=r"weights\.hdf5: cannot be written \(No space left on device\)"):
        write_elmo(made, tmp_path / "full")
    assert list(tmp_path.iterdir()) == [folder]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "elmo").mkdir()
    made, folder = written(tmp_path / "elmo")
    assert_same(made, read_back(folder))


def test_only_an_elmo_is_written(tmp_path: Path) -> None:
    made = pretrained()
    static = Pretrained(Static(StaticConfig(dim=2), 3), made.tokenizer)
    with pytest.raises(ConfigError, match="this is a static"):
        write_elmo(static, tmp_path / "static")
    assert not (tmp_path / "static").exists()
