"""A loopback Hub, the folders that go there, and processes that know nothing but its address."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from hub_processes import environment, run_commands
from loopback_hub import WRITER, LoopbackHub
from small_harvest import harvest_words
from tiny_language_model import save_tiny_llama
from tiny_surrogate import save_tiny

from ctxsim_hf.cli import main
from ctxsim_hf.encoder.modeling_cross_surrogate import CrossSurrogateModel
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.files import digest_file, seal, write_json
from ctxsim_hf.runtime.record import describe_stage
from ctxsim_hf.runtime.stage import Stage

ROOT = Path(__file__).parents[2]
ESTIMATE = {"value": 0.7312, "low": 0.70, "high": 0.76}
NO_ESTIMATE = {"value": None, "low": None, "high": None, "undefined": "all scores are equal"}
RESULTS = [
    {"system": "theirs", "task": "stsb", "split": "test", "pairs": 1379, "spearman": ESTIMATE | {"value": 0.99}},
    {"system": "ours", "task": "stsb", "split": "test", "pairs": 1379, "spearman": ESTIMATE, "pearson": NO_ESTIMATE},
    {"system": "ours", "task": "sts12", "split": "test", "pairs": 3, "spearman": NO_ESTIMATE},
    {"system": "ours", "task": "adjacent", "split": "held_out", "pairs": 50, "accuracy": ESTIMATE},
]


@pytest.fixture(scope="package")
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        yield hub
    assert hub.unknown == []


@pytest.fixture
def publish(hub: LoopbackHub, tmp_path: Path) -> Callable[..., list[tuple[int, str, str]]]:
    """Run commands, each with a token, one after another in a fresh process: exit code, output and error of each."""

    def run(*commands: tuple[str, Sequence[object]], endpoint: str | None = None) -> list[tuple[int, str, str]]:
        env = environment(endpoint or hub.endpoint, tmp_path / "home")
        return run_commands([(token, ["publish", *words]) for token, words in commands], env, tmp_path)

    return run


@pytest.fixture(scope="package")
def folders(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every public name is one: ctxsim/..., each with its card."""
    home = tmp_path_factory.mktemp("folders")
    ctxsim = home / "ctxsim"
    pairs = home / "pairs"
    assert main(harvest_words(planted, pairs, "--mode", "group", "--pairs", 1000, "--near", 20, "--document", 8)) == 0
    script = [sys.executable, ROOT / "dataset_scripts/build_harvested_pairs.py", "--harvest", pairs]
    subprocess.run([*script, "--output", ctxsim / "harvested-pairs"], check=True)
    shutil.copytree(ROOT / "metrics/origin", ctxsim / "origin", ignore=shutil.ignore_patterns("__pycache__"))
    for source, name in (
        ("origin", "origin-light"),
        ("discriminator", "discriminator-light"),
        ("generator", "generator-light"),
        ("seq2seq", "generator-small"),
    ):
        shutil.copytree(planted / source, ctxsim / name)
    language_model = save_tiny_llama(home / "language-model", initializer_range=0.02)
    words = ["--init", language_model, "--chunks", planted / "chunks", "--max-steps", 2, "--eval-contexts", 20]
    words += ["--output", ctxsim / "context-model-tiny"]
    assert main(["train", "context-model", *map(str, words)]) == 0
    words = ["--kind", "static", "--pairs", pairs, "--tokenizer", planted / "tokenizer", "--hidden-size", 16]
    words += ["--max-steps", 2, "--keep", "last", "--output", ctxsim / "surrogate-static"]
    assert main(["train", "surrogate", *map(str, words)]) == 0
    make_surrogate(ctxsim / "surrogate-large", pairs)
    make_surrogate(ctxsim / "cross-surrogate", pairs, CrossSurrogateModel)
    stages = {"theirs": [None], "ours": [digest_file(ctxsim / "surrogate-large/stage.json")]}
    write_json(ctxsim / "surrogate-large/results.json", seal({"results": RESULTS, "stages": stages}))
    Thresholds.from_scores(np.arange(3.0), np.arange(4.0)).save(ctxsim / "surrogate-large")
    for folder in ctxsim.iterdir():
        if (folder / "stage.json").exists():
            assert main(["card", str(folder)]) == 0
    return home


def make_surrogate(folder: Path, pairs: Path, kind: Any = SurrogateModel, factor: float = 1.0) -> None:
    """As `ctxsim train surrogate` leaves it, with random weights times a factor."""

    @dataclass(kw_only=True)
    class Arguments(StageArguments):
        objective: str = "cross" if kind is CrossSurrogateModel else "pairs"
        max_steps: int = 7

    inputs = {"data": describe_stage(pairs, "harvest")}
    with Stage("train surrogate", Arguments(output=str(folder)), inputs) as stage:
        model = kind.from_pretrained(save_tiny(stage.folder, kind))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(factor)
        model.save_pretrained(stage.folder)
        stage.finish({"steps": 7, "train_loss": 0.125})


@pytest.fixture(scope="package")
def earlier(folders: Path, planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `folders`, an earlier state of four of them: each can be told from today's by what it gives."""
    home = tmp_path_factory.mktemp("earlier")
    ctxsim = home / "ctxsim"
    make_surrogate(ctxsim / "surrogate-large", folders / "pairs", factor=2)
    shutil.copytree(planted / "origin-seq2seq", ctxsim / "origin-light")
    for name in ("surrogate-large", "origin-light"):
        assert main(["card", str(ctxsim / name)]) == 0
    for name in ("harvested-pairs", "origin"):
        shutil.copytree(folders / "ctxsim" / name, ctxsim / name)
    for path in ctxsim.glob("harvested-pairs/data/*.parquet"):
        table = pq.read_table(path)
        place = table.column_names.index("score")
        pq.write_table(table.set_column(place, "score", pc.negate(table["score"])), path)
    script = ctxsim / "origin/origin.py"
    script.write_text(script.read_text().replace("system.signature", '"earlier"'))
    return home


@dataclass(frozen=True)
class Published:
    hub: LoopbackHub
    earlier: dict[str, str]  # name -> the revision that `earlier` went to


@pytest.fixture(scope="package")
def published(hub: LoopbackHub, earlier: Path, folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Everything on the Hub, by the command, from one process; what `earlier` has, in two commits."""
    tmp = tmp_path_factory.mktemp("publish")
    sources = [folder for home in (earlier, folders) for folder in sorted((home / "ctxsim").iterdir())]
    commands = [["publish", folder, "--repo-id", f"ctxsim/{folder.name}", "--overwrite"] for folder in sources]
    said = run_commands([(WRITER, words) for words in commands], environment(hub.endpoint, tmp / "home"), tmp)
    assert [code for code, _, _ in said] == [0] * len(commands), said
    revisions = {folder: out.split()[-1] for folder, (_, out, _) in zip(sources, said, strict=True)}
    return Published(hub, {f"ctxsim/{folder.name}": revisions[folder] for folder in (earlier / "ctxsim").iterdir()})
