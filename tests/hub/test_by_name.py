"""The public names, loaded by the real libraries: from a Hub into an empty cache, offline from that cache, and from
folders."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hub_processes import environment, run_commands, run_python
from loopback_hub import WRITER

from ctxsim_hf import SentenceEncoder

BEGIN = """
import json, sys
revisions = json.loads(sys.argv[1])  # of what should not be the latest
name, pairs, origin = "ctxsim/surrogate-large", "ctxsim/harvested-pairs", "ctxsim/origin-light"
texts = ["A cat sat there.", "There the cat sat."]
found = {}
"""
AUTO_MODEL = """
from transformers import AutoModel, AutoTokenizer
pinned = {"revision": revisions.get(name)}
model = AutoModel.from_pretrained(name, **pinned)
inputs = AutoTokenizer.from_pretrained(name, **pinned)(texts, padding=True, return_tensors="pt")
"""
# In this order one process can do all of it: first what needs no package of ours.
ROADS = {
    "AutoModel": AUTO_MODEL
    + """
states, mask = model(**inputs).last_hidden_state, inputs["attention_mask"][:, :, None]
found["AutoModel"] = [type(model).__name__, ((states * mask).sum(1) / mask.sum(1)).tolist()]
assert "ctxsim_hf" not in sys.modules
""",
    "SentenceTransformer": """
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(name, revision=revisions.get(name))
found["SentenceTransformer"] = model.encode(texts).tolist()
assert "ctxsim_hf" not in sys.modules
""",
    "load_dataset": """
from datasets import load_dataset
loaded = load_dataset(pairs, revision=revisions.get(pairs))
found["load_dataset"] = {split: rows.to_list() for split, rows in loaded.items()}
""",
    "streaming": """
from datasets import load_dataset
loaded = load_dataset(pairs, revision=revisions.get(pairs), streaming=True)
found["streaming"] = {split: list(rows) for split, rows in loaded.items()}
assert "ctxsim_hf" not in sys.modules
""",
    "evaluate.load": """
import evaluate
metric = evaluate.load("ctxsim/origin", revision=revisions.get("ctxsim/origin"))
pinned = {"revision": revisions[origin]} if origin in revisions else {}
found["evaluate.load"] = metric.compute(predictions=texts[:1], references=texts[1:], **pinned)
""",
    "AutoModel with ctxsim_hf": "import ctxsim_hf"
    + AUTO_MODEL
    + """
found["AutoModel with ctxsim_hf"] = [type(model).__name__, model(**inputs).sentence_embedding.tolist()]
""",
}


def load(roads: Sequence[str], env: Mapping[str, str], cwd: Path, revisions: Mapping[str, str] | None = None) -> Any:
    """What a fresh process finds, by road."""
    code = "\n".join([BEGIN, *(ROADS[road] for road in roads), "print(json.dumps(found))"])
    return run_python(code, env, cwd, json.dumps(revisions or {}))


def load_folders(home: Path, cache: Path) -> Any:
    """Folders named ctxsim/... in the working directory, with no network and an empty cache."""
    return load(list(ROADS), environment("http://127.0.0.1:9", cache, offline=True), home)


@pytest.fixture(scope="module")
def from_folders(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_folders(folders, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def from_earlier_folders(earlier: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_folders(earlier, tmp_path_factory.mktemp("home"))


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for road, value in found.items():
        assert flat(value) == pytest.approx(flat(expected[road]), abs=1e-5), road


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, inside in value.items() for leaf in (key, *flat(inside))]
    return [leaf for inside in value for leaf in flat(inside)] if isinstance(value, list) else [value]


def test_local_folders(from_folders: dict[str, Any]) -> None:
    (plain, vectors), (ours, same) = from_folders["AutoModel"], from_folders["AutoModel with ctxsim_hf"]
    assert (plain, ours) == ("RobertaModel", "SurrogateModel")
    for road in (same, from_folders["SentenceTransformer"]):
        assert flat(road) == pytest.approx(flat(vectors), abs=1e-5)
    pairs = from_folders["load_dataset"]
    assert pairs == from_folders["streaming"]
    assert {split: len(rows) for split, rows in pairs.items()} == {"train": 980, "validation": 10, "test": 10}
    assert list(pairs["test"][0]) == ["sentence1", "sentence2", "score"]
    assert sorted(from_folders["evaluate.load"]) == ["mean", "scores", "signature", "spread"]


def test_the_hub_and_then_its_cache(published: Any, from_folders: dict[str, Any], tmp_path: Path) -> None:
    """All roads in one process; each in its own is below."""
    found = load(list(ROADS), environment(published.hub.endpoint, tmp_path / "home"), tmp_path)
    assert list(found) == list(ROADS)
    check(found, from_folders)
    env = environment("http://127.0.0.1:9", tmp_path / "home", offline=True)
    check(load(list(ROADS), env, tmp_path), from_folders)


STATIC = """
import json, sys
name, texts = sys.argv[1], ["A cat sat there.", "There the cat sat."]
from sentence_transformers import SentenceTransformer
found = [SentenceTransformer(name).encode(texts).tolist()]
assert "ctxsim_hf" not in sys.modules
from ctxsim_hf import SentenceEncoder, SurrogateModel
found.append(SentenceEncoder.from_pretrained(name).encode(texts).tolist())
print(json.dumps([found, type(SurrogateModel.from_pretrained(name).encoder).__name__]))
"""


def test_a_static_surrogate(published: Any, folders: Path, tmp_path: Path) -> None:
    name = "ctxsim/surrogate-static"
    env = environment(published.hub.endpoint, tmp_path / "home")
    (theirs, ours), encoder = run_python(STATIC, env, tmp_path, name)
    assert encoder == "StaticEncoder" and theirs[0] != theirs[1]
    expected = SentenceEncoder.from_pretrained(folders / name).encode(["A cat sat there.", "There the cat sat."])
    for vectors in (theirs, ours):
        assert flat(vectors) == pytest.approx(flat(expected.tolist()), abs=1e-5)


@pytest.mark.slow
def test_commands_take_names(published: Any, tmp_path: Path) -> None:
    """And what `--save-thresholds` left came along."""
    commands = [("--surrogate", "ctxsim/surrogate-large"), ("--origin", "ctxsim/origin-light")]
    words = [(WRITER, ["similarity", *flags, "A cat sat there.", "There the cat sat."]) for flags in commands]
    (code, by_surrogate, _), (other, by_origin, _) = run_commands(
        words, environment(published.hub.endpoint, tmp_path / "home"), tmp_path
    )
    assert (code, other) == (0, 0) and "random pairs" in by_surrogate and "random pairs" not in by_origin


# Offline, datasets streams only what it has prepared before.
APART = [["AutoModel"], ["SentenceTransformer"], ["load_dataset", "streaming"], ["streaming"], ["evaluate.load"]]
APART = [*APART, ["AutoModel with ctxsim_hf"]]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["latest", "pinned"])
@pytest.mark.parametrize("roads", APART, ids=" and ".join)
def test_each_road_alone(
    roads: list[str],
    state: str,
    published: Any,
    from_folders: dict[str, Any],
    from_earlier_folders: dict[str, Any],
    tmp_path: Path,
) -> None:
    """In a fresh process with a cache of its own: offline, datasets and evaluate give what is newest in their cache,
    whichever revision is asked for."""
    revisions, expected = {}, from_folders
    if state == "pinned":
        revisions, expected = published.earlier, from_earlier_folders
        assert all(flat(expected[road]) != flat(from_folders[road]) for road in roads)
    env = environment(published.hub.endpoint, tmp_path / "home")
    check(load(roads, env, tmp_path, revisions), expected)
    if roads != ["streaming"]:
        env = environment("http://127.0.0.1:9", tmp_path / "home", offline=True)
        check(load(roads, env, tmp_path, revisions), expected)
