"""`ctxsim label`, and its table filled in and learned by `ctxsim train surrogate`."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.mining.pairs_to_label import JudgedPairs, choose_pairs
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labelled_file import MIN_PAIRS, LabelledFile

Run = Callable[..., tuple[int, str, str]]


def judged(signals: dict[str, list[float]], spreads: list[float], members: list[tuple[int, int]]) -> JudgedPairs:
    values = {name: np.array(column) for name, column in signals.items()}
    return JudgedPairs(np.array(members), np.zeros(len(members)), np.array(spreads), values)


def test_pairs_that_signals_disagree_about_come_first() -> None:
    members = [(0, 1), (2, 3), (4, 5), (6, 7)]
    signals = {"words": [0.9, 0.1, 0.2, 0.3], "contexts": [10.0, 40.0, 20.0, 30.0]}  # of other scales
    pairs = judged(signals, [0.0] * 4, members)
    np.testing.assert_allclose(pairs.disagreements, [1, 1, 0, 0])
    assert choose_pairs(pairs, 2).tolist() == [0, 1]
    wide = judged(signals, [0.1, 0.3, 0.2, 0.0], members)
    assert choose_pairs(wide, 4).tolist() == [1, 0, 2, 3], "then those of the widest spread"


def test_no_sentence_is_in_two_pairs() -> None:
    signals = {"words": [0.9, 0.1, 0.2], "contexts": [1.0, 4.0, 2.0]}
    assert choose_pairs(judged(signals, [0.0] * 3, [(0, 1), (1, 2), (3, 4)]), 3).tolist() == [0, 2]


def fill(table: Path, label: Callable[[dict[str, str]], str]) -> list[dict[str, str]]:
    """Fill in the labels as a person would, and return the rows."""
    with table.open(newline="") as file:
        reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows, columns = list(reader), list(reader.fieldnames or ())
    lines = ["\t".join(columns), *("\t".join((row | {"label": label(row)}).values()) for row in rows)]
    table.write_text("\n".join(lines) + "\n")
    return rows


def test_there_and_back(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    """The table goes to a person, who labels all but one pair, the fewest that train, and comes back as a better
    surrogate."""
    table, surrogate = tmp_path / "pairs.tsv", save_tiny(tmp_path / "surrogate")
    words = ("label", "--origin", planted / "origin", "--surrogate", surrogate, "--output", table)
    code, out, err = ctxsim(*words, "--number", 51, "--candidates", 900)
    assert code == 0, err
    assert out.startswith("51 of 900 pairs, those about which words, contexts, surrogate disagree most")
    rows = fill(table, lambda row: str(len(row["sentence1"]) % 6))
    assert list(rows[0]) == ["sentence1", "sentence2", "label", "similarity", "spread", "disagreement"]
    sentences = [row[name] for row in rows for name in ("sentence1", "sentence2")]
    assert len(set(sentences)) == len(sentences) == 102 and not any(row["label"] for row in rows)
    assert ctxsim(*words)[0] == 2, "labels are never overwritten"
    text = table.read_text().splitlines()
    first = text[1].split("\t")
    table.write_text("\n".join([text[0], "\t".join([*first[:2], "", *first[3:]]), *text[2:]]) + "\n")
    trained = tmp_path / "trained"
    steps = ("--max-steps", 60, "--max-sentence-tokens", 38, "--learning-rate", 0.003, "--eval-every", 1000)
    words = ("train", "surrogate", "--objective", "sts", "--labelled", table, "--init", surrogate, "--keep", "last")
    code, _, err = ctxsim(*words, *steps, "--output", trained)
    assert code == 0, err
    record = json.loads((trained / "stage.json").read_text())
    assert record["inputs"]["data"]["labels"] == MIN_PAIRS and record["inputs"]["data"]["name"] == "pairs.tsv"
    labels = np.array([len(row["sentence1"]) % 6 for row in rows[1:]]) / 5
    errors = [
        np.mean((SentenceEncoder.from_pretrained(folder).similarity(sentences[2::2], sentences[3::2]) - labels) ** 2)
        for folder in (surrogate, trained)
    ]
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1\tlabel\na\t1\n", "expected a column 'sentence2' in"),
        ("sentence1\tsentence2\tlabel\na\tb\t1\tc\n", "line 2: expected 3 columns, got 4"),
        ("sentence1\tsentence2\tlabel\na\tb\t\n", "expected at least 50 different pairs with a label in .*, found 0"),
        ("sentence1\tsentence2\tlabel\n" + "a\tb\t1\nb\ta\t2\n" * 50, "found 1; label more pairs"),
        ("sentence1\tsentence2\tlabel\n" + "a\tb\t6\n" * 10, "line 2: expected a label from 0 to 5, got '6'"),
        ("sentence1\tsentence2\tlabel\n" + "a\tb\tyes\n" * 10, "expected a label from 0 to 5, got 'yes'"),
    ],
)
def test_a_table_that_cannot_be_learned(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pairs.tsv").write_text(content)
    with pytest.raises(UserError, match=message):
        LabelledFile.read(tmp_path / "pairs.tsv")


def test_commas_and_grades_between(tmp_path: Path) -> None:
    rows = "".join(f"one {number}\ttwo {number}\t{grade}\n" for number, grade in enumerate(["2,5", "0", "5.0"] * 17))
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\n" + rows)
    assert LabelledFile.read(tmp_path / "pairs.tsv").pairs["label"].to_pylist() == [2.5, 0, 5] * 17


@pytest.mark.parametrize(
    "flags", [("--objective", "pairs", "--pairs", "x"), ("--objective", "sts", "--data-root", "x")]
)
def test_labels_are_for_one_objective(ctxsim: Run, flags: tuple[str, ...]) -> None:
    code, _, err = ctxsim("train", "surrogate", *flags, "--labelled", "x", "--init", "y", "--output", "z")
    assert code == 2 and "--labelled is for --objective sts, and takes the place of --data-root" in err
