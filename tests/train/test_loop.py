"""The training loop: interrupted or killed it ends with the same weights; two processes do what one does; what goes
wrong is said in one line."""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from terminal import Terminal
from unfinished import unfinished

from ctxsim_hf.runtime.cache import write_digests
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.train import loop
from ctxsim_hf.train.checkpoints import Progress, load_checkpoint
from ctxsim_hf.train.loop import explain_memory_errors, learning_rate_factor
from ctxsim_hf.train.loop_arguments import LoopArguments

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent
TWO_PROCESSES = Path(__file__).parents[2] / "accelerate_configs/two_cpu_processes.yaml"
ON_CPUS = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}


def words(corpus: Path, output: Path, *flags: object, what: str = "discriminator") -> list[str]:
    fixed = ["train", what, "--preset", "tiny", "--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer"]
    every = ["--tokens-per-batch", 1500, "--log-every", 2, "--checkpoint-every", 6, "--output", output]
    return [str(word) for word in [*fixed, *every, *flags]]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def losses(folder: Path) -> list[float]:
    return [row["train/loss"] for row in json.loads((folder / "history.json").read_text()) if "train/loss" in row]


def test_learning_rate_by_hand() -> None:
    assert [learning_rate_factor(x, 0.2, "linear") for x in (0, 0.1, 0.2, 0.6, 1)] == pytest.approx(
        [0, 0.5, 1, 0.5, 0]
    )
    assert [learning_rate_factor(x, 0, "cosine") for x in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])
    assert learning_rate_factor(0.9, 0.1, "constant") == 1


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ctxsim_hf.cli import main

    output = tmp_path_factory.mktemp("undisturbed") / "out"
    assert main(words(corpus, output, "--max-steps", 40)) == 0
    return output


def test_the_folder_holds_the_model_and_how_it_was_made(undisturbed: Path) -> None:
    assert sorted(path.name for path in undisturbed.iterdir()) == [
        "config.json",
        "history.json",
        "metrics.json",
        "model.safetensors",
        "stage.json",
        "stage.log",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    record = json.loads((undisturbed / "stage.json").read_text())
    assert record["counts"]["steps"] == 40
    assert record["arguments"]["hidden_size"] == 32, "what the preset filled is recorded"
    assert len(losses(undisturbed)) == 20
    assert losses(undisturbed)[-1] < losses(undisturbed)[0]


@pytest.mark.parametrize(
    ("number", "what", "flags"),
    [
        (signal.SIGTERM, "discriminator", []),
        (signal.SIGKILL, "discriminator", []),
        (signal.SIGKILL, "generator", []),
        (signal.SIGKILL, "generator", ["--direction", "right"]),  # its weights are tied
    ],
)
def test_interrupted_and_resumed_it_ends_with_the_same_weights(
    ctxsim: Run, corpus: Path, tmp_path: Path, number: signal.Signals, what: str, flags: list[str]
) -> None:
    flags = [*flags, "--max-steps", "40", "--eval-every", "12"]
    assert ctxsim(*words(corpus, tmp_path / "undisturbed", *flags, what=what))[0] == 0
    command = words(corpus, tmp_path / "out", *flags, what=what)
    checkpoints = tmp_path / "out.ctxsim-partial/output/checkpoints"
    with subprocess.Popen([BIN / "ctxsim", *command], stderr=subprocess.PIPE, text=True) as process:
        while not list(checkpoints.glob("step-*[0-9]")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert not (tmp_path / "out").exists()
    if number == signal.SIGTERM:
        assert process.returncode == 130
        assert err.endswith(f"ctxsim train {what}: interrupted; run the same command again to resume\n")
    assert 1 <= len(list(checkpoints.glob("step-*[0-9]"))) <= 2, "only the last two are kept"
    code, out, err = ctxsim(*command)
    assert code == 0 and "resuming from step" in out + err
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


@pytest.mark.parametrize("pattern", ["random_states_0.pkl", "model.safetensors", "optimizer.bin", "progress.json"])
def test_a_damaged_checkpoint_is_refused(
    ctxsim: Run, corpus: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    command = words(corpus, tmp_path / "out", "--max-steps", 40)
    with monkeypatch.context() as patch:
        patch.setattr(loop._Run, "_done", lambda run: run.progress.step == 20 and signal.raise_signal(signal.SIGTERM))
        assert ctxsim(*command)[0] == 130
    *_, checkpoint = sorted(tmp_path.glob("out.ctxsim-partial/output/checkpoints/step-*[0-9]"))
    (path,) = checkpoint.glob(pattern)
    whole = path.read_bytes()
    half = len(whole) // 2
    for damaged in (whole[:half], whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]):
        path.write_bytes(damaged)
        code, _, err = ctxsim(*command)
        assert code == 2 and err.count("\n") == 1 and f"{path.name}' is damaged" in err and "--overwrite" in err
    path.write_bytes(whole)
    assert ctxsim(*command)[0] == 0
    assert (tmp_path / "out/model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()


def test_interrupted_at_its_last_step_it_stops_and_has_nothing_left_to_do(
    ctxsim: Run, corpus: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, done = words(corpus, tmp_path / "out", "--max-steps", 40), loop._Run._done

    def signal_once_done(run: loop._Run) -> bool:
        if found := done(run):
            signal.raise_signal(signal.SIGTERM)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(loop._Run, "_done", signal_once_done)
        code, _, err = ctxsim(*command)
    assert code == 130 and "stopping after a few steps" in err
    assert ctxsim(*command)[0] == 0
    for name in ("model.safetensors", "metrics.json", "history.json"):
        assert (tmp_path / "out" / name).read_bytes() == (undisturbed / name).read_bytes(), name


def test_killed_after_training_it_does_not_train_again(
    ctxsim: Run, corpus: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = words(corpus, tmp_path / "out", "--max-steps", 40)

    def killed(stage: Stage, counts: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "finish", killed)
        assert ctxsim(*command)[0] == 130
    assert not (tmp_path / "out.ctxsim-partial/output/checkpoints").exists()
    with monkeypatch.context() as patch:
        patch.setattr(loop._Run, "train", None)  # whoever trains, fails
        assert ctxsim(*command)[0] == 0
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json"):
        assert (tmp_path / "out" / name).read_bytes() == (undisturbed / name).read_bytes(), name


def test_no_learning_rate_is_invented(tmp_path: Path) -> None:
    arguments = LoopArguments(output=str(tmp_path))
    with pytest.raises(ValueError, match="expected a value that a preset or a default has filled, got None"):
        loop.train(None, arguments, tmp_path, loop.make_accelerator(arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "every", "reason"),
    [
        (0.9, 6, "File too large"),  # safetensors
        (1.1, 6, "torch failed in the middle of a file"),  # the state of the optimizer is larger than the weights
        (0.9, 100, "File too large"),  # no checkpoint, but the model
    ],
)
def test_a_disk_that_is_full_is_said_in_one_line(
    ctxsim: Run, corpus: Path, undisturbed: Path, tmp_path: Path, share: float, every: int, reason: str
) -> None:
    limit = int(share * len(weights(undisturbed)))
    command = [*words(corpus, tmp_path / "out", "--max-steps", 40), "--checkpoint-every", str(every)]
    full = subprocess.run(
        [BIN / "ctxsim", *command],
        capture_output=True,
        text=True,
        env=ON_CPUS,
        # No file may be larger, so that writing fails as it does without space.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert full.returncode == 2 and "Traceback" not in full.stderr, full.stderr
    assert full.stderr.count("could not write") == 1 and f": {reason}" in full.stderr
    assert "run the same command again to resume" in full.stderr
    assert ctxsim(*command)[0] == 0
    assert weights(tmp_path / "out") == weights(undisturbed)


def test_a_run_does_not_go_on_with_other_processes(tmp_path: Path) -> None:
    about = asdict(Progress(layout=[8, "bf16"], step=5))
    (tmp_path / "progress.json").write_text(json.dumps(about))
    write_digests(tmp_path)
    with pytest.raises(
        UserError, match=r"on 8 process\(es\) with mixed precision 'bf16', but this run is on 4 with 'bf16'"
    ):
        load_checkpoint(Accelerator(), tmp_path, [4, "bf16"])


CLOCKS = """
import json, os, sys, time, types
from ctxsim_hf.cli import main
from ctxsim_hf.train import loop

rank, real = int(os.environ["RANK"]), time.monotonic
loop.time = types.SimpleNamespace(monotonic=lambda: real() * (1 + 2 * rank))
factors, factor = [], loop.learning_rate_factor
loop.learning_rate_factor = lambda *given: factors.append(factor(*given)) or factors[-1]
code = main(sys.argv[2:])
json.dump(factors, open(f"{sys.argv[1]}/rank-{rank}.json", "w"))
sys.exit(code)
"""


@pytest.mark.slow
def test_two_processes_with_different_clocks_take_the_same_steps(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "clocks.py").write_text(CLOCKS)
    command = words(corpus, tmp_path / "out", "--max-train-minutes", 0.05, "--epochs", 1000)
    launch = [BIN / "accelerate", "launch", "--config_file", TWO_PROCESSES, tmp_path / "clocks.py", tmp_path, *command]
    result = subprocess.run(launch, env=ON_CPUS, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    factors = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    assert factors[0] == factors[1] and len(set(factors[0])) > 2


def test_checkpoints_hold_no_pickle_of_ours(corpus: Path, tmp_path: Path, ctxsim: Run) -> None:
    """Whatever is in a checkpoint opens with weights_only=True, as accelerate itself opens it, or is no pickle."""
    command = words(corpus, tmp_path / "out", "--max-steps", 8, "--learning-rate", 1e-3)
    unfinished(tmp_path / "out").mkdir()
    process = subprocess.Popen([BIN / "ctxsim", *command])
    while process.poll() is None and not list(tmp_path.glob("out.ctxsim-partial/output/checkpoints/step-*[0-9]")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    (checkpoint,) = tmp_path.glob("out.ctxsim-partial/output/checkpoints/step-*[0-9]")
    names = {path.name for path in checkpoint.iterdir()}
    assert names == {"model.safetensors", "optimizer.bin", "random_states_0.pkl", "progress.json", "digests.json"}
    torch.load(checkpoint / "optimizer.bin", weights_only=True)


@pytest.mark.parametrize(("what", "flags"), [("discriminator", ["--dropout", 0]), ("generator", ["--num-sampled", 0])])
def test_two_processes_follow_the_loss_of_one(
    ctxsim: Run, corpus: Path, tmp_path: Path, what: str, flags: list[object]
) -> None:
    common = [*flags, "--max-steps", 20, "--log-every", 1]
    one = words(corpus, tmp_path / "one", *common, "--gradient-accumulation-steps", 2, what=what)
    assert ctxsim(*one)[0] == 0
    two = words(corpus, tmp_path / "two", *common, what=what)
    launch = [BIN / "accelerate", "launch", "--config_file", TWO_PROCESSES, "-m", f"ctxsim_hf.train.{what}", *two[2:]]
    result = subprocess.run(launch, env=ON_CPUS, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("is finished") == 1, "one process speaks"
    assert "training on 2 process(es)" in (tmp_path / "two/stage.log").read_text()
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)
    assert len(losses(tmp_path / "two")) == 20


def test_a_launcher_gets_one_plain_line_for_an_error(corpus: Path, tmp_path: Path) -> None:
    bad = words(corpus, tmp_path / "out", "--tokens-per-batch", 10)
    launch = [
        BIN / "accelerate",
        "launch",
        "--config_file",
        TWO_PROCESSES,
        "-m",
        "ctxsim_hf.train.discriminator",
        *bad[2:],
    ]
    result = subprocess.run(launch, env=ON_CPUS, capture_output=True, text=True)
    assert result.returncode != 0
    assert len(re.findall(r"ctxsim train discriminator: --tokens-per-batch 10 is less than", result.stderr)) == 1


def test_a_loss_that_is_no_number_stops_the_run(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    code, _, err = ctxsim(*words(corpus, tmp_path / "out", "--max-steps", 40, "--learning-rate", 1e38))
    assert code == 2
    assert re.search(r"the loss became (nan|inf) by step \d+; .*lower --learning-rate", err)
    for checkpoint in tmp_path.glob("out.ctxsim-partial/output/checkpoints/*/progress.json"):
        assert math.isfinite(json.loads(checkpoint.read_text())["loss"])


def test_memory_errors_name_the_flag() -> None:
    with pytest.raises(UserError, match=r"out of memory .*Lower --tokens-per-batch"), explain_memory_errors():
        torch.empty(10**15)
    with pytest.raises(RuntimeError, match="something else"), explain_memory_errors():
        raise RuntimeError("something else")


def test_a_time_limit_records_the_step_it_stopped_at(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    flags = ("--max-train-minutes", 0.01, "--epochs", 1000)
    assert ctxsim(*words(corpus, tmp_path / "out", *flags))[0] == 0
    steps = json.loads((tmp_path / "out/metrics.json").read_text())["steps"]
    assert 1 <= steps < 5000


@pytest.mark.parametrize(
    ("flags", "last"),
    [
        (("--max-train-minutes", 0.02, "--epochs", 1000), "1/1 s "),  # not of the steps of 1000 epochs
        (("--max-train-minutes", 5, "--max-steps", 5), "300/300 s "),  # the steps end first
        (("--max-steps", 5), "5/5 "),
    ],
)
def test_the_bar_counts_what_is_left_of_the_time(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[object, ...], last: str
) -> None:
    from ctxsim_hf.cli import main

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(words(corpus, tmp_path / "out", *flags)) == 0
    bars = [line for line in terminal.lines if line.startswith("train: ")]
    assert "100%" in bars[-1] and last in bars[-1] and "loss=" in bars[-1]


def test_a_tracker_gets_what_the_history_holds(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    """TensorBoard, through accelerate: the losses in its event file are those in history.json."""
    from tensorboardX.proto.event_pb2 import Event

    flags = words(corpus, tmp_path / "out", "--max-steps", 6, "--report-to", "tensorboard")
    code, _, err = ctxsim(*flags)
    assert code == 0, err
    tracked = {}
    for path in (tmp_path / "out.tracking").rglob("events.out.tfevents.*"):
        data = path.read_bytes()
        while data:  # each record: length, checksum, event, checksum
            length = int.from_bytes(data[:8], "little")
            event = Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]
            for value in event.summary.value:
                if value.tag == "train/loss":
                    tracked[event.step] = value.simple_value
    assert list(tracked) == [2, 4, 6]
    assert list(tracked.values()) == pytest.approx(losses(tmp_path / "out"), rel=1e-6)


def test_other_arguments_are_refused_and_equal_ones_find_it_done(ctxsim: Run, corpus: Path, undisturbed: Path) -> None:
    before = weights(undisturbed)
    code, _, err = ctxsim(*words(corpus, undisturbed, "--max-steps", 41))
    assert code == 2 and "arguments.max_steps was 40, now 41" in err
    code, out, _ = ctxsim(*words(corpus, undisturbed, "--max-steps", 40, "--checkpoint-every", 100))
    assert code == 0 and "is finished" in out
    assert weights(undisturbed) == before


@pytest.mark.parametrize("name", ["one_cpu", "two_cpu_processes", "one_gpu", "many_gpus"])
def test_accelerate_reads_our_configurations(name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config: Any = load_config_from_file(str(Path(__file__).parents[2] / f"accelerate_configs/{name}.yaml"))
    assert config.num_processes == {"two_cpu_processes": 2, "many_gpus": 8}.get(name, 1)
