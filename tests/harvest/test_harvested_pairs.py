"""The builder and the data set made of it: by name, in a fresh process, streamed, and trained on."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard
from stage_records import rewrite_stage
from transformers import AutoTokenizer, RobertaConfig, RobertaModel
from unfinished import unfinished

from ctxsim_hf import HarvestedPairs
from ctxsim_hf.harvest import harvested_pairs
from ctxsim_hf.runtime.errors import UserError

SCRIPTS = Path(__file__).parents[2] / "dataset_scripts"
FULL = ["sentence1", "sentence2", "score", "spread", "drawn", "chunk_id1", "chunk_id2"]
SMALL = {"num_contexts": 10, "background_size": 40, "screen_chunks": 100}


def test_default_has_what_training_takes_and_full_has_all(group_harvest: Path, tmp_path: Path) -> None:
    builder = HarvestedPairs(harvest=group_harvest, cache_dir=tmp_path)
    builder.download_and_prepare(num_proc=2)
    dataset = builder.as_dataset()
    assert dataset.num_rows == {"train": 2940, "validation": 30, "test": 30}
    assert dataset["train"].column_names == FULL[:3]
    full = HarvestedPairs(harvest=group_harvest, config_name="full", cache_dir=tmp_path)
    full.download_and_prepare()
    files = sorted(group_harvest.glob("data/train-*.parquet"))
    assert full.as_dataset(split="train").to_list() == pq.read_table(files).to_pylist()
    assert full.info.version == "1.0.0"


def test_streaming_reads_the_files_as_they_are(group_harvest: Path, tmp_path: Path) -> None:
    stream = HarvestedPairs(harvest=group_harvest, cache_dir=tmp_path).as_streaming_dataset(split="train")
    files = sorted(group_harvest.glob("data/train-*.parquet"))
    assert stream.num_shards == len(files) > 2
    assert list(stream) == pq.read_table(files, columns=FULL[:3]).to_pylist()


def test_it_runs_the_harvest_and_goes_on_with_it(planted: Path, pair_harvest: Path, tmp_path: Path) -> None:
    """The stage keeps its own folder: files that are there are not made again."""
    partial = Path(shutil.copytree(pair_harvest, unfinished(tmp_path / "pairs")))
    (partial / "data/test-00000-of-00001.parquet").unlink()
    kept = partial / "data/train-00000-of-00002.parquet"
    written = kept.stat().st_mtime_ns
    builder = HarvestedPairs(
        harvest=tmp_path / "pairs",
        origin=planted / "origin",
        chunks=planted / "chunks",
        pairs=300,
        arguments=SMALL | {"near": 5, "document": 4, "unrelated": 1, "pairs_per_file": 150},
        cache_dir=tmp_path / "cache",
    )
    builder.download_and_prepare()
    assert builder.as_dataset().num_rows == {"train": 294, "validation": 3, "test": 3}
    assert (tmp_path / "pairs/data" / kept.name).stat().st_mtime_ns == written


def test_no_old_cache_is_served(group_harvest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for other pairs in the same folder, nor for other code."""
    folder = Path(shutil.copytree(group_harvest, tmp_path / "pairs"))

    def cache_dir() -> str:
        return str(HarvestedPairs(harvest=folder, cache_dir=tmp_path / "cache").cache_dir)

    before = cache_dir()
    assert cache_dir() == before
    with monkeypatch.context() as patch:
        real = harvested_pairs.digest_file
        patch.setattr(harvested_pairs, "digest_file", lambda p: "new" if p.name == "scoring.py" else real(p))
        assert cache_dir() != before
    rewrite_stage(folder, made="anew")
    assert cache_dir() != before


def test_bad_input(planted: Path, group_harvest: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere' does not exist"):
        HarvestedPairs(harvest="nowhere")
    making = {"harvest": tmp_path / "new", "origin": planted / "origin", "cache_dir": tmp_path / "cache"}
    with pytest.raises(UserError, match="--pairs must be at least 100, got 20"):
        HarvestedPairs(pairs=20, **making).download_and_prepare()
    with pytest.raises(UserError, match="expected a number of pairs to harvest"):
        HarvestedPairs(**making).download_and_prepare()
    broken = Path(shutil.copytree(group_harvest, tmp_path / "broken"))
    (broken / "data/test-00000-of-00001.parquet").write_bytes(b"nothing")
    with pytest.raises(
        UserError, match=r"test-00000-of-00001.parquet' is damaged \(1 of \d+ files are\); run the same"
    ):
        HarvestedPairs(harvest=broken, cache_dir=tmp_path / "cache").download_and_prepare()
    one_split = Path(shutil.copytree(group_harvest, tmp_path / "one-split"))
    record = json.loads((one_split / "stage.json").read_text())
    rewrite_stage(one_split, files={name: file for name, file in record["files"].items() if "train" in name})
    with pytest.raises(UserError, match="has no pairs for validation and test; three splits need 100 pairs or more"):
        HarvestedPairs(harvest=one_split, cache_dir=tmp_path / "cache").download_and_prepare()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        spec = importlib.util.spec_from_file_location("build", SCRIPTS / "build_harvested_pairs.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "build", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published(script: ModuleType, group_harvest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder above `ctxsim/harvested-pairs`."""
    folder = tmp_path_factory.mktemp("published")
    output = folder / "ctxsim/harvested-pairs"
    assert script.main(["--harvest", str(group_harvest), "--output", str(output), "--license", "cc0-1.0"]) is None
    return folder


def test_the_folder_holds_files_a_card_and_a_picture(published: Path, group_harvest: Path) -> None:
    folder = published / "ctxsim/harvested-pairs"
    assert [path.name for path in published.glob("ctxsim/*")] == ["harvested-pairs"]
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "README.md",
        *(f"data/{split}-00000-of-00001.parquet" for split in ("test", "train", "validation")),
        "scores.svg",
    ]
    card = DatasetCard.load(folder / "README.md")
    assert card.data.license == "cc0-1.0" and card.data.size_categories == ["1K<n<10K"]
    counts = json.loads((group_harvest / "stage.json").read_text())["counts"]
    for way, number in counts["drawn"].items():
        assert f"| `{way}` | {number:,} | {counts['mean_score'][way]:.3f} |" in card.text
    assert "Mode `group`" in card.text and "texts.jsonl" in card.text and "{{" not in card.text
    picture = ElementTree.parse(folder / "scores.svg").getroot()
    names = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert counts["drawn"].keys() <= names


def test_the_script_makes_a_harvest_and_spares_what_it_did_not_make(
    script: ModuleType, planted: Path, tmp_path: Path
) -> None:
    words = ["--harvest", tmp_path / "pairs", "--origin", planted / "origin", "--pairs", 200, "--mode", "group"]
    words = [str(word) for word in [*words, "--output", tmp_path / "set"]]
    assert script.main(words) is None
    assert "exists; choose another --output" in script.main(words)
    assert script.main([*words, "--overwrite"]) is None
    (tmp_path / "set/notes.txt").write_text("mine")
    assert "holds files that this script did not write: notes.txt" in script.main([*words, "--overwrite"])
    (tmp_path / "mine").mkdir()
    assert "exists" in script.main([*words, "--output", str(tmp_path / "mine"), "--overwrite"])


TRAINING = """
import sys
from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import CosineSimilarityLoss

pairs = load_dataset("ctxsim/harvested-pairs")
stream = load_dataset("ctxsim/harvested-pairs", streaming=True)
assert {split: len(list(stream[split])) for split in stream} == pairs.num_rows
assert list(stream["test"]) == pairs["test"].to_list()
assert "drawn" in load_dataset("ctxsim/harvested-pairs", "full")["test"].column_names
model = SentenceTransformer(sys.argv[1], device="cpu")
arguments = SentenceTransformerTrainingArguments(
    output_dir=sys.argv[2], max_steps=20, report_to="none", disable_tqdm=True, logging_steps=1, save_strategy="no",
    learning_rate=1e-3,
)
trainer = SentenceTransformerTrainer(
    model=model, args=arguments, train_dataset=pairs["train"], loss=CosineSimilarityLoss(model)
)
trainer.train()
losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
print(*pairs["train"].column_names, len(losses), sum(losses[-5:]) < sum(losses[:5]), "ctxsim_hf" in sys.modules)
"""


@pytest.mark.slow
def test_a_fresh_process_loads_it_by_name_and_trains_on_it(published: Path, planted: Path, tmp_path: Path) -> None:
    """Neither process nor data set needs this package."""
    tokenizer = AutoTokenizer.from_pretrained(planted / "tokenizer")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    RobertaModel(RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **sizes)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    words = [sys.executable, "-c", TRAINING, tmp_path / "model", tmp_path / "trained"]
    result = subprocess.run(words, cwd=published, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "sentence1 sentence2 score 20 True False"
