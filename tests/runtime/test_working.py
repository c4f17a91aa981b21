"""The working folder beside an output: ours alone, one writer at a time, and the old or the new output stays."""

import subprocess
import sys
from pathlib import Path

import pytest

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.working import WorkingFolder, is_unfinished, refuse_same_file, writing_output


def test_it_is_there_only_while_something_is_unfinished(tmp_path: Path) -> None:
    with WorkingFolder(tmp_path / "out") as working:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.ctxsim-partial"]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), working:
        working.partial.mkdir()
        raise KeyboardInterrupt
    assert is_unfinished(tmp_path / "out")
    assert sorted(path.name for path in working.path.iterdir()) == ["ctxsim-working-folder", "output"]
    with working:
        working.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["out.ctxsim-partial/thesis.txt", "out.ctxsim-partial"])
def test_what_is_not_ours_is_not_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("years of work")
    with (
        pytest.raises(UserError, match="was not made by ctxsim, which needs this name"),
        WorkingFolder(tmp_path / "out"),
    ):
        pass
    assert (tmp_path / name).read_text() == "years of work"


def test_a_link_to_elsewhere_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out.ctxsim-partial").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="was not made by ctxsim"), WorkingFolder(tmp_path / "out"):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_output_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere/real")
    with WorkingFolder(tmp_path / "out") as working:
        working.partial.mkdir()
        working.finish()
    assert (tmp_path / "out").is_symlink() and (tmp_path / "elsewhere/real").is_dir()


def test_a_kill_while_the_output_is_replaced_loses_neither(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/old.txt").touch()
    with pytest.raises(KeyboardInterrupt), WorkingFolder(tmp_path / "out") as working:
        working.partial.mkdir()
        (tmp_path / "out").rename(working.path / "replaced")  # the first half of `finish`
        raise KeyboardInterrupt
    with WorkingFolder(tmp_path / "out") as working:
        assert (tmp_path / "out/old.txt").exists() and working.partial.is_dir()
        working.finish()
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys; from ctxsim_hf.runtime.working import WorkingFolder\n"
        "with WorkingFolder(sys.argv[1]): print('in', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "in\n"
        for output in (tmp_path / "out", tmp_path / "elsewhere/../out"):
            (tmp_path / "elsewhere").mkdir(exist_ok=True)
            with pytest.raises(UserError, match="another run is writing into"), WorkingFolder(output):
                pass
        other.communicate("")
    with WorkingFolder(tmp_path / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


@pytest.mark.parametrize("output", ["", ".", "..", "/", "a/.."])
def test_an_output_without_a_name(output: str) -> None:
    with pytest.raises(UserError, match="expected the name of a folder to write, got"):
        WorkingFolder(output)


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"expected the name of a folder to write, but .* is a file"):
        WorkingFolder(tmp_path / "file")
    with pytest.raises(UserError, match=r"expected the name of a file to write, but .* is a folder"):
        WorkingFolder(tmp_path, "a file")
    with pytest.raises(UserError, match="expected the name of a file to write, but '/dev/null' is a device or a pipe"):
        WorkingFolder("/dev/null", "a file")
    with pytest.raises(UserError, match="File name too long"):
        WorkingFolder(tmp_path / ("x" * 300)).__enter__()
    with pytest.raises(UserError, match="cannot make the folder"), WorkingFolder(tmp_path / "file/out"):
        pass
    with (
        pytest.raises(UserError, match="cannot make the folder"),
        WorkingFolder("/proc/out"),
    ):  # read-only, even to root
        pass


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    with writing_output(tmp_path / "out.txt") as path:
        path.write_text("old")
    with pytest.raises(ZeroDivisionError), writing_output(tmp_path / "out.txt") as path:
        path.write_text("half")
        _ = 1 / 0
    assert (tmp_path / "out.txt").read_text() == "old"
    with writing_output(tmp_path / "out.txt") as path:
        path.write_text("new")
    assert (tmp_path / "out.txt").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_the_file_that_is_read_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to("a")
    refuse_same_file(tmp_path / "a", tmp_path / "c")
    for name in ("a", "b"):
        with pytest.raises(UserError, match="is read and would be overwritten; choose another --output"):
            refuse_same_file(tmp_path / "a", tmp_path / name)
