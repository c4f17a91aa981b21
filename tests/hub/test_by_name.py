"""The public names, loaded by the real libraries: from a Hub into an empty cache, offline from that cache, and from
folders. One process does all of it, first what needs no package of ours."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_processes import environment, run_python

LOAD_ALL = """
import json, sys
revision, origin_revision = json.loads(sys.argv[1])
from datasets import load_dataset
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

name, found = "ctxsim/surrogate-large", {}
texts = ["A cat sat there.", "There the cat sat."]
inputs = AutoTokenizer.from_pretrained(name)(texts, padding=True, return_tensors="pt")

def mean_state(model):
    mask = inputs["attention_mask"][:, :, None]
    return ((model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)).tolist()

model = AutoModel.from_pretrained(name)
found["class"], found["transformers"] = type(model).__name__, mean_state(model)
found["sentence_transformers"] = SentenceTransformer(name).encode(texts).tolist()
pairs = load_dataset("ctxsim/harvested-pairs")
found["rows"], found["pairs"] = pairs.num_rows, pairs["test"].to_list()
found["streamed"] = list(load_dataset("ctxsim/harvested-pairs", split="test", streaming=True))
if revision:
    found["pinned"] = mean_state(AutoModel.from_pretrained(name, revision=revision))
found["without us"] = "ctxsim_hf" not in sys.modules

import evaluate
pair = {"predictions": texts[:1], "references": texts[1:]}
metric = evaluate.load("ctxsim/origin")
found["scores"] = metric.compute(**pair, origin="ctxsim/origin-light")["scores"]
if origin_revision:
    found["pinned scores"] = metric.compute(**pair, revision=origin_revision)["scores"]

import ctxsim_hf
model = AutoModel.from_pretrained(name)
found["class with us"], found["with us"] = type(model).__name__, model(**inputs).sentence_embedding.tolist()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def from_folders(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folders named ctxsim/... in the working directory, with no network and an empty cache."""
    env = environment("http://127.0.0.1:9", tmp_path_factory.mktemp("home"), offline=True)
    return run_python(LOAD_ALL, env, folders, json.dumps([None, None]))


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["without us"]
    assert (found["class"], found["class with us"]) == ("RobertaModel", "SurrogateModel")
    for road in ("transformers", "sentence_transformers", "with us"):
        np.testing.assert_allclose(found[road], expected["transformers"], atol=1e-5)
    assert found["rows"] == {"train": 980, "validation": 10, "test": 10}
    assert found["pairs"] == found["streamed"] == expected["pairs"]
    assert list(found["pairs"][0]) == ["sentence1", "sentence2", "score"]
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-5)


def test_local_folders(from_folders: dict[str, Any]) -> None:
    check(from_folders, from_folders)


def test_the_hub_and_then_its_cache(published: Any, from_folders: dict[str, Any], tmp_path: Path) -> None:
    origin_revision = published.hub.repository("ctxsim/origin-light").main
    revisions = [published.first_revision, origin_revision]
    env = environment(published.hub.endpoint, tmp_path / "home")
    online = run_python(LOAD_ALL, env, tmp_path, json.dumps(revisions))
    env = environment("http://127.0.0.1:9", tmp_path / "home", offline=True)
    offline = run_python(LOAD_ALL, env, tmp_path, json.dumps(revisions))
    for found in (online, offline):
        check(found, from_folders)
        assert np.abs(np.subtract(found["pinned"], found["transformers"])).max() > 0.01
        assert found["pinned scores"] == found["scores"]
