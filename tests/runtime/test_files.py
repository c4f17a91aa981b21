"""Files and folders are whole or absent, and what the cache holds is made once."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from tokenizers import Tokenizer, models

from ctxsim_hf.runtime import files
from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import many_writers, read_json, whole_folder, write_json, writing

MAX_BYTES = 100_000


@pytest.fixture
def hf_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Hugging Face cache of its own, still to be made."""
    home = tmp_path / "home"
    monkeypatch.setattr(constants, "HF_HOME", str(home))
    files.cache_root.cache_clear()
    yield home
    files.cache_root.cache_clear()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may be larger than `MAX_BYTES`, so that writing fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    # Every write to it fails with the real error of a full disk.
    (tmp_path / ".a.txt.ctxsim-tmp").symlink_to("/dev/full")
    with (
        pytest.raises(UserError, match=r"could not write .*No space left on device.*to resume"),
        writing(tmp_path / "a.txt") as path,
    ):
        path.write_text("hello" * 1000)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_whichever_library_writes(tmp_path: Path, small_files: None) -> None:
    tokenizer = Tokenizer(models.WordLevel({f"word {number}": number for number in range(MAX_BYTES // 10)}, "word 0"))
    tensors = {"a": torch.zeros(MAX_BYTES)}
    for write, reason in (
        (lambda path: path.write_bytes(bytes(2 * MAX_BYTES)), "File too large"),
        (lambda path: save_file(tensors, path), "File too large"),
        (lambda path: torch.save(tensors, path), "torch failed in the middle of a file"),
        (lambda path: tokenizer.save(str(path)), "File too large"),
    ):
        with pytest.raises(UserError, match=f"could not write .*/a': {reason}"), writing(tmp_path / "a") as path:
            write(path)
    with pytest.raises(RuntimeError, match="of its own"), writing(tmp_path / "a"):
        raise RuntimeError("of its own")
    assert list(tmp_path.iterdir()) == []


def test_processes_that_write_one_file_do_not_meet(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv[0] = 'ctxsim'; from pathlib import Path; from ctxsim_hf.runtime.files import writing\n"
        f"with writing(Path({str(tmp_path / 'a.txt')!r}), shared=True) as path: path.write_text('theirs')"
    )
    with writing(tmp_path / "a.txt", shared=True) as path:
        path.write_text("ours")
        subprocess.run([sys.executable, "-c", code], check=True)
        assert (tmp_path / "a.txt").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "ours"


def test_a_folder_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "deep/.made.ctxsim-tmp").mkdir(parents=True)
    (tmp_path / "deep/.made.ctxsim-tmp/left_by_a_killed_process").touch()
    with whole_folder(tmp_path / "deep/made") as folder:
        (folder / "inner").mkdir()
        (folder / "inner/a.txt").write_text("hello")
        assert not (tmp_path / "deep/made").exists()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["made"]
    assert [path.name for path in (tmp_path / "deep/made").rglob("*")] == ["inner", "a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_folder_that_was_interrupted_is_removed(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), whole_folder(tmp_path / "made") as folder:
        (folder / "a.txt").write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"could not write .*Not a directory"), whole_folder(tmp_path / "file/made"):
        pytest.fail("there is no folder to write into")
    (tmp_path / "made").mkdir()
    (tmp_path / "made/mine.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"could not write .*not empty"), whole_folder(tmp_path / "made"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "made", "mine.txt"]


def test_json_keeps_its_bytes_and_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert read_json(path) == {}
    write_json(path, {"b": [1, 2], "a": "é"})
    first = path.read_bytes()
    write_json(path, {"a": "é", "b": [1, 2]})
    assert path.read_bytes() == first and read_json(path) == {"a": "é", "b": [1, 2]}
    for damage in ("{", "[" * 100_000):
        path.write_text(damage)
        with pytest.raises(UserError, match=r"a.json' is damaged"):
            read_json(path)


def test_what_is_cached_is_made_once_for_each_origin(hf_home: Path) -> None:
    made = []

    def build(folder: Path) -> None:
        made.append(folder)
        (folder / "a.txt").write_text("hello")

    first = cached_folder("words", [1, {"a": 2, "b": 3}], build)
    assert first.is_relative_to(hf_home / "ctxsim/words") and (first / "a.txt").read_text() == "hello"
    assert cached_folder("words", [1, {"b": 3, "a": 2}], build) == first and len(made) == 1
    assert cached_folder("words", [2], build) != first and len(made) == 2
    with pytest.raises(ZeroDivisionError):
        cached_folder("words", [3], lambda folder: (folder / str(1 / 0)).touch())
    assert (cached_folder("words", [3], build) / "a.txt").exists() and len(made) == 3


def test_a_cache_that_cannot_be_written_is_done_without(hf_home: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = cached_folder("words", [1], lambda folder: (folder / "a.txt").touch())
    hf_home.rename(hf_home.with_name("moved"))
    hf_home.touch()  # a file, where root cannot make a folder either
    files.cache_root.cache_clear()
    folder = cached_folder("words", [2], lambda folder: (folder / "a.txt").touch())
    assert (folder / "a.txt").exists() and not folder.is_relative_to(hf_home.parent)
    assert "cannot write to the cache" in caplog.text and "HF_HOME" in caplog.text
    hf_home.unlink()
    hf_home.with_name("moved").rename(hf_home)  # made before: found, although this process writes elsewhere
    assert cached_folder("words", [1], pytest.fail) == kept


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    """A task that was lost and its second run: neither touches what the other is writing."""
    with many_writers(), writing(tmp_path / "a.txt") as first:
        assert socket.gethostname() in first.name and str(os.getpid()) in first.name
        first.write_text("the same")
    with writing(tmp_path / "b.txt") as path:
        assert path.name == ".b.txt.ctxsim-tmp"
        path.touch()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt"]
