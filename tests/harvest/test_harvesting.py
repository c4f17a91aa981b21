"""`ctxsim harvest`: what the pairs promise; the same bytes for any number of processes and shards, after kill -9 and
after damage; what goes wrong is said in one line."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from small_harvest import contents, harvest_words
from transformers import HfArgumentParser
from unfinished import unfinished

from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.harvest_blocks import HarvestBlocks
from ctxsim_hf.origin.context_index import sentence_key
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.blocks import Blocks, execute
from ctxsim_hf.text.chunks import read_chunks

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent
TWO_PROCESSES = Path(__file__).parents[2] / "accelerate_configs/two_cpu_processes.yaml"
ONE_THREAD = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}


def read(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The columns of each split."""
    return {
        split: pq.read_table(sorted((folder / "data").glob(f"{split}-*.parquet"))).to_pydict()
        for split in ("train", "validation", "test")
    }


@pytest.mark.parametrize("mode", ["pair", "group"])
def test_what_the_pairs_promise(mode: str, planted: Path, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(f"{mode}_harvest")
    splits = read(folder)
    counts = json.loads((folder / "stage.json").read_text())["counts"]
    total = sum(counts["pairs"].values())
    assert [len(columns["score"]) for columns in splits.values()] == [total * 98 // 100, total // 100, total // 100]
    seen: set[int] = set()
    for split, columns in splits.items():
        keys = [
            tuple(map(sentence_key, pair)) for pair in zip(columns["sentence1"], columns["sentence2"], strict=True)
        ]
        assert all(first != second for first, second in keys)
        assert len({frozenset(pair) for pair in keys}) == len(keys)
        sentences = {key for pair in keys for key in pair}
        assert not seen & sentences, "a sentence is in two splits"
        seen |= sentences
        assert len(sentences) == counts["sentences"][split]
    chunks = {row["chunk_id"]: row["sentences"] for row in read_chunks(planted / "chunks", "train")}
    for side in ("1", "2"):
        columns = splits["train"]
        for sentence, chunk_id in zip(columns[f"sentence{side}"], columns[f"chunk_id{side}"], strict=True):
            assert sentence in chunks[chunk_id]
    ways = [way for columns in splits.values() for way in columns["drawn"]]
    scores = np.concatenate([columns["score"] for columns in splits.values()])
    for way, number in counts["drawn"].items():
        chosen = scores[np.array(ways) == way]
        assert len(chosen) == number and chosen.mean() == pytest.approx(counts["mean_score"][way], abs=1e-6)
    assert counts["mean_score"]["near_1"] > counts["mean_score"]["random"] + 0.5


def test_labels_are_those_of_origin(pair_harvest: Path, origin: OriginSimilarity) -> None:
    columns = read(pair_harvest)["train"]
    expected = list(origin.compare(columns["sentence1"][:20], columns["sentence2"][:20]))
    np.testing.assert_allclose(columns["score"][:20], [pair.similarity for pair in expected], atol=1e-5)
    np.testing.assert_allclose(columns["spread"][:20], [pair.spread for pair in expected], atol=1e-5)


@pytest.mark.slow
def test_two_processes_leave_the_same_bytes(planted: Path, pair_harvest: Path, tmp_path: Path) -> None:
    words = harvest_words(planted, tmp_path / "out")[1:]
    launch = [BIN / "accelerate", "launch", "--config_file", TWO_PROCESSES, "-m", "ctxsim_hf.harvest", *words]
    result = subprocess.run(launch, env=ONE_THREAD, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("is finished") == 1, "one process speaks"
    assert "4 files to make on 2 process(es)" in (tmp_path / "out/stage.log").read_text()
    assert contents(tmp_path / "out") == contents(pair_harvest)


def test_blocks_backwards_by_copies_leave_the_same_bytes(planted: Path, pair_harvest: Path, tmp_path: Path) -> None:
    """As an executor on other machines runs them: every block by a work that was pickled."""
    words = harvest_words(planted, tmp_path / "out")[1:]
    (arguments,) = HfArgumentParser(HarvestArguments).parse_args_into_dataclasses(words)
    work = HarvestBlocks(tmp_path, arguments, torch.device("cpu"))
    assert len(work.blocks()) == 4

    def backwards(work: Blocks, names: Sequence[str]) -> None:
        for half in (names[2:], names[:2]):
            copy = pickle.loads(pickle.dumps(work))
            for name in reversed(half):
                copy.run_block(name)

    assert execute(work, backwards) == json.loads((pair_harvest / "stage.json").read_text())["counts"]
    assert contents(tmp_path) == {
        name: data for name, data in contents(pair_harvest).items() if name.startswith("data/")
    }


def test_shards_in_any_order_leave_the_same_bytes(
    ctxsim: Run, planted: Path, pair_harvest: Path, tmp_path: Path
) -> None:
    def shard(number: int, *more: str) -> tuple[int, str, str]:
        return ctxsim(*harvest_words(planted, tmp_path / "out", "--shard", number, "--num-shards", 5, *more))

    assert shard(2)[:2] == (0, "shard 2 of 5 is finished; still to come: 0, 1, 3, 4\n")
    assert shard(4)[:2] == (0, "shard 4 of 5 is finished; still to come: 0, 1, 3\n"), "though it has no file to make"
    assert [shard(number)[0] for number in (3, 0)] == [0, 0]
    broken = next((tmp_path / "out.ctxsim-shards/2-of-5/data").iterdir())
    broken.write_bytes(broken.read_bytes()[:-1])
    code, _, err = shard(1)
    assert code == 2 and f"'{broken}' is damaged; run that shard again" in err
    assert shard(2)[0] == 0
    assert contents(tmp_path / "out") == contents(pair_harvest)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "no shard is left behind"
    (tmp_path / "out/data/test-00000-of-00001.parquet").unlink()
    code, out, _ = shard(0)
    assert code == 0 and "is finished" in out
    assert contents(tmp_path / "out") == contents(pair_harvest), "any shard mends the whole"
    code, _, err = shard(0, "--overwrite")
    assert code == 2 and "a shard cannot tell whether it is the old one" in err


def test_a_shard_of_another_harvest_is_refused(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    shards = ("--num-shards", 2, "--mode", "group")
    assert ctxsim(*harvest_words(planted, tmp_path / "out", *shards, "--shard", 0, "--seed", 1))[0] == 0
    code, _, err = ctxsim(*harvest_words(planted, tmp_path / "out", *shards, "--shard", 1))
    assert code == 2 and "0-of-2' was made by other arguments or versions than this shard" in err


@pytest.mark.slow
def test_killed_and_run_again_it_leaves_the_same_bytes(
    ctxsim: Run, planted: Path, pair_harvest: Path, tmp_path: Path
) -> None:
    words = harvest_words(planted, tmp_path / "out")
    with subprocess.Popen([BIN / "ctxsim", *words], env=ONE_THREAD) as process:
        while not list(tmp_path.glob("out.ctxsim-partial/output/data/*.parquet")):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    finished = {
        path.name: path.stat().st_mtime_ns for path in tmp_path.glob("out.ctxsim-partial/output/data/*.parquet")
    }
    assert len(finished) < 4 and not (tmp_path / "out").exists()
    assert ctxsim(*words)[0] == 0
    assert contents(tmp_path / "out") == contents(pair_harvest)
    for name, written in finished.items():
        assert (tmp_path / "out/data" / name).stat().st_mtime_ns == written, "a finished file was made again"


def test_a_damaged_file_is_named_and_made_again(
    ctxsim: Run, planted: Path, pair_harvest: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = Path(shutil.copytree(pair_harvest, tmp_path / "out"))
    written = {path: path.stat().st_mtime_ns for path in output.glob("data/*")}
    broken = output / "data/train-00000-of-00002.parquet"
    flipped = bytearray(broken.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    broken.write_bytes(flipped)
    assert ctxsim(*harvest_words(planted, output))[0] == 0
    assert f"'{broken}' is damaged and will be made again" in caplog.text
    assert contents(output) == contents(pair_harvest)
    made_again = [path for path, before in written.items() if path.stat().st_mtime_ns != before]
    assert made_again == [broken]


def test_a_damaged_file_of_a_run_that_was_interrupted(
    ctxsim: Run, planted: Path, pair_harvest: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partial = Path(shutil.copytree(pair_harvest, unfinished(tmp_path / "out")))
    broken = partial / "data/train-00001-of-00002.parquet"
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    assert ctxsim(*harvest_words(planted, tmp_path / "out"))[0] == 0
    assert "train-00001-of-00002.parquet' is damaged and will be made again" in caplog.text
    assert contents(tmp_path / "out") == contents(pair_harvest)


def test_a_full_disk_loses_nothing(ctxsim: Run, planted: Path, pair_harvest: Path, tmp_path: Path) -> None:
    partial = Path(shutil.copytree(pair_harvest, unfinished(tmp_path / "out")))
    missing = partial / "data/train-00001-of-00002.parquet"
    missing.unlink()
    missing.with_name(f".{missing.name}.ctxsim-tmp").symlink_to("/dev/full")
    code, _, err = ctxsim(*harvest_words(planted, tmp_path / "out"))
    assert code == 2 and "No space left on device" in err and "to resume" in err and err.count("\n") == 1
    assert len(list((partial / "data").iterdir())) == 3
    assert ctxsim(*harvest_words(planted, tmp_path / "out"))[0] == 0
    assert contents(tmp_path / "out") == contents(pair_harvest)


def test_an_index_of_other_chunks(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    assert ctxsim("chunk", "--corpus", planted / "texts.jsonl", "--output", tmp_path / "chunks")[0] == 0
    code, _, err = ctxsim(*harvest_words(planted, tmp_path / "out", "--chunks", tmp_path / "chunks"))
    assert code == 2 and "was made from chunks with the digest" in err and "index these chunks" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pairs", 99], "--pairs must be at least 100, got 99"),
        (["--pairs", 1_000_000], "too few sentences for 1000000 pairs (train: 4013 sentences give"),
        (["--mode", "triple"], "--mode must be one of pair, group, got 'triple'"),
        (["--near", 0], "--near must be at least 1, got 0"),
        (["--random-share", 1.5], "--random-share must be at least 0 and at most 1, got 1.5"),
        (["--weights", 1, 2], "--weights takes 4 numbers"),
        (["--compare-by", "euclid"], "must be one of cosine, centered, zscore, whitened, got 'euclid'"),
        (["--shard", 4, "--num-shards", 4], "--shard must be from 0 to --num-shards - 1, got 4 of 4"),
        (["--num-shards", 4], "--num-shards 4 needs --shard, from 0 to 3"),
        (["--min-tokens", 41], "too few sentences for 300 pairs (train: 0 sentences"),
    ],
)
def test_bad_input_is_one_line(ctxsim: Run, planted: Path, tmp_path: Path, words: list[object], message: str) -> None:
    code, _, err = ctxsim(*harvest_words(planted, tmp_path / "out", *words))
    assert code == 2 and message in err and err.count("\n") == 1, err
    assert not (tmp_path / "out").exists()


def test_at_most_is_what_was_possible(harvest: Callable[..., Path]) -> None:
    """Too many asked for: the same pairs as if exactly as many had been asked for as there are."""
    most = harvest("--mode", "group", "--pairs", 1_000_000, "--at-most")
    number = sum(json.loads((most / "stage.json").read_text())["counts"]["pairs"].values())
    assert number % 100 == 0 and 300 < number < 1_000_000
    exactly = harvest("--mode", "group", "--pairs", number)
    data = {name: read for name, read in contents(exactly).items() if name.startswith("data")}
    assert data == {name: read for name, read in contents(most).items() if name.startswith("data")}


def test_group_harvests_are_bitwise_equal(harvest: Callable[..., Path]) -> None:
    words = ("--mode", "group", "--seed", 3)
    assert contents(harvest(*words)) == contents(harvest(*words))
