import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from headstart.config import resolve
from headstart.errors import ConfigError, DataError
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.reading import ExamplesConfig, separator_notice, unify_labels


def read_examples(path: str | Path, config: ExamplesConfig = ExamplesConfig()) -> list[TextExample]:  # noqa: B008
    return Classify.read(Path(path), config)


def examples_of(texts: list[str], labels: list[str]) -> list[TextExample]:
    return [TextExample(text, label) for text, label in zip(texts, labels, strict=True)]


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


TEXTS = ['He said "hi",\nthen left.', "zweite, Zeile\tmit Tab", "三"]
EXPECTED = examples_of(TEXTS, ["good", "bad", "good"])


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
def test_rows_round_trip(tmp_path, suffix):
    file = io.StringIO(newline="")
    if ".csv" in suffix:
        csv.writer(file).writerows(
            [["label", "id", "text"], *zip([example.label for example in EXPECTED], "012", TEXTS, strict=True)]
        )
    else:
        rows = zip([example.label for example in EXPECTED], TEXTS, strict=True)
        file.writelines(json.dumps({"label": label, "text": text}) + "\n\n" for label, text in rows)
    assert read_examples(write(tmp_path / f"rows{suffix}", file.getvalue())) == EXPECTED


def test_quotation_marks_are_plain_in_tsv(tmp_path):
    path = write(tmp_path / "a.tsv.gz", 'sentence\tlabel\n"so\t1\ngood"\t0\n')
    assert read_examples(str(path)) == examples_of(['"so', 'good"'], ["1", "0"])


def test_parquet_rows(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = {"id": [7, 8, 9], "label": [2, 1, 1], "text": TEXTS, "gap": [1.0, None, 2.0], "score": [0.5, 0.7, 0.1]}
    parquet.write_table(pyarrow.table(table), path)
    assert read_examples(path) == examples_of(TEXTS, ["2", "1", "1"])
    assert [example.label for example in read_examples(write(tmp_path / "b.parquet.gz", path.read_bytes()))] == [
        "2",
        "1",
        "1",
    ]
    with pytest.raises(DataError, match=r"a\.parquet, row 2: the label is empty"):
        read_examples(path, ExamplesConfig(label_field="gap"))
    with pytest.raises(DataError, match=r"a\.parquet, row 1: 'score' must be a class.*got 0\.5.*--label-field"):
        read_examples(path, ExamplesConfig(label_field="score"))
    with pytest.raises(DataError, match=r"row 1: 'id' must be text, got 7.*--text-field"):
        read_examples(path, ExamplesConfig(text_field="id"))
    with pytest.raises(DataError, match=r"no column 'body'; there are: id, label, text, gap, score.*--text-field"):
        read_examples(path, ExamplesConfig(text_field="body"))


def test_parquet_that_is_not_utf8(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    broken = pyarrow.array([b"caf\xe9"]).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": broken, "label": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: not a parquet file that can be read"):
        read_examples(tmp_path / "a.parquet")


def test_labels_become_strings(tmp_path):
    labels = [3, -1, True, False, 2.0, " pos ", "1.5"]
    lines = "".join(json.dumps({"text": "x", "label": label}) + "\n" for label in labels)
    assert [example.label for example in read_examples(write(tmp_path / "a.jsonl", lines))] == [
        "3",
        "-1",
        "true",
        "false",
        "2",
        "pos",
        "1.5",
    ]


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("text,sentence,review,label,sentiment,class", "0", "3"),
        ("class,sentiment,review,sentence", "3", "1"),
        ("class,review", "1", "0"),
    ],
)
def test_the_usual_columns_in_their_order(tmp_path, header, text, label):
    row = ",".join(str(number) for number in range(header.count(",") + 1))
    assert read_examples(write(tmp_path / "a.csv", f"{header}\n{row}\n")) == examples_of([text], [label])


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path / "a.csv", "text,label,body,stars\nno,no,yes,5\n")
    config = ExamplesConfig(text_field="body", label_field="stars")
    assert read_examples(path, config) == examples_of(["yes"], ["5"])


def test_empty_columns_at_the_end_of_a_row_do_no_harm(tmp_path):
    assert read_examples(write(tmp_path / "a.csv", "text,label\na,1,,\n\nb,2\n")) == examples_of(["a", "b"], ["1", "2"])


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_file_with_another_separator_is_recognised_and_said(tmp_path, separator):
    path = write(tmp_path / "a.csv", f'text{separator}label\n"one, two{separator} three"{separator}1\n')
    assert read_examples(path) == examples_of([f"one, two{separator} three"], ["1"])
    notice = separator_notice(path, ExamplesConfig())
    assert notice is not None
    assert "no comma" in notice
    assert separator_notice(path, ExamplesConfig(separator=separator)) is None
    assert separator_notice(write(tmp_path / "b.csv", "text,label\n"), ExamplesConfig()) is None


def test_the_separator_can_be_named(tmp_path):
    path = write(tmp_path / "a.csv", "text|label\na,b;c|1\n")
    assert read_examples(path, ExamplesConfig(separator="|")) == examples_of(["a,b;c"], ["1"])
    for name in ("tab", "\\t", "\t"):
        assert resolve(ExamplesConfig, {"separator": name}).separator == "\t"
    for wrong in (";;", "", '"'):
        with pytest.raises(ConfigError, match="--separator is one character"):
            resolve(ExamplesConfig, {"separator": wrong})


def test_a_wrong_separator_is_suspected(tmp_path):
    path = write(tmp_path / "a.csv", "text;a,label;b\n1,2\n")
    with pytest.raises(DataError, match=r"no column 'text'.*Are the columns separated by ';'\?.*--separator"):
        read_examples(path)
    with pytest.raises(DataError, match=r"a\.tsv:1: .*Are the columns separated by ','\?"):
        read_examples(write(tmp_path / "a.tsv", "text,label\na,1\n"))


def test_capitals_in_names_do_not_matter_but_an_exact_name_goes_first(tmp_path):
    path = write(tmp_path / "a.csv", "TEXT,text, Label ,Stars\nno,yes,1,5\n")
    assert read_examples(path) == examples_of(["yes"], ["1"])
    assert [example.label for example in read_examples(path, ExamplesConfig(label_field="stars"))] == ["5"]
    path = write(tmp_path / "b.csv", "Text,sentence,label\nno,yes,1\n")
    assert [example.text for example in read_examples(path)] == ["yes"]


@pytest.mark.parametrize("header", ["text,text,label", "Text,TEXT,label"])
def test_two_columns_of_one_name_are_not_chosen_from(tmp_path, header):
    with pytest.raises(DataError, match=r"more than one column is called 'text': columns 1 \('\w+'\) and 2 \('\w+'\)"):
        read_examples(write(tmp_path / "a.csv", f"{header}\na,b,1\n"))


@pytest.mark.parametrize("field", ["label", "Label"])
def test_the_label_is_not_the_text(tmp_path, field):
    path = write(tmp_path / "a.csv", "text,label\na,1\n")
    with pytest.raises(DataError, match=r"a\.csv:1: the column 'label' cannot be both text and label"):
        read_examples(path, ExamplesConfig(text_field=field))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.tsv.gz"])
def test_utf16_is_called_that(tmp_path, name, encoding):
    path = write(tmp_path / name, 'text,label\n{"text": "good film", "label": 1}\n'.encode(encoding))
    with pytest.raises(DataError, match=rf"{name}: is UTF-(16|32)(LE|BE)?, but UTF-8 is expected.*iconv -f UTF-"):
        read_examples(path)


WRONG = [
    (
        "a.csv",
        b"a,b\n1,2\n",
        r"a\.csv:1: has no column 'text' or 'sentence' or 'review'; there are: a, b\..*--text-field",
    ),
    ("a.csv", b"text,b\n1,2\n", r"a\.csv:1: has no column 'label' or 'sentiment' or 'class'.*text, b\..*--label-field"),
    ("a.jsonl", b'{"text": "a"}\n', r"a\.jsonl:1: has no column 'label'.*there are: text\."),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', r"a\.jsonl:2: has no key 'label'; there are: text\."),
    ("a.csv", b"text,label\na,1\n ,1\n", r"a\.csv:3: the text is empty"),
    ("a.csv", b"text,label\na,1\nb, \n", r"a\.csv:3: the label is empty"),
    ("a.jsonl", b'{"text": null, "label": 1}\n', r"a\.jsonl:1: the text is empty"),
    ("a.jsonl", b'{"text": "a", "label": null}\n', r"a\.jsonl:1: the label is empty"),
    ("a.jsonl", b'{"text": "a", "label": NaN}\n', r"a\.jsonl:1: the label is empty"),
    ("a.jsonl", b'{"text": "a", "label": ["x"]}\n', r"a\.jsonl:1: 'label' must be a class.*got \['x'\]"),
    ("a.jsonl", b'{"text": 3, "label": 1}\n', r"a\.jsonl:1: 'text' must be text, got 3"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text"\n', r"a\.jsonl:2: not JSON"),
    ("a.csv", b"text,label\nfine,1\nnot \xe9,1\n", r"a\.csv:3: not UTF-8 \(byte 0xe9\)"),
    ("a.csv", b"text,label\nfine,1\nshort\n", r"a\.csv:3: has 1 columns, but 'label' is column 2 of 2"),
    (
        "a.csv",
        b"text,label\ngood, but long,1\n",
        r"a\.csv:2: has 3 columns, but the first line names 2.*quotation marks",
    ),
    ("a.tsv", b"text\tlabel\ngood\tbut\t1\n", r"a\.tsv:2: has 3 columns, but the first line names 2"),
    ("a.csv", b'text,label\n"never closed,1\n', r"a\.csv:2: broken row"),
    ("a.csv", b"", r"a\.csv: holds no example"),
    ("a.csv", b"text,label\n\n", r"a\.csv: holds no example"),
    ("a.txt", b"\n", r"a\.txt: holds no example"),
    ("a.json", b"[]", r"a\.json: files of this kind hold no examples; known are \.csv, .*\.tar\.gz"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(tmp_path / name, content))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"absent\.csv: there is no such file or folder"):
        read_examples(tmp_path / "absent.csv")


def test_a_truncated_gzip_is_an_error(tmp_path):
    path = write(tmp_path / "a.csv.gz", "text,label\n" + "some text,1\n" * 100_000)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_examples(path)


def test_a_file_without_names_is_shown_in_short(tmp_path):
    with pytest.raises(DataError) as caught:
        read_examples(write(tmp_path / "a.tsv", "word " * 1000 + "\t1\n"))
    assert len(str(caught.value)) < 400


def test_config_is_checked(tmp_path):
    with pytest.raises(ConfigError, match="--text-field and --label-field must differ; got 'a' for both"):
        resolve(ExamplesConfig, {"text_field": "a", "label_field": "a"})
    with pytest.raises(ConfigError, match="labels_as"):
        resolve(ExamplesConfig, {"labels_as": 3})
    with pytest.raises(ConfigError, match=r"--labels-as 2 is for sentiment trees.*a\.csv has its own"):
        read_examples(write(tmp_path / "a.csv", "text,label\na,1\n"), ExamplesConfig(labels_as=2))


# --- labels -----------------------------------------------------------------------------------------------------------


def unified(*labels: str) -> list[str]:
    return [label for _, _, label in unify_labels((f"line {n}", "text", label) for n, label in enumerate(labels, 1))]


def test_one_spelling_for_each_whole_number():
    assert unified("1", "1.0", "0.0", "-2.00") == ["1", "1", "0", "-2"]


def test_labels_written_in_one_way_stay_as_they_are():
    for labels in (["1.0", "0.0"], ["1", "2"], ["1.0", "1.5"], ["pos", "neg"], ["True", "False"], ["yes", ""]):
        assert unified(*labels) == labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "nan", "0"], ["1", "", "0"]),
        (["1.0", "NaN", "0.0"], ["1.0", "", "0.0"]),
        (["pos", "NaN"], ["pos", ""]),
        (["eng", "nan", "fra"], ["eng", "nan", "fra"]),  # Min Nan Chinese
        (["nan"], [""]),
    ],
)
def test_nan_is_a_missing_label(labels, expected):
    assert unified(*labels) == expected


@pytest.mark.parametrize(("boolean", "bit"), [("true", "1"), ("False", "0"), ("TRUE", "0.0")])
def test_true_and_1_are_not_mixed(boolean, bit):
    with pytest.raises(DataError, match=rf"line 3: has the label '{boolean}', but line 2 has '{bit}'\."):
        unified("x", bit, boolean)


@pytest.mark.parametrize("missing", ["NaN", "null", '"NaN"', '"nan"', '""'])
def test_a_missing_label_of_a_file_is_an_error_with_its_line(missing, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": 1}\n' + f'{{"text": "b", "label": {missing}}}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: the label is empty"):
        read_examples(path)


def test_mixed_types_in_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": "a", "label": label}) + "\n" for label in [1, "1", 1.0, "1.0", 0]))
    assert [example.label for example in read_examples(path)] == ["1", "1", "1", "1", "0"]
    path.write_text('{"text": "a", "label": true}\n{"text": "b", "label": 1}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1: has the label 'true', but .*a\.jsonl:2 has '1'"):
        read_examples(path)


def test_nan_in_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": [1.0, float("nan")]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet, row 2: the label is empty"):
        read_examples(tmp_path / "a.parquet")
