"""What is sent to the Hub: listed files, real ones inside the folder; and what errors show."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest

from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.hub.cards import as_plain_text
from ctxsim_hf.hub.hub_errors import hub_errors
from ctxsim_hf.hub.publication import Publication
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file

LISTED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "history.json")


def stage_folder(folder: Path, **extra: Any) -> Path:
    folder.mkdir(parents=True)
    for name in LISTED:
        (folder / name).write_text(name)
    (folder / "README.md").write_text("---\nlicense: other\n---\n")
    files = {name: describe_file(folder / name) for name in LISTED} | extra
    (folder / "stage.json").write_text(
        json.dumps({"command": "train surrogate", "arguments": {}, "versions": {}, "files": files, "inputs": {}})
    )
    return folder


def test_only_listed_files(tmp_path: Path) -> None:
    folder = stage_folder(tmp_path / "a")
    expected = {
        "README.md",
        "config.json",
        "model.safetensors",
        "stage.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    for name in ("backup.safetensors", "my_secrets.py", "notes.json"):
        (folder / name).write_text("mine")
    assert set(Publication.open(folder).files("a/b")) == expected
    (folder / "thresholds.json").write_text("my secrets")
    with pytest.raises(UserError, match=r"thresholds\.json' is damaged"):
        Publication.open(folder).files("a/b")
    Thresholds.from_scores(np.arange(9.0), np.arange(9.0)).save(folder)
    assert set(Publication.open(folder).files("a/b")) == expected | {"thresholds.json"}


@pytest.mark.parametrize("name", ["model.safetensors", "thresholds.json", "README.md"])
def test_links_are_refused(tmp_path: Path, name: str) -> None:
    folder = stage_folder(tmp_path / "a")
    (tmp_path / "private").write_text(name)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "private")
    with pytest.raises(UserError, match=f"{name}' is a link; only real files inside the folder are published"):
        Publication.open(folder).files("a/b")


@pytest.mark.parametrize("name", ["../private.txt", "/etc/hostname"])
def test_a_stage_that_names_what_lies_outside_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "private.txt").write_text("mine")
    folder = stage_folder(tmp_path / "a", **{name: describe_file(tmp_path / "private.txt")})
    with pytest.raises(UserError, match="lies outside the folder; only real files"):
        Publication.open(folder).files("a/b")


def test_datasets_and_metrics_send_what_they_are_made_of(tmp_path: Path) -> None:
    dataset, metric = tmp_path / "pairs", tmp_path / "origin"
    (dataset / "data").mkdir(parents=True)
    (dataset / "README.md").write_text("---\ntags: [ctxsim]\nconfigs: [{config_name: default}]\n---\n")
    for name in ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "private.parquet"):
        (dataset / "data" / name).write_text("")
    assert Publication.open(dataset).files("a/pairs") == [
        "README.md",
        *(f"data/train-0000{number}-of-00002.parquet" for number in (0, 1)),
    ]
    (dataset / "data/train-00000-of-00002.parquet").unlink()
    with pytest.raises(UserError, match=r"train-00000-of-00002\.parquet' is missing"):
        Publication.open(dataset).files("a/pairs")
    metric.mkdir()
    (metric / "README.md").write_text("---\ntags: [metric]\nsdk: gradio\n---\n")
    for name in ("origin.py", "app.py", "my_secrets.py"):
        (metric / name).write_text("")
    assert Publication.open(metric).files("a/origin") == ["README.md", "app.py", "origin.py"]


def test_a_server_that_answers_with_nothing_is_told_in_a_line() -> None:
    for error in (KeyError("name"), TypeError("'NoneType' object"), AttributeError("x")):
        message = r"the server did not answer as a Hub would .*; check HF_ENDPOINT"
        with pytest.raises(UserError, match=message), hub_errors("a/b"):
            raise error


def test_no_error_shows_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret")
    assert str(UserError("the server said: no such token hf_secret")) == "the server said: no such token ***"


def test_names_are_no_markup() -> None:
    names = {"corpus": [{"name": "<script>alert(1)</script>\n# Heading [x](y) `z` |"}]}
    assert as_plain_text(names) == {
        "corpus": [{"name": "&#60;script&#62;alert(1)&#60;/script&#62; # Heading &#91;x&#93;(y) &#96;z&#96; &#124;"}]
    }
    assert as_plain_text({"my_corpus-1.txt": [1, 2.5, None, "a & b"]}) == {"my_corpus-1.txt": [1, 2.5, None, "a & b"]}
