"""Counts as lines for a reader."""

import pytest

from ctxsim_hf.runtime.counts import describe_result, format_counts


def test_columns_nested_counts_and_intervals() -> None:
    counts = {
        "chunks": {"train": 1234, "held_out": 5},
        "left_gain": 2.71951,
        "left_gain_low": 2.5,
        "left_gain_high": 2.9,
        "documents_skipped": {},
        "finished": True,
    }
    assert format_counts(counts).splitlines() == [
        f"{'chunks':<72}  1,234 train, 5 held out",
        "left: gain in log-probability per token from the true context (chance 0)  2.7195 (2.5000 to 2.9000)",
        f"{'documents skipped':<72}  0",
        f"{'finished':<72}  yes",
    ]
    assert format_counts({}) == ""


def test_figures_before_training() -> None:
    counts = {"right_gain": 1.5, "right_gain_before": 1.0, "right_gain_before_low": 0.5, "right_gain_before_high": 1.5}
    (after, before) = format_counts(counts).splitlines()
    assert before.startswith(after.split("  ")[0] + ", before training  1.0000 (0.5000 to 1.5000)")


def test_figures_of_a_start_and_over_folds() -> None:
    counts = {"spearman_start": 0.5, "pearson_deviation": 0.1}
    assert format_counts(counts).splitlines() == [
        f"{'Spearman correlation with the labels (chance 0), of the start':<81}  0.5000",
        "Pearson correlation with the labels (chance 0), standard deviation over the folds  0.1000",
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"left_gain": 0.1, "left_gain_low": 0.01, "left_gain_high": 0.2}, None),
        ({"left_gain": 0.1, "left_gain_low": -0.01, "left_gain_high": 0.2}, "left: gain in log-probability"),
        ({"accuracy_same_document": 0.52, "accuracy_same_document_low": 0.49}, "sentences of the same document"),
        ({"accuracy_same_document": 0.52, "accuracy_same_document_low": 0.51}, None),
        ({"spearman": 0.3, "spearman_start": -0.1}, None),
        ({"spearman": -0.1, "spearman_start": 0.3}, "Spearman correlation with the labels"),
        ({"spearman": float("nan")}, "Spearman correlation with the labels"),
        ({"sentences": 0}, None),
    ],
)
def test_a_stage_that_ends_at_chance_says_so(counts: dict[str, float], said: str | None) -> None:
    remarks = [
        line for line in describe_result(counts, "out").splitlines() if line.startswith("No better than chance")
    ]
    assert remarks == [] if said is None else len(remarks) == 1 and said in remarks[0]
    assert describe_result(counts, "out").endswith("out is finished")
