"""Run a notebook and write it with what it shows, without warnings and progress bars: `make notebook`."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TIMEOUT = 1800  # seconds of a cell


def run(path: Path) -> nbformat.NotebookNode:
    """Return the notebook as it is after a run from top to bottom."""
    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=TIMEOUT, record_timing=False, resources=folder).execute()
    return without_bars(notebook)


def without_bars(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop what cells wrote to standard error."""
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    nbformat.write(run(Path(sys.argv[1])), sys.argv[1])
