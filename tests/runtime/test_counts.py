"""Counts as lines for a reader."""

from ctxsim_hf.runtime.counts import format_counts


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
