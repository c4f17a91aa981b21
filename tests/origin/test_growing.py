"""An origin that documents are added to and deleted from answers as one built at once of what is left."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_harvest import contents
from tiny_language_model import save_tiny_llama

import ctxsim_hf
from ctxsim_hf import OriginSimilarity
from ctxsim_hf.harvest.drawing import Drawing, Mix
from ctxsim_hf.origin import growing
from ctxsim_hf.runtime.blocks import Blocks
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]
KINDS = ("light", "cloze")
BACKGROUND = 40  # few, so that thresholds take no time
SETTINGS: dict[str, Any] = {"num_contexts": 10, "background_size": BACKGROUND}
DELETED = ["a/3", "a/4", "a/60", "b/120", "c/139"]


def command(*words: object) -> None:
    from ctxsim_hf.cli import main

    assert main([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def texts(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of documents, `less/` without those that tests delete, and a language model."""
    folder = tmp_path_factory.mktemp("growing")
    lines = (planted / "texts.jsonl").read_text("utf-8").splitlines()[:147]
    (folder / "less").mkdir()
    for name, part in (("a", lines[:115]), ("b", lines[115:137]), ("c", lines[137:144]), ("d", lines[144:])):
        left = [line for line in part if f"{name}/{json.loads(line)['id']}" not in DELETED]
        (folder / f"{name}.jsonl").write_text("\n".join(part) + "\n", "utf-8")
        (folder / f"less/{name}.jsonl").write_text("\n".join(left) + "\n", "utf-8")
    save_tiny_llama(folder / "llama")
    return folder


def build(planted: Path, texts: Path, kind: str, corpus: Sequence[Path], output: Path) -> Path:
    """Make an origin of a corpus."""
    command("chunk", "--corpus", *corpus, "--output", f"{output}-chunks")
    light = ("--discriminator", planted / "discriminator", "--generator", planted / "generator")
    models = light if kind == "light" else ("--context-model", texts / "llama")
    command("index", "--chunks", f"{output}-chunks", *models, "--background", BACKGROUND, "--output", output)
    return output


@pytest.fixture(scope="module")
def first(planted: Path, texts: Path) -> dict[str, Path]:
    """Origins of the first file, to be copied."""
    return {kind: build(planted, texts, kind, [texts / "a.jsonl"], texts / f"first-{kind}") for kind in KINDS}


@pytest.fixture(scope="module")
def grown(first: dict[str, Path], texts: Path) -> dict[str, Path]:
    """Origins to which two files were added, by documents and by chunks."""
    command("chunk", "--corpus", texts / "c.jsonl", "--output", texts / "chunks-c")
    found = {}
    for kind, origin in first.items():
        found[kind] = Path(shutil.copytree(origin, texts / f"grown-{kind}"))
        command("index", "--add", "--origin", found[kind], "--corpus", texts / "b.jsonl")
        command("index", "--add", "--origin", found[kind], "--chunks", texts / "chunks-c")
    return found


def test_added_by_datatrove_it_is_the_same_bytes(first: dict[str, Path], texts: Path, tmp_path: Path) -> None:
    executors = pytest.importorskip("datatrove.executor", reason="needs the extra cluster")
    from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

    here, there = (Path(shutil.copytree(first["light"], tmp_path / name)) for name in ("here", "there"))
    asked = []

    def tasks(work: Blocks, names: Sequence[str]) -> None:
        asked.append(type(work).__name__)
        DatatroveExecutor(executors.LocalPipelineExecutor, tasks=2)(work, names)

    counts = ctxsim_hf.grow_index(here, corpus=texts / "b.jsonl")
    assert ctxsim_hf.grow_index(there, corpus=texts / "b.jsonl", executor=tasks) == counts and counts["segments"] == 2
    assert contents(here) == contents(there)
    assert {"ChunkBlocks", "ContextArrays"} <= set(asked), "tokens are in the cache"


def open_origin(folder: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(folder, **SETTINGS)


def sentences(texts: Path) -> list[str]:
    documents = [json.loads(line)["text"] for name in "abc" for line in (texts / f"{name}.jsonl").open()]
    return [document.split("\n\n")[1] for document in documents[::17]]


def assert_equal(one: OriginSimilarity, other: OriginSimilarity, texts: Path) -> None:
    some = sentences(texts)
    assert one.version.background == other.version.background and len(one.version.background) == BACKGROUND
    np.testing.assert_allclose(
        one.similarity(some[:-1], some[1:]), other.similarity(some[:-1], some[1:]), atol=1e-6, rtol=0
    )
    found = [
        [(chunks.tolist(), scores.tolist()) for chunks, scores in o.index.tfidf.search(some, 20)] for o in (one, other)
    ]
    assert found[0] == found[1], "to the bit"
    for name in ("tokens", "sentence_starts", "chunk_starts", "document_starts"):
        arrays = (np.asarray(getattr(origin.index.chunks, name)) for origin in (one, other))
        np.testing.assert_array_equal(*arrays)
    numbers = np.arange(len(one.index.chunks))[::7]
    assert one.index.texts(numbers) == other.index.texts(numbers)
    assert [chunk.doc_id for chunk, _ in one.index.chunk_of(numbers)] == [
        chunk.doc_id for chunk, _ in other.index.chunk_of(numbers)
    ]
    mix = Mix(near=3, farthest=5, document=2, unrelated=2, random_share=0.5)
    drawn = [[g.sentences.tolist() for g in Drawing(o.index, mix, (3, 40), 0).groups("train")] for o in (one, other)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("kind", KINDS)
def test_adding_equals_building(planted: Path, texts: Path, grown: dict[str, Path], kind: str) -> None:
    corpus = [texts / f"{name}.jsonl" for name in "abc"]
    whole = open_origin(build(planted, texts, kind, corpus, texts / f"whole-{kind}"))
    origin = open_origin(grown[kind])
    assert_equal(origin, whole, texts)
    assert len(origin.version.segments) == 3 and origin.signature != whole.signature
    assert f"version:{origin.version.name[:8]}" in origin.signature


@pytest.mark.parametrize("kind", KINDS)
def test_deleting_equals_building_without(
    planted: Path, texts: Path, grown: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    """A reader that opened a version keeps it, even when its files are gone."""
    corpus = [texts / f"less/{name}.jsonl" for name in "abc"]
    less = open_origin(build(planted, texts, kind, corpus, tmp_path / "less"))
    folder = Path(shutil.copytree(grown[kind], tmp_path / "origin"))
    before, some = open_origin(folder), sentences(texts)
    expected = open_origin(grown[kind]).similarity(some[:2], some[2:4])
    counts = ctxsim_hf.grow_index(folder, delete=DELETED)
    assert counts["chunks"] == less.index.chunks.num_chunks < before.index.chunks.num_chunks
    after = open_origin(folder)
    assert_equal(after, less, texts)
    assert ctxsim_hf.grow_index(folder, compact=True) == counts | {"segments": 1}
    compacted = open_origin(folder)
    assert_equal(compacted, less, texts)
    assert len(list((folder / "segments").iterdir())) == len(list((folder / "versions").iterdir())) == 1
    assert len({origin.signature for origin in (before, after, compacted)}) == 3
    np.testing.assert_array_equal(before.similarity(some[:2], some[2:4]), expected)
    assert_equal(after, less, texts)


def test_a_deleted_document_may_come_back(texts: Path, grown: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(grown["cloze"], tmp_path / "origin"))
    before = open_origin(folder)
    ids = [f"c/{number}" for number in range(137, 144)]
    ctxsim_hf.grow_index(folder, delete=ids)
    assert open_origin(folder).index.chunks.num_chunks < before.index.chunks.num_chunks
    ctxsim_hf.grow_index(folder, chunks=texts / "chunks-c")
    assert_equal(open_origin(folder), before, texts)


def test_small_segments_are_merged(planted: Path, texts: Path, grown: dict[str, Path], tmp_path: Path) -> None:
    """Deleted documents stay deleted, and a reader of the version before keeps it."""
    folder = Path(shutil.copytree(grown["light"], tmp_path / "origin"))
    ctxsim_hf.grow_index(folder, delete=DELETED)
    before, some = open_origin(folder), sentences(texts)
    expected = before.similarity(some[:2], some[2:4])
    assert ctxsim_hf.grow_index(folder, corpus=texts / "d.jsonl")["segments"] == 2
    corpus = [*(texts / f"less/{name}.jsonl" for name in "abc"), texts / "d.jsonl"]
    assert_equal(open_origin(folder), open_origin(build(planted, texts, "light", corpus, tmp_path / "whole")), texts)
    np.testing.assert_array_equal(before.similarity(some[:2], some[2:4]), expected)


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [([9], 1), ([9, 3, 1], 1), ([4, 2, 1], 3), ([100, 4, 2], 2), ([100, 1], 1), ([1, 100], 2)],
)
def test_which_segments_are_merged(sizes: list[int], merged: int) -> None:
    assert growing.count_to_merge(sizes) == merged


def test_many_threads_get_what_one_gets(
    texts: Path, grown: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every signal, with segments, a cache and no room for what is remembered, from the first call on."""
    monkeypatch.setattr("ctxsim_hf.origin.contexts_signal.REMEMBERED_CONTEXTS", 1)
    monkeypatch.setattr("ctxsim_hf.origin.cloze_signal.MAX_REMEMBERED", 1)
    signals = {"contexts": 1.0, "cloze": 1.0, "words": 0.5}
    settings = SETTINGS | {"signals": signals, "num_contexts": 4}
    one = OriginSimilarity.from_pretrained(grown["cloze"], **settings)
    many = OriginSimilarity.from_pretrained(grown["cloze"], cache_folder=tmp_path / "cache", **settings)
    some = sentences(texts)[:6]
    group = np.array([(first, second) for first in range(6) for second in range(first)])

    def ask(number: int) -> tuple[list[float], list[float], float]:
        first, second = [some[number % 6]], [some[number // 6]]
        labels, _ = many.label(some, group, "pair")
        return many.similarity(first, second).tolist(), labels.tolist(), many.explain(*first, *second).similarity

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(24)))
    labels, _ = one.label(some, group, "pair")
    for number, (similarity, labelled, explained) in enumerate(found):
        expected = one.similarity([some[number % 6]], [some[number // 6]])
        np.testing.assert_allclose([similarity[0], explained], [expected[0]] * 2, atol=1e-5)
        np.testing.assert_allclose(labelled, labels, atol=1e-5)


@pytest.mark.parametrize("moment", ["move_folder", "replace_record"])
def test_an_interrupted_add(
    ctxsim: Run, texts: Path, first: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The old version answers, and the same command leaves the bytes of an undisturbed run."""
    shutil.copytree(first["cloze"], tmp_path / "origin")
    some = sentences(texts)[:4]
    expected = open_origin(tmp_path / "origin").similarity(some[:2], some[2:])
    words = ("index", "--add", "--corpus", texts / "b.jsonl", "--origin")
    whole = Path(shutil.copytree(first["cloze"], tmp_path / "whole"))
    assert ctxsim(*words, whole)[0] == 0

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(growing, moment, interrupt)
        assert ctxsim(*words, tmp_path / "origin")[0] == 130
    np.testing.assert_array_equal(open_origin(tmp_path / "origin").similarity(some[:2], some[2:]), expected)
    assert ctxsim(*words, tmp_path / "origin")[0] == 0
    assert (tmp_path / "origin/stage.json").read_bytes() == (whole / "stage.json").read_bytes()
    assert not (tmp_path / "origin.ctxsim-partial").exists()
    assert ctxsim(*words, tmp_path / "origin")[0] == 0
    assert (tmp_path / "origin/stage.json").read_bytes() == (whole / "stage.json").read_bytes(), "not added again"


@pytest.mark.slow
def test_ten_kills_while_a_segment_is_added(texts: Path, grown: dict[str, Path], tmp_path: Path) -> None:
    """Killed by the system at random moments of the work, merging too; each time the old version answers."""
    for name in ("whole", "origin"):
        shutil.copytree(grown["light"], tmp_path / name)
    some = sentences(texts)[:4]
    expected = open_origin(tmp_path / "origin").similarity(some[:2], some[2:])
    start = [sys.executable, "-c", "from ctxsim_hf.cli import main; raise SystemExit(main())"]
    words = ["index", "--add", "--corpus", str(texts / "d.jsonl"), "--origin"]
    began = time.monotonic()
    subprocess.run([*start, *words, str(tmp_path / "whole")], check=True, capture_output=True)
    seconds, chooser, kills = time.monotonic() - began, random.Random(0), 0
    record = (tmp_path / "origin/stage.json").read_bytes()
    while kills < 10:
        child = subprocess.Popen([*start, *words, str(tmp_path / "origin")], stderr=subprocess.DEVNULL)
        time.sleep(chooser.uniform(0.3, 0.95) * seconds)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        kills += 1
        if (tmp_path / "origin/stage.json").read_bytes() != record:  # it was finished before the kill
            shutil.rmtree(tmp_path / "origin")
            shutil.copytree(grown["light"], tmp_path / "origin")
        np.testing.assert_array_equal(open_origin(tmp_path / "origin").similarity(some[:2], some[2:]), expected)
    subprocess.run([*start, *words, str(tmp_path / "origin")], check=True, capture_output=True)
    assert (tmp_path / "origin/stage.json").read_bytes() == (tmp_path / "whole/stage.json").read_bytes()


def test_what_cannot_be_done_is_refused(ctxsim: Run, texts: Path, grown: dict[str, Path], tmp_path: Path) -> None:
    origin = grown["light"]
    before = (origin / "stage.json").read_bytes()
    cases = [
        (
            ("--add", "--corpus", texts / "a.jsonl", texts / "b.jsonl"),
            "documents are in .* already, such as 'a/0'; delete them first",
        ),
        (("--add",), "expected one of --corpus and --chunks with --add"),
        ((), "expected one of --add, --delete and --compact with --origin"),
        (("--compact", "--delete", "a/1"), "expected one of --add, --delete and --compact with --origin"),
        (("--delete", "nonsense"), "no document has the id 'nonsense' .*; an id looks like 'a/"),
        (("--compact", "--ngrams", "bigrams"), "--ngrams cannot be changed in an index"),
        (("--compact", "--chunks", "x"), "--corpus and --chunks are what --add adds"),
        (("--add", "--chunks", tmp_path), "has no stage.json"),
    ]
    for words, message in cases:
        code, _, err = ctxsim("index", "--origin", origin, *words)
        assert code == 2 and err.count("\n") == 1, err
        with pytest.raises(UserError, match=message):
            raise UserError(err)
    code, _, err = ctxsim("index", "--add", "--corpus", texts / "a.jsonl")
    assert code == 2 and "name it with --origin" in err
    code, _, err = ctxsim("index", "--compact", "--origin", tmp_path / "nowhere")
    assert code == 2 and "does not exist" in err and not list(tmp_path.iterdir())
    ids = [
        f"{name}/{number}"
        for name, numbers in (("a", range(115)), ("b", range(115, 137)), ("c", range(137, 144)))
        for number in numbers
    ]
    with pytest.raises(UserError, match="these are all documents"):
        ctxsim_hf.grow_index(origin, delete=ids)
    assert (origin / "stage.json").read_bytes() == before
