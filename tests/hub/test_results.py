"""Figures of `ctxsim evaluate` as rows of a card."""

from ctxsim_hf.hub.results import eval_results, results_table


def test_judgements_of_ones_own_have_columns_and_no_place_on_the_hub() -> None:
    rows = [
        {
            "task": "health",
            "split": "test",
            "pairs": 3048,
            "average_precision": {"value": 0.861},
            "auc": {"value": 0.9},
        },
        {"task": "scidocs", "split": "test", "pairs": 200, "ndcg_at_10": {"value": 0.25}, "mrr_at_10": {"value": 0.4}},
    ]
    head, _, first, second = results_table(rows).splitlines()
    assert [cell.strip() for cell in head.split("|")[4:-1]] == [
        f"{name} x 100 (95 %)" for name in ("AP", "AUC", "nDCG@10", "MRR@10")
    ]
    assert [cell.strip() for cell in first.split("|")[4:-1]] == ["86.1", "90.0", "-", "-"]
    assert [cell.strip() for cell in second.split("|")[4:-1]] == ["-", "-", "25.0", "40.0"]
    assert list(eval_results(rows)) == []
