"""Fine-tuning on people's labels: datasets of the public ones' names and columns, made up here."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from topic_pairs import sentences_by_topic

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.surrogate.public_data import folds_of

Run = Callable[..., tuple[int, str, str]]


def write(folder: Path, **splits: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def data_root(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All four datasets: sentences of one topic are alike, entail each other, are of one section."""
    root, chooser = tmp_path_factory.mktemp("public"), random.Random(0)
    topics = sentences_by_topic(corpus)

    def pair(alike: bool) -> tuple[str, str]:
        one, other = chooser.sample(topics, 2)
        return chooser.choice(one), chooser.choice(one if alike else other)

    def scored(number: int) -> list[dict[str, Any]]:
        pairs = [(pair(i % 2 == 0), i) for i in range(number)]
        return [{"sentence1": a, "sentence2": b, "score": 4.5 - 4 * (i % 2), "topic": "x"} for (a, b), i in pairs]

    def triplets(number: int) -> list[dict[str, Any]]:
        pairs = [(pair(True), pair(False)) for _ in range(number)]
        return [{"anchor": a, "positive": p, "negative": n} for (a, p), (_, n) in pairs]

    write(root / "mteb/stsbenchmark-sts", train=scored(400), validation=scored(100))
    write(root / "ucsc/argument-facet-similarity", test=scored(300))
    write(root / "sentence-transformers/all-nli/triplet", train=triplets(300), dev=triplets(100))
    write(root / "sentence-transformers/wikipedia-sections/triplet", train=triplets(300), validation=triplets(100))
    for name, splits in (
        ("all-nli", ("train", "dev")),
        ("wikipedia-sections", ("train", "validation")),
    ):
        lines = [f"  - split: {split}\n    path: triplet/{split}.jsonl\n" for split in splits]
        card = f"---\nconfigs:\n- config_name: triplet\n  data_files:\n{''.join(lines)}---\n"
        (root / "sentence-transformers" / name / "README.md").write_text(card)
    return root


def fine_tune(ctxsim: Run, corpus: Path, data_root: Path, output: Path, *flags: object) -> dict[str, float]:
    fixed = ("--preset", "tiny", "--tokenizer", corpus / "tokenizer", "--data-root", data_root, "--output", output)
    steps = ("--max-steps", 40, "--tokens-per-batch", 1500, "--schedule", "constant", "--learning-rate", 2e-3)
    code, _, err = ctxsim("train", "surrogate", *fixed, *steps, *flags)
    assert code == 0, err
    found: dict[str, float] = json.loads((output / "metrics.json").read_text())
    return found


def test_sts(ctxsim: Run, corpus: Path, data_root: Path, tmp_path: Path) -> None:
    found = fine_tune(ctxsim, corpus, data_root, tmp_path / "out", "--objective", "sts")
    assert found["pearson"] > 0.6
    assert found["l2_of_the_mean"] == pytest.approx(0.4**2), "scores of 0.5 and 4.5 are cosines of 0.1 and 0.9"


@pytest.mark.parametrize("objective", ["nli", "triplet"])
def test_nli_and_triplet(ctxsim: Run, corpus: Path, data_root: Path, tmp_path: Path, objective: str) -> None:
    found = fine_tune(ctxsim, corpus, data_root, tmp_path / "out", "--objective", objective)
    assert found["accuracy"] > 0.75  # half is chance; a sixth of the triplets' negatives are about the topic too
    SurrogateModel.from_pretrained(tmp_path / "out")


def test_afs_is_the_mean_of_its_folds(ctxsim: Run, corpus: Path, data_root: Path, tmp_path: Path) -> None:
    flags = ("--objective", "afs", "--folds", 2, "--max-steps", 6)
    found = fine_tune(ctxsim, corpus, data_root, tmp_path / "all", *flags)
    folds = [fine_tune(ctxsim, corpus, data_root, tmp_path / f"fold{k}", *flags, "--fold", k) for k in range(2)]
    for name in ("pearson", "spearman", "l2"):
        assert found[name] == pytest.approx(np.mean([fold[name] for fold in folds]), rel=1e-6)
    assert found["spearman_deviation"] == pytest.approx(np.std([fold["spearman"] for fold in folds], ddof=1))
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["metrics.json", "stage.json", "stage.log"]


@pytest.mark.slow
def test_afs_on_two_processes(corpus: Path, data_root: Path, tmp_path: Path) -> None:
    """Every fold is a training of its own, with the same processes."""
    fixed = ("--preset", "tiny", "--tokenizer", corpus / "tokenizer", "--data-root", data_root)
    steps = ("--max-steps", "4", "--tokens-per-batch", "500", "--output", tmp_path / "out")
    config = Path(__file__).parents[2] / "accelerate_configs/two_cpu_processes.yaml"
    launch = [Path(sys.executable).with_name("accelerate"), "launch", "--config_file", config]
    command = ["-m", "ctxsim_hf.train.surrogate", "--objective", "afs", "--folds", "2", *fixed, *steps]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    result = subprocess.run([*launch, *command], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "out/metrics.json").read_text())["folds"] == 2


def test_folds_do_not_leak() -> None:
    first = [f"s{i % 40}" for i in range(400)]
    second = [f"s{i // 10}" for i in range(400)]
    table = pa.table({"a": first + second, "b": second + first})  # each pair also the other way round
    folds = folds_of(table, ("a", "b"), 10)
    assert (folds[:400] == folds[400:]).all()
    assert np.bincount(folds).min() > 50 and len(np.bincount(folds)) == 10
    where: dict[frozenset[str], set[int]] = {}
    for a, b, fold in zip(table["a"].to_pylist(), table["b"].to_pylist(), folds.tolist(), strict=True):
        where.setdefault(frozenset((a, b)), set()).add(fold)
    assert all(len(found) == 1 for found in where.values())


def test_bad_input_is_one_line(ctxsim: Run, corpus: Path, data_root: Path, tmp_path: Path) -> None:
    def refusal(root: Path, *flags: object) -> str:
        common = ("--tokenizer", corpus / "tokenizer", "--data-root", root, "--output", tmp_path / "out")
        code, _, err = ctxsim("train", "surrogate", *common, *flags)
        assert code == 2 and err.count("\n") == 1
        return err

    assert "expected the dataset 'mteb/stsbenchmark-sts' in the folder" in refusal(tmp_path, "--objective", "sts")
    assert "--margin must be above 0 and below 2" in refusal(data_root, "--objective", "triplet", "--margin", 5)
    assert "--fold must be below --folds, got 10 and 10" in refusal(data_root, "--objective", "afs", "--fold", 10)
    row = {"sentence1": "a", "sentence2": "b", "score": 7}
    write(tmp_path / "high/mteb/stsbenchmark-sts", train=[row], validation=[row])
    assert "expected a score from 0 to 5" in refusal(tmp_path / "high", "--objective", "sts")
    write(tmp_path / "short/mteb/stsbenchmark-sts", train=[{"sentence1": "a"}], validation=[{"sentence1": "a"}])
    assert "expected a column 'sentence2'" in refusal(tmp_path / "short", "--objective", "sts")
