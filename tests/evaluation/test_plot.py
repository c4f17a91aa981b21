"""Plots: drawn without a complaint, whatever the names, and the same bytes twice."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf.evaluation.ablation_report import AblationReport
from ctxsim_hf.evaluation.examples import GradedPairs
from ctxsim_hf.evaluation.plot import write_plot
from ctxsim_hf.evaluation.results import SystemResult, judge
from ctxsim_hf.evaluation.systems import PairScorer

NAMES = (
    "tfidf",
    "surrogate:/a/folder/whose/path/is/rather/long/as/paths/in/temporary/folders/are/wont/to/be/surrogate",
)
TASK = GradedPairs("stsb", "validation", list("abcdef"), list("ABCDEF"), np.array([0.0, 1, 2, 3, 4, 5]))


def system(name: str, *scores: float) -> SystemResult:
    return judge(name, [PairScorer(lambda first, second: np.array(scores))], [TASK])


@pytest.mark.parametrize("names", [NAMES, [f"{NAMES[1]}-{number}" for number in range(12)]], ids=["two", "many"])
def test_long_names(names: list[str], tmp_path: Path) -> None:
    systems = [system(name, 0, 2, 1, 3, 5, 4) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in (tmp_path / "once.png", tmp_path / "twice.png"):
            assert write_plot(systems, path) is None
        AblationReport([TASK], systems, paper={names[0]: 70.0, "another": 60.0}).draw(tmp_path / "arms.png")
    assert (tmp_path / "once.png").read_bytes() == (tmp_path / "twice.png").read_bytes()
    assert (tmp_path / "arms.png").read_bytes().startswith(b"\x89PNG")


def test_arms_beside_the_papers() -> None:
    full, worse = system("full", 0, 1, 2, 3, 4, 5), system("worse", 0, 1, 2, 3, 5, 4)
    report = AblationReport([TASK], [full, worse], paper={"full": 78.47, "worse": 76.0, "only theirs": 34.45})
    heading, first, second, third = report.table()
    assert heading == ["arm", "stsb", "95 % interval", "vs first arm", "paper", "vs its first arm"]
    assert (first[:2], first[3:]) == (["full", "100.0"], ["", "78.47", ""])
    # One swap of neighbours: 1 - 6 * 2 / (6 * 35).
    assert (second[:2], second[3:]) == (["worse", "94.3"], ["-5.7", "76.00", "-2.47"])
    assert third == ["only theirs", "", "", "", "34.45", "-44.02"]
    assert report.to_json()["paper"][2] == {"arm": "only theirs", "stsb": 34.45}
    alone = AblationReport([TASK], [full], paper={})
    assert alone.table()[0][3:] == ["vs first arm"] and alone.table()[1][3:] == [""]
    assert "paper" not in alone.to_markdown()
