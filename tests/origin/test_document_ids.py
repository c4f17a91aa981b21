"""Deleting a document deletes its parts, and never another document whose id looks like that of a part."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from made_up import make_text
from tiny_language_model import save_tiny_llama

import ctxsim_hf
from ctxsim_hf import OriginSimilarity
from ctxsim_hf.origin.document_ids import DocumentIds
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An origin of text files and rows, some of them long, some with ids that end as those of parts do."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("ids")
    (folder / "files").mkdir()
    for number, (name, sentences) in enumerate({"LONG": 200, "LONG~1": 10, "SHORT": 10, "SHORT~2": 10}.items()):
        (folder / f"files/{name}.txt").write_text(make_text(sentences, seed=number))
    rows = {"long": 200, "short": 10, "short~1": 10, "short~2": 10, "other": 10}
    lines = [{"id": id, "text": make_text(number, seed=9 + place)} for place, (id, number) in enumerate(rows.items())]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words: list[object] = ["chunk", "--corpus", folder / "files", folder / "rows.jsonl", "--held-out", 0]
    words += ["--max-document-chars", 3000, "--output", folder / "chunks"]
    assert main([str(word) for word in words]) == 0
    models = ("--context-model", save_tiny_llama(folder / "llama"), "--background", 20)
    words = ["index", "--chunks", folder / "chunks", *models, "--output", folder / "origin"]
    assert main([str(word) for word in words]) == 0
    return folder


def deleted(built: Path, origin: Path, *ids: str) -> set[str]:
    """Delete documents and return the ids of all that are gone."""
    ctxsim_hf.grow_index(origin, delete=list(ids))
    chunks = ds.dataset(built / "chunks/data").to_table(columns=["doc_id"])["doc_id"]
    return set(chunks.to_pylist()) - set(DocumentIds(OriginSimilarity.from_pretrained(origin).version).among(chunks))


@pytest.fixture
def origin(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "origin", tmp_path / "origin"))


def test_a_text_file_goes_with_its_parts_and_no_other_file(built: Path, origin: Path) -> None:
    long = deleted(built, origin, "files/LONG")
    assert {"files/LONG", "files/LONG~2", "files/LONG~3"} <= long and "files/LONG~1" not in long
    assert deleted(built, origin, "files/SHORT") == long | {"files/SHORT"}


def test_a_row_that_may_be_a_part_must_be_named(built: Path, origin: Path) -> None:
    for id in ("rows/short", "rows/long"):
        with pytest.raises(UserError, match=f"'{id}~2' may be a part of a document to delete or a document of its o"):
            deleted(built, origin, id)
    assert deleted(built, origin, "rows/short", "rows/short~2") == {"rows/short", "rows/short~2"}
    assert deleted(built, origin, "rows/other") == {"rows/short", "rows/short~2", "rows/other"}
