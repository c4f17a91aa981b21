"""The scripts for Slurm and Ray call functions and executors that exist, with arguments that these take."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import ctxsim_hf

EXAMPLES = Path(__file__).parents[2] / "examples"


def calls_of(script: str) -> dict[str, ast.Call]:
    """Return the calls of functions of this package, by name."""
    nodes = ast.walk(ast.parse((EXAMPLES / f"{script}.py").read_text("utf-8")))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return {call.func.attr: call for call in calls if ast.unparse(call.func.value) == "ctxsim_hf"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("script", ["slurm", "ray_cluster"])
def test_functions_and_their_arguments_exist(script: str) -> None:
    calls = calls_of(script)
    assert set(calls) == {"chunk", "build_index", "harvest"}
    for name, call in calls.items():
        signature = inspect.signature(getattr(ctxsim_hf, name))
        named = {str(keyword.arg): keyword.value for keyword in call.keywords}
        signature.bind(*call.args, **named)
        assert set(named) <= set(signature.parameters), "no other options, which would only be checked in the run"
        assert "executor" in named


@pytest.mark.parametrize(("script", "make"), [("slurm", "on_slurm"), ("ray_cluster", "on_ray")])
def test_datatrove_takes_the_settings(script: str, make: str) -> None:
    pytest.importorskip("datatrove.executor", reason="needs the extra cluster")
    if script == "ray_cluster":
        pytest.importorskip("ray", reason="needs the extra test-cluster")
    executor = getattr(importlib.import_module(script), make)(tasks=3)
    inspect.signature(executor.executor_class).bind(
        pipeline=[], logging_dir="logs", tasks=executor.tasks, **executor.settings
    )
