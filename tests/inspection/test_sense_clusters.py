"""Clusters of a word's occurrences: found where they are, none where there are none, named and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.errors import ConfigError, DataError
from headstart.inspection.sense_clusters import EvenSample, sense_clusters
from headstart.pretrained import Pretrained
from headstart.progress import result_of

SENSES = {
    "on the stage": ["the old actor writes a play {n} .", "her sister hates the play {n} ."],
    "with the cat": ["nobody and the cat play {n} .", "every child and a dog play {n} ."],
}


@pytest.fixture
def bert(pretrained_runs: dict[str, Path]) -> Pretrained:
    return headstart.load(pretrained_runs["bert"])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    lines = [
        template.format(n=" ".join(["today"] * number) + f" {place}")
        for place, templates in SENSES.items()
        for template in templates
        for number in range(8)
    ]
    path.write_text("\n\n".join([*lines, "Play and play .", "the player plays ."]))
    return path


def test_an_even_sample_spans_the_stream_and_holds_little() -> None:
    sample = EvenSample(10)
    for number in range(1_000):
        sample.add(str(number))
        assert len(sample._kept) <= 41
    drawn = [int(item) for item in sample.drawn()]
    assert (sample.seen, len(drawn)) == (1_000, 10)
    assert drawn[0] == 0
    assert drawn[-1] >= 900
    assert max(np.diff(drawn)) <= 2 * min(np.diff(drawn))


def test_the_clusters_of_a_text(bert: Pretrained, text: Path) -> None:
    found = result_of(sense_clusters(bert, "PLAY", [text], clusters=2))
    assert (found.found, found.occurrences) == (33, 33)
    everything = [one for cluster in found.clusters for one in cluster.occurrences]
    assert all(one.place.word.lower() == "play" for one in everything)
    assert len({one.place.sentence for one in everything}) == 33
    sizes = [len(cluster.occurrences) for cluster in found.clusters]
    assert sizes == sorted(sizes, reverse=True)
    for cluster in found.clusters:
        cosines = [one.cosine for one in cluster.occurrences]
        assert cosines == sorted(cosines, reverse=True)
    table = json.loads(json.dumps(found.as_table()))
    assert [len(cluster["occurrences"]) for cluster in table["clusters"]] == sizes
    assert -1 <= table["silhouette"] <= 1
    html = found._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<b>") == 6
    assert html.endswith("</svg>\n")
    assert result_of(sense_clusters(bert, "PLAY", [text], clusters=2)) == found


def test_fewer_sentences_than_there_are(bert: Pretrained, text: Path) -> None:
    found = result_of(sense_clusters(bert, "play", [text], most=6))
    assert (found.found, found.occurrences, len(found.clusters)) == (33, 6, 1)
    assert (found.clusters[0].name, found.silhouette) == ("all", None)
    one = result_of(sense_clusters(bert, "player", [text]))
    assert (one.occurrences, one.clusters[0].occurrences[0].x) == (1, 0.0)


def test_what_is_refused(bert: Pretrained, pretrained_runs: dict[str, Path], text: Path) -> None:
    words = headstart.load(pretrained_runs["static"])
    with pytest.raises(ConfigError, match=r"one vector, whatever its sentence.*elmo-mini, which"):
        result_of(sense_clusters(words, "play", [text]))
    with pytest.raises(DataError, match=r"text\.txt: has no sentence with the word 'playful'"):
        result_of(sense_clusters(bert, "playful", [text]))
    with pytest.raises(DataError, match="'the cat' is not one word as bert reads it"):
        result_of(sense_clusters(bert, "the cat", [text]))
    with pytest.raises(ConfigError, match="clusters is a count of one or more; got 0"):
        result_of(sense_clusters(bert, "play", [text], clusters=0))
    with pytest.raises(ConfigError, match="33 occurrences of 'play' cannot make 34 clusters"):
        result_of(sense_clusters(bert, "play", [text], clusters=34))
    with pytest.raises(ConfigError, match="give --among TEXT"):
        result_of(sense_clusters(bert, "play", []))
    with pytest.raises(ConfigError, match="There is no layer 9"):
        result_of(sense_clusters(bert, "play", [text], layer=9))
