"""The cost model: what grows with what, what more cores change, and what the table says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxsim_hf.recipes.cost_model import Cost, CostModel, Workload
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]
NOTHING: dict[str, float] = {}
CONSTANTS = {
    "machine": "a made-up machine",
    "words_per_chunk": 100,
    "parts": {
        "read": {
            "parallel": False,
            "seconds": {"start": 5, "words": 0.01, "documents": 0.1},
            "memory": {"start": 1e6, "words": 2},
            "disk": {"words": 4},
        }
    },
    "context_models": {
        "light": {
            "preset": "light",
            "parts": {
                "label": {
                    "parallel": True,
                    "seconds": {"start": 3, "pairs": 0.1, "pairs * chunks": 0.001},
                    "memory": NOTHING,
                    "disk": NOTHING,
                }
            },
        },
        "causal": {
            "parts": {
                "label": {
                    "parallel": True,
                    "seconds": {"start": 3, "pairs * parameters": 0.001},
                    "memory": {"start": 1e6, "parameters": 8},
                    "disk": NOTHING,
                }
            },
        },
    },
}


def estimate(
    words: int = 1000, documents: int = 2, pairs: int = 100, cores: int = 1, preset: str = "light"
) -> dict[str, Cost]:
    workload = Workload(words=words, documents=documents, pairs=pairs, cores=cores)
    return {cost.part: cost for cost in CostModel(CONSTANTS).estimate(workload, "light", preset)}


def test_what_grows_with_what() -> None:
    costs = estimate()
    assert costs["read"] == Cost("read", 1, pytest.approx(15.2), 1e6 + 2000, 4000)
    assert costs["label"].seconds == pytest.approx(3 + 10 + 1.1), "1000 words of 2 documents are 11 chunks"
    assert estimate(words=10_000)["label"].seconds == pytest.approx(3 + 10 + 10.1)
    many = estimate(documents=20)
    assert many["read"].seconds == pytest.approx(17) and many["label"].seconds == pytest.approx(3 + 10 + 2)


def test_more_cores_help_only_what_is_parallel() -> None:
    costs = estimate(cores=11)
    assert costs["read"].seconds == pytest.approx(15.2) and costs["label"].seconds == pytest.approx(3 + 11.1 / 11)
    assert costs["label"].core_hours == pytest.approx((33 + 11.1) / 3600)


def test_another_preset_is_charged_by_its_size() -> None:
    assert estimate(preset="tiny")["label"].seconds == pytest.approx(3 + 11.1 * 32 / 256), (
        "hidden sizes of light and tiny"
    )
    assert estimate(preset="tiny")["read"].seconds == estimate()["read"].seconds
    with pytest.raises(UserError, match="the preset 'base' has no light generator"):
        estimate(preset="base")


def test_a_language_model_is_charged_by_its_parameters() -> None:
    workload = Workload(words=1000, documents=2, pairs=100, cores=2, parameters=500)
    _, label = CostModel(CONSTANTS).estimate(workload, "causal", "light")
    assert label == Cost("label", 2, pytest.approx(3 + 50 / 2), 1e6 + 4000, 0)


def test_constants_of_the_package(ctxsim: Run) -> None:
    code, out, _ = ctxsim("plan", "--words", 10**9, "--pairs", 10**6, "--machines", 10, "--cores", 16)
    assert code == 0 and "shipped with the package" in out and "not included: training" in out
    assert "| harvest: label | 160 |" in out and "| chunk: find duplicates | 1 |" in out


def test_a_language_model_of_the_package(ctxsim: Run) -> None:
    words = ("plan", "--words", 10**6, "--pairs", 10**7, "--context-model", "causal")
    small, large = (ctxsim(*words, *more)[1] for more in ((), ("--parameters", 1_711_376_384)))
    assert "| index: background | 1 |" in small and "index: context models" not in small
    label = [next(line for line in out.splitlines() if "harvest: label" in line) for out in (small, large)]
    hours = [float(line.split(" | ")[3].replace(",", "")) for line in label]
    assert hours[1] > 10 * hours[0] > 0 and "GB" in label[1]


def test_short_documents_cost_more(ctxsim: Run) -> None:
    """By the constants of the package: more to compare with each other, and more chunks to look through."""
    words = ("plan", "--words", 10**9, "--pairs", 10**6)
    many, few = (ctxsim(*words, "--documents", number)[1].splitlines() for number in (10**7, 10**5))
    parts = ["chunk: find duplicates", "harvest: draw", "harvest: label"]
    changed = [line for line, other in zip(many, few, strict=True) if line != other]
    assert [line.split(" | ")[0].removeprefix("| ") for line in changed][:-1] == parts
    assert ctxsim(*words)[1] == ctxsim(*words, "--documents", 2 * 10**6)[1], "500 words a document"


def test_constants_of_ones_own(ctxsim: Run, tmp_path: Path) -> None:
    (tmp_path / "costs.json").write_text(json.dumps(CONSTANTS))
    code, out, _ = ctxsim("plan", "--words", 1000, "--pairs", 100, "--constants", tmp_path / "costs.json")
    assert code == 0 and "| read | 1 | 15 s | 0.0 | 1.0 MB | 4 kB |" in out
    assert "measured on a made-up machine (your own)" in out


def test_what_was_not_measured(ctxsim: Run, tmp_path: Path) -> None:
    code, _, err = ctxsim("plan", "--words", 1000, "--context-model", "seq2seq")
    assert code == 2 and "for the context model 'seq2seq'; expected one of light, causal" in err
    code, _, err = ctxsim("plan", "--words", 1000, "--constants", tmp_path / "nothing.json")
    assert code == 2 and "holds no constants" in err
