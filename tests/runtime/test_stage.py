"""The stage-folder contract: whole or absent, resumable, refusing what other arguments made, one run at a time."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from unfinished import unfinished

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.checks import verify_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import describe_stage, read_stage
from ctxsim_hf.runtime.stage import Stage


@dataclass(kw_only=True)
class Arguments(StageArguments):
    number: int = 1


def make(output: Path, number: int = 1, overwrite: bool = False, text: str = "hello") -> Stage:
    with Stage("toy", Arguments(output=str(output), number=number, overwrite=overwrite), {"corpus": "x"}) as stage:
        if not stage.finished:
            with stage.writing("data/a.txt") as path:
                path.write_text(text)
            stage.finish({"files": 1})
        return stage


def test_a_finished_folder_holds_just_what_was_written(tmp_path: Path) -> None:
    make(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert sorted(
        p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()
    ) == [
        "data/a.txt",
        "stage.json",
        "stage.log",
    ]
    record = read_stage(tmp_path / "out", "toy")
    assert record["arguments"] == {"number": 1}
    assert record["counts"] == {"files": 1}
    assert record["files"]["data/a.txt"]["bytes"] == 5


def test_equal_runs_leave_equal_bytes_and_a_finished_folder_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "a")
    make(tmp_path / "elsewhere" / "b")
    assert (tmp_path / "a/stage.json").read_bytes() == (tmp_path / "elsewhere/b/stage.json").read_bytes()
    assert describe_stage(tmp_path / "a", "toy") == describe_stage(tmp_path / "elsewhere/b", "toy")
    make(tmp_path / "a", text="never written")
    assert (tmp_path / "a/data/a.txt").read_text() == "hello"


def test_other_arguments_are_refused_with_both_values_unless_overwritten(tmp_path: Path) -> None:
    make(tmp_path / "out", number=1)
    with pytest.raises(UserError, match=r"arguments.number was 1, now 2.*--overwrite"):
        make(tmp_path / "out", number=2)
    make(tmp_path / "out", number=2, overwrite=True, text="other")
    assert (tmp_path / "out/data/a.txt").read_text() == "other"
    assert read_stage(tmp_path / "out")["arguments"] == {"number": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_log_that_cannot_be_written_does_not_hide_the_error_or_keep_the_lock(tmp_path: Path) -> None:
    arguments = Arguments(output=str(tmp_path / "out"))
    with pytest.raises(ValueError, match="what went wrong"), Stage("toy", arguments, {"corpus": "x"}) as stage:
        with stage.writing("first") as path:
            path.write_text("1")
        (stage.folder / "stage.log").unlink()
        (stage.folder / "stage.log").symlink_to("/dev/full")  # every write to it fails as on a full disk
        raise ValueError("what went wrong")
    with pytest.raises(UserError, match=r"could not write .*stage.log': No space left on device"):
        make(tmp_path / "out")
    (stage.folder / "stage.log").unlink()
    make(tmp_path / "out")


def test_an_interrupted_run_goes_on_from_its_finished_files(tmp_path: Path) -> None:
    arguments = Arguments(output=str(tmp_path / "out"))
    with pytest.raises(KeyboardInterrupt), Stage("toy", arguments, {"corpus": "x"}) as stage:
        with stage.writing("first") as path:
            path.write_text("1")
        with stage.writing("second") as path:
            path.write_text("half")
            raise KeyboardInterrupt
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="not finished yet"):
        read_stage(tmp_path / "out")
    with Stage("toy", arguments, {"corpus": "x"}) as stage:
        assert stage.has("first") and not stage.has("second")
        assert not stage.has(".second.ctxsim-tmp")
        stage.finish({})
    assert "interrupted" in (tmp_path / "out/stage.log").read_text()


def test_a_half_made_folder_of_other_arguments_or_versions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Stage("toy", Arguments(output=str(tmp_path / "out"), number=4), {}):
        raise KeyboardInterrupt  # before anything was finished: forgotten
    with pytest.raises(KeyboardInterrupt), Stage("toy", Arguments(output=str(tmp_path / "out")), {}) as stage:
        with stage.writing("first") as path:
            path.write_text("1")
        raise KeyboardInterrupt
    with (
        pytest.raises(UserError, match="number was 1, now 5"),
        Stage("toy", Arguments(output=str(tmp_path / "out"), number=5), {}),
    ):
        pass
    recipe = json.loads((stage.folder / "stage.json").read_text())
    recipe["versions"]["ctxsim_hf"] = "0.0.1"
    (stage.folder / "stage.json").write_text(json.dumps(recipe))
    with (
        pytest.raises(UserError, match=r"versions.ctxsim_hf was 0.0.1"),
        Stage("toy", Arguments(output=str(tmp_path / "out")), {}),
    ):
        pass


def test_a_folder_that_is_no_stage_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"has no stage.json"):
        make(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"


def test_neighbours_are_never_touched(tmp_path: Path) -> None:
    neighbours = [tmp_path / name for name in ("out.partial/mine", "out.replaced/mine", "out.lock", "out.tmp", ".out")]
    for path in neighbours:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    make(tmp_path / "out")
    make(tmp_path / "out", number=2, overwrite=True)
    assert {path.read_text() for path in neighbours} == {"mine"}
    assert len(list(tmp_path.iterdir())) == len(neighbours) + 1


def test_a_folder_with_files_of_others_is_not_replaced(tmp_path: Path) -> None:
    make(tmp_path / "out")
    (tmp_path / "out/data/thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"holds files .* did not write: data/thesis.txt; move them away"):
        make(tmp_path / "out", number=2, overwrite=True)
    make(tmp_path / "out")
    assert (tmp_path / "out/data/thesis.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_other_commands_replace_is_not_recorded(tmp_path: Path) -> None:
    with Stage("toy", Arguments(output=str(tmp_path / "out")), {}) as stage:
        (stage.folder / "thresholds.json").write_text("of the model that was exported")
        stage.finish({})
    (tmp_path / "out/thresholds.json").write_text("its own")
    with Stage("toy", Arguments(output=str(tmp_path / "out")), {}) as stage:
        assert stage.finished


def test_a_finished_folder_that_is_damaged(tmp_path: Path) -> None:
    make(tmp_path / "out")
    (tmp_path / "out/data/a.txt").write_text("jello")
    with pytest.raises(UserError, match=r"a.txt' is damaged: its content changed; .* --overwrite"):
        make(tmp_path / "out")
    make(tmp_path / "out", overwrite=True)
    record = (tmp_path / "out/stage.json").read_text()
    (tmp_path / "out/stage.json").write_text(record.replace('"files": 1', '"files": 2'))
    with pytest.raises(UserError, match=r"stage.json' is damaged \(its content changed\)"):
        make(tmp_path / "out")
    with pytest.raises(UserError, match=r"nothing tells what else .* holds; remove the folder"):
        make(tmp_path / "out", overwrite=True)


def test_an_unfinished_folder_that_is_damaged(tmp_path: Path) -> None:
    folder = unfinished(tmp_path / "out")
    folder.mkdir()
    for name in ("stage.json", "stage.log", "first"):
        (folder / name).write_text("{")
    with pytest.raises(UserError, match=r"its stage.json is damaged .* --overwrite"):
        make(tmp_path / "out")
    make(tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out/first").exists()


def test_two_runs_at_once_into_one_folder(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.path[:0] = sys.argv[2:]\nfrom test_stage import *\n"
        "with Stage('toy', Arguments(output=sys.argv[1]), {}) as stage:\n"
        "    print('in', flush=True)\n    sys.stdin.read()"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", code, str(tmp_path / "out"), str(here), str(here.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "in\n"
        with pytest.raises(UserError, match="another run is writing"):
            make(tmp_path / "out")
        other.communicate("")
    with Stage("toy", Arguments(output=str(tmp_path / "out")), {}) as stage:
        assert not stage.finished


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_text("hell"), "expected 5 bytes, found 4"),
        (lambda path: path.write_text("jello"), "its content changed"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, damage: object, message: str) -> None:
    make(tmp_path / "out")
    record = read_stage(tmp_path / "out")
    verify_files(tmp_path / "out", record)
    damage(tmp_path / "out/data/a.txt")  # type: ignore[operator]
    with pytest.raises(UserError, match=rf"a.txt' .*{message}|a.txt'.*{message}"):
        verify_files(tmp_path / "out", record)


def test_another_stage_and_a_damaged_record_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with pytest.raises(UserError, match=r"expected a folder made by `ctxsim chunk`, but .* was made by `ctxsim toy`"):
        read_stage(tmp_path / "out", "chunk")
    record = json.loads((tmp_path / "out/stage.json").read_text())
    unsealed = {key: value for key, value in record.items() if key != "xxh3_128"}
    for damaged in ("{", "[]", *(json.dumps(unsealed | {key: 5}) for key in ("files", "arguments", "counts"))):
        (tmp_path / "out/stage.json").write_text(damaged)
        with pytest.raises(UserError, match="is damaged"):
            read_stage(tmp_path / "out")
    with pytest.raises(UserError, match="does not exist"):
        read_stage(tmp_path / "nowhere")
