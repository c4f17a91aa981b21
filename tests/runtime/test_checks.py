"""What is read is as it was written: digests are computed once, and again after any change."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsim_hf.runtime import checks
from ctxsim_hf.runtime.checks import check_files, refuse_loadable_files, verify_always
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file, parse_sealed, read_sealed, seal, write_json


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder/data").mkdir(parents=True)
    (tmp_path / "folder/data/a.txt").write_text("hello")
    monkeypatch.setattr(checks, "SETTLED", -1.0)  # so that a test need not wait
    monkeypatch.setattr(checks, "_passed", set())
    return tmp_path / "folder"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files whose digests are computed."""
    found: list[Path] = []
    digest_file = checks.digest_file
    monkeypatch.setattr(checks, "digest_file", lambda path: (found.append(path), digest_file(path))[1])
    yield found
    verify_always(False)


def test_a_digest_is_computed_once(folder: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"data/a.txt": describe_file(folder / "data/a.txt")}
    check_files(folder, files)
    check_files(folder, files)
    monkeypatch.setattr(checks, "_passed", set())  # as in another process
    check_files(folder, files)
    assert len(read) == 1
    verify_always()
    check_files(folder, files)
    assert len(read) == 2


def test_damage_that_restores_size_and_time_is_found(folder: Path) -> None:
    path = folder / "data/a.txt"
    files = {"data/a.txt": describe_file(path)}
    check_files(folder, files)
    before = path.stat()
    with path.open("r+") as file:  # the same inode
        file.write("jello")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UserError, match=r"a.txt' is damaged: its content changed; make the folder again"):
        check_files(folder, files)


def test_a_file_that_just_changed_is_not_trusted_yet(
    folder: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "SETTLED", 60.0)
    files = {"data/a.txt": describe_file(folder / "data/a.txt")}
    check_files(folder, files)
    check_files(folder, files)
    assert len(read) == 2


def test_what_nobody_reads_may_be_missing(folder: Path) -> None:
    files = {"data/a.txt": describe_file(folder / "data/a.txt")}
    check_files(folder, files | {"history.json": {"bytes": 1, "xxh3_128": ""}})
    with pytest.raises(UserError, match=r"b.txt' is missing"):
        check_files(folder, files | {"b.txt": {"bytes": 1, "xxh3_128": ""}})


@pytest.mark.parametrize("name", ["added_tokens.json", "data/model.safetensors", "code.py", "vocab.txt", "data/x.npy"])
def test_files_that_might_be_loaded_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    with pytest.raises(UserError, match=rf"{Path(name).name}' was not written by the command that made .*; move it"):
        refuse_loadable_files(folder, ["data/a.txt"])
    refuse_loadable_files(folder, ["data/a.txt", name])


def test_other_files_are_left_alone(folder: Path) -> None:
    for name in ("README.md", "results.json", "stage.json", "thresholds.json", "stage.log", ".DS_Store", "note.txt"):
        (folder / name).write_text("")
    refuse_loadable_files(folder, ["data/a.txt"])
    (folder / "more").symlink_to("/tmp")
    with pytest.raises(UserError, match="more' was not written by"):
        refuse_loadable_files(folder, ["data/a.txt"])


def test_a_sealed_record(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, seal({"number": 1, "pair": (1.5, None), "by_number": {2: "b", 10: "a"}}))
    assert read_sealed(path, "again")["number"] == 1 and "xxh3_128" not in read_sealed(path, "again")
    assert read_sealed(tmp_path / "none.json", "again") == {}
    unsealed = path.read_text().replace("xxh3_128", "other")
    assert parse_sealed(unsealed)["number"] == 1, "a record without a digest is taken as it is"
    for damaged in (path.read_text().replace("1.5", "1.6"), "[]", "{"):
        path.write_text(damaged)
        with pytest.raises(UserError, match=r"a.json' is damaged: .*; again"):
            read_sealed(path, "again")
