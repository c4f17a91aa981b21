"""An evaluation that was killed goes on: systems that have answered are not asked again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text
from tiny_surrogate import save_tiny

Run = Callable[..., tuple[int, str, str]]
SYSTEMS = """
from pathlib import Path
import numpy as np

class System:
    def similarity(self, first, second):
        with Path(__file__).with_name("calls").open("a") as calls:
            calls.write(type(self).__name__ + "\\n")
        if type(self).__name__ == "Second" and Path(__file__).with_name("kill").exists():
            raise KeyboardInterrupt
        return np.array([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(first, second)])

class First(System): pass
class Second(System): pass
"""


def test_it_goes_on_after_a_kill(
    ctxsim: Run, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept_systems.py").write_text(SYSTEMS)
    monkeypatch.syspath_prepend(tmp_path)
    words = ("evaluate", "python:kept_systems:First", "python:kept_systems:Second", "--tasks", "stsb", "--data-root")
    output = tmp_path / "results"
    (tmp_path / "kill").touch()
    assert ctxsim(*words, data_root, "--output", output)[0] == 130
    assert [path.suffix for path in output.rglob("*") if path.is_file()] == [".npz"]
    (tmp_path / "kill").unlink()
    code, _, err = ctxsim(*words, data_root, "--output", output)
    assert code == 0, err
    assert (tmp_path / "calls").read_text().split() == ["First", "Second", "Second"]
    assert not (output / "unfinished").exists()
    assert ctxsim(*words, data_root, "--output", tmp_path / "fresh")[0] == 0
    assert (output / "results.json").read_bytes() == (tmp_path / "fresh/results.json").read_bytes()
    assert (output / "scores.npy").read_bytes() == (tmp_path / "fresh/scores.npy").read_bytes()


def test_a_damaged_answer_is_asked_for_again(
    ctxsim: Run, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damaged_systems.py").write_text(SYSTEMS)
    monkeypatch.syspath_prepend(tmp_path)
    systems = ("python:damaged_systems:First", "python:damaged_systems:Second")
    words = ("evaluate", *systems, "--tasks", "stsb", "--data-root", data_root, "--output", tmp_path / "out")
    (tmp_path / "kill").touch()
    assert ctxsim(*words)[0] == 130
    (kept,) = (tmp_path / "out/unfinished").iterdir()
    for content in (kept.read_bytes().replace(b"stsb", b"stsa"), kept.read_bytes()[:-9], _flipped(kept.read_bytes())):
        kept.write_bytes(content)
        assert ctxsim(*words)[0] == 130
    (tmp_path / "kill").unlink()
    assert ctxsim(*words)[0] == 0


def _flipped(content: bytes) -> bytes:
    return content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 4]) + content[len(content) // 2 + 1 :]


def test_other_data_are_asked_anew(
    ctxsim: Run, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other_systems.py").write_text(SYSTEMS)
    monkeypatch.syspath_prepend(tmp_path)
    words = ("evaluate", "python:other_systems:First", "python:other_systems:Second", "--tasks", "stsb", "--data-root")
    (tmp_path / "kill").touch()
    for limit in (4, 4, 3):
        assert ctxsim(*words, data_root, "--output", tmp_path / "out", "--limit", limit)[0] == 130
    assert (tmp_path / "calls").read_text().split() == ["First", "Second", "Second", "First", "Second"]


def test_what_an_evaluation_writes_into_a_surrogate_does_not_make_it_another(
    ctxsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "later_systems.py").write_text(SYSTEMS)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "corpus").mkdir()
    for number in range(20):
        (tmp_path / f"corpus/{number}.txt").write_text(make_text(40, seed=number))
    chunks, surrogate = tmp_path / "chunks", save_tiny(tmp_path / "surrogate")
    assert ctxsim("chunk", "--corpus", tmp_path / "corpus", "--held-out", 0.5, "--output", chunks)[0] == 0
    systems = (f"surrogate:{surrogate}", "python:later_systems:Second")
    words = ("evaluate", *systems, "--label-free", "--chunks", chunks, "--limit", 20, "--save-thresholds")
    (tmp_path / "kill").touch()

    def killed() -> list[tuple[str, int]]:
        """Return the answers that a killed run leaves, with their times."""
        code, _, err = ctxsim(*words, "--output", surrogate)
        assert code == 130, err
        return [(path.name, path.stat().st_mtime_ns) for path in sorted((surrogate / "unfinished").iterdir())]

    first = killed()
    assert len(first) == 1 and (surrogate / "thresholds.json").exists()
    assert killed() == first
    (surrogate / "weights.json").write_text("{}")  # unlike a report, they shape the scores of a model
    assert len(killed()) == 2
    (tmp_path / "kill").unlink()
    code, _, err = ctxsim(*words, "--output", surrogate)
    assert code == 0, err
    assert not (surrogate / "unfinished").exists()
