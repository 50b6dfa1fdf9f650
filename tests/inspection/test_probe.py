from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from headstart.errors import ConfigError, DataError
from headstart.inspection.layer_files import LayerFiles
from headstart.inspection.probe import draw, labelled_words, probe, probe_texts
from headstart.inspection.probe_results import Probed, draw_probes
from headstart.pretrained import Pretrained
from headstart.progress import Progress, result_of
from headstart.report.drawing import style
from headstart.tasks.classify import TextExample
from headstart.tasks.conll import TaggedSentence

NOUNS = [f"noun{i}" for i in range(12)]
VERBS = [f"verb{i}" for i in range(12)]
KNOWN = NOUNS + VERBS
D = len(KNOWN)
NOISE, OF_TAG, OF_TYPE = range(3)


def three_layers(words: list[str]) -> torch.Tensor:
    """Layer 0 is noise that depends on the sentence, layer 1 the tag and nothing else, layer 2 the word itself."""
    seed = sum((i + 1) * (KNOWN.index(word) + 1) for i, word in enumerate(words))
    noise = torch.randn(len(words), D, generator=torch.Generator().manual_seed(seed))
    tags = torch.stack([torch.eye(D)[int(word in VERBS)] for word in words])
    types = torch.stack([torch.eye(D)[KNOWN.index(word)] for word in words])
    return torch.stack([noise, tags, types])


@pytest.fixture
def layered(toy: Callable[..., Pretrained]) -> Pretrained:
    return toy(KNOWN, (3, D), three_layers)


def tagged(n: int, seed: int) -> list[TaggedSentence]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        words = tuple(str(word) for word in rng.choice(KNOWN, size=6))
        tags = tuple("V" if word in VERBS else "N" for word in words)
        found.append(TaggedSentence(words, tags, f"line {number}"))
    return found


def probed(pretrained: Pretrained, *, words: int | None = None, seed: int = 0) -> Probed:
    return result_of(probe(pretrained, tagged(120, 1), tagged(40, 2), most=words, seed=seed))


def test_the_layer_that_has_the_tag_is_found_and_the_noise_is_not(layered: Pretrained) -> None:
    found = probed(layered)
    noise, of_tag, of_type = found.layers
    assert (found.unit, found.train, found.dev, found.labels, found.left_out) == ("words", 720, 240, 2, 0)
    assert of_tag.accuracy == of_type.accuracy == 1.0
    assert of_tag.interval == (1.0, 1.0)
    assert noise.accuracy < 0.65
    assert noise.interval[0] < noise.accuracy < noise.interval[1]


def test_the_control_task_tells_what_was_memorised(layered: Pretrained) -> None:
    """A layer with the word itself lets the probe learn any tags by heart; one with the tag alone does not."""
    _, of_tag, of_type = probed(layered).layers
    assert of_type.control == 1.0
    assert of_type.selectivity == 0.0
    assert of_tag.control is not None
    assert of_tag.control < 0.75
    assert of_tag.selectivity == pytest.approx(1.0 - of_tag.control)


def test_counts_are_by_sentence_and_sum_to_the_accuracy(layered: Pretrained) -> None:
    for layer in probed(layered).layers:
        assert layer.counts.shape == (40, 2)
        assert layer.counts[:, 1].tolist() == [6.0] * 40
        assert layer.counts[:, 0].sum() / 240 == pytest.approx(layer.accuracy)


def test_the_same_seed_gives_the_same_and_another_does_not(layered: Pretrained) -> None:
    first = probed(layered, words=300)
    assert probed(layered, words=300) == first
    assert probed(layered, words=300, seed=1) != first


def test_the_baseline_is_each_words_most_frequent_tag(toy: Callable[..., Pretrained]) -> None:
    """By hand: `play` is N twice and V once, so N; `new` was never seen and gets the most frequent tag of all, V."""
    pretrained = toy(["play", "go", "new"], (1, 2), lambda words: torch.ones(1, len(words), 2))
    train = [
        TaggedSentence(("play", "go", "go"), ("N", "V", "V"), "1"),
        TaggedSentence(("play", "play", "go"), ("N", "V", "V"), "2"),
    ]
    dev = [TaggedSentence(("play", "play", "go", "new"), ("N", "V", "V", "V"), "1")]
    assert result_of(probe(pretrained, train, dev, most=None)).baseline == 3 / 4


def test_a_tag_that_training_does_not_show_is_never_right(layered: Pretrained) -> None:
    dev = [TaggedSentence(("noun1", "verb1"), ("N", "ADVERB"), "1")]
    found = result_of(probe(layered, tagged(60, 1), dev, most=None))
    assert found.layers[OF_TYPE].accuracy == 0.5


def test_a_sentence_that_is_too_long_is_left_out_and_counted(toy: Callable[..., Pretrained]) -> None:
    pretrained = toy(KNOWN, (3, D), three_layers, 6)
    long = TaggedSentence(("noun1",) * 7, ("N",) * 7, "1")
    found = result_of(probe(pretrained, tagged(60, 1), [*tagged(10, 2), long], most=None))
    assert (found.left_out, found.dev) == (1, 60)
    assert found.layers[OF_TAG].counts[-1].tolist() == [0.0, 0.0]
    assert found.layers[OF_TAG].accuracy == 1.0


def test_texts_are_probed_by_the_mean_of_their_words(layered: Pretrained) -> None:
    """The label is which kind of word is in the majority: the mean of the tags tells it, and noise does not."""

    def texts(n: int, seed: int) -> list[TextExample]:
        verbs = {one.words: sum(word in VERBS for word in one.words) for one in tagged(n, seed)}
        return [TextExample(" ".join(s), "verbs" if count > 3 else "nouns") for s, count in verbs.items() if count != 3]

    found = result_of(probe_texts(layered, texts(400, 3), texts(150, 4), most=None))
    assert found.unit == "texts"
    assert found.layers[OF_TAG].accuracy == 1.0
    assert found.layers[NOISE].accuracy < 0.7
    assert found.layers[OF_TAG].control is None
    assert found.layers[OF_TAG].selectivity is None
    more_in_train = max(("verbs", "nouns"), key=[one.label for one in texts(400, 3)].count)
    assert found.baseline == [one.label for one in texts(150, 4)].count(more_in_train) / len(texts(150, 4))


def test_a_draw_has_whole_sentences_and_as_many_words_as_asked() -> None:
    sentences = [labelled_words(one) for one in tagged(50, 5)]
    drawn = draw(sentences, 31, 0, "train")
    assert len(drawn) == 6  # of six words each
    assert all(one in sentences for one in drawn)
    assert draw(sentences, 31, 0, "train") == drawn
    assert draw(sentences, 31, 1, "train") != drawn
    assert draw(sentences, None, 0, "train") == sentences
    with pytest.raises(ConfigError, match="got 0"):
        draw(sentences, 0, 0, "train")


def test_progress_ends_with_every_probe_fitted(layered: Pretrained) -> None:
    events = list(probe(layered, tagged(60, 1), tagged(10, 2)))
    assert events[-1] == Progress("probing", 6, 6, "probes")


def test_the_picture_has_the_curve_its_intervals_the_control_task_and_the_baseline(layered: Pretrained) -> None:
    found = probed(layered)
    with style():
        (axes,) = draw_probes(found).axes
    curve, control, baseline = (line.get_ydata() for line in axes.lines)
    assert list(curve) == pytest.approx([100 * layer.accuracy for layer in found.layers])
    assert list(control) == pytest.approx([100 * (layer.control or 0) for layer in found.layers])
    assert list(baseline) == pytest.approx([100 * found.baseline] * 2)
    (band,) = axes.collections
    bounds = {round(float(y), 6) for y in band.get_paths()[0].vertices[:, 1]}
    assert {round(100 * bound, 6) for layer in found.layers for bound in layer.interval} <= bounds


def test_a_notebook_shows_a_row_for_each_layer(layered: Pretrained) -> None:
    found = probed(layered)
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + len(found.layers)
    assert f"<td>{100 * found.best.accuracy:.1f} %</td>" in shown


def test_one_label_is_nothing_to_probe_for(layered: Pretrained) -> None:
    same = [TaggedSentence(("noun1", "verb1"), ("X", "X"), "1")] * 4
    with pytest.raises(DataError, match="at least two different labels; the training sentences drawn have 1"):
        result_of(probe(layered, same, same))
    with pytest.raises(DataError, match="has no tags"):
        result_of(probe(layered, [TaggedSentence(("noun1",), None, "file:3")], same))


def test_layers_written_together_are_read_one_by_one() -> None:
    rows = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    with LayerFiles(2, 3) as files:
        files.add(rows[:1])
        files.add(rows[1:])
        assert files.rows == 4
        assert (files.layer(1) == rows[:, 1]).all()
        assert (files.layer(0) == rows[:, 0]).all()
