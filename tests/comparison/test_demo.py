from __future__ import annotations

from pathlib import Path

from headstart.comparison.demo import DEV_SENTENCES, read_examples, write_examples, write_files


def test_every_so_many_sentences_are_held_out_and_no_review_is_cut(tmp_path: Path) -> None:
    pairs = [(f"sentence {number}", "positive" if number < 1_100 else "negative") for number in range(2_200)]
    write_examples(tmp_path / "short.csv", pairs)
    write_examples(tmp_path / "long.csv", [("One,<br /><br />two.", "positive"), ("Three\t four.", "negative")])
    files = write_files(tmp_path / "long.csv", tmp_path / "short.csv", tmp_path / "data")
    assert files.text.read_text() == "One, two.\nThree four.\n"
    step = 2_200 // DEV_SENTENCES
    dev, train = read_examples(files.dev), read_examples(files.train)
    assert dev == pairs[::step]
    assert sorted(dev + train) == sorted(pairs)
    assert sum(label == "positive" for _, label in dev) == len(dev) // 2
