"""A step runs with values; the command line that is shown for it means the same."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from ctxsim_hf.cli import parse_flags
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.adapt_steps import plan
from ctxsim_hf.recipes.steps import Step, command_line
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.verbs import VERBS, build_arguments


def assert_means_the_same(step: Step) -> None:
    words = shlex.split(str(step))
    assert words[0] == "ctxsim" and " ".join(words[1:]).startswith(step.verb)
    parsed = parse_flags(step.verb, words[1 + len(step.verb.split()) :])
    assert parsed == build_arguments(VERBS[step.verb].arguments_class, step.values)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_shown_could_be_typed(tmp_path: Path, preset: str) -> None:
    options: dict[str, Any] = {"minutes": 33.3, "language": "de", "held_out": 0.125}
    arguments = AdaptArguments(corpus=["my texts", "more"], output=str(tmp_path / "an out"), preset=preset, **options)
    for step in plan(arguments):
        assert_means_the_same(step)


def test_steps_with_models_of_others_could_be_typed(tmp_path: Path) -> None:
    models: dict[str, Any] = {"context_model": "some/b c.gguf", "start": "some/encoder"}
    for given in (models, {"context_model": "some/lm"}):
        for step in plan(AdaptArguments(corpus=["texts"], output=str(tmp_path / "out"), **given), speed=12.34):
            assert_means_the_same(step)


def test_an_evaluation_with_settings(tmp_path: Path) -> None:
    values: dict[str, Any] = {"weights": [1.0, 0.5, 0.0, 1.0], "signals": None, "num_contexts": 8}
    step = Step.evaluation(["a=origin:b c", "tfidf"], tmp_path, tasks=["stsb"], **values)
    assert "'a=origin:b c' tfidf --tasks stsb --weights 1 0.5 0 1 --num-contexts 8 --output" in str(step)
    assert_means_the_same(step)


def test_names_that_end_like_a_number(tmp_path: Path) -> None:
    step = Step.evaluation(["st:model-v1.0", "tfidf"], tmp_path, tasks=["stsb"], data_root="data-2.0")
    assert "st:model-v1.0 tfidf --tasks stsb --data-root data-2.0 --output" in str(step)


def test_defaults_are_left_out() -> None:
    values = {"corpus": ["a"], "text_column": "text", "skip_bad": True, "held_out": None, "output": "b"}
    assert command_line("chunk", values) == "ctxsim chunk --corpus a --skip-bad --output b"
