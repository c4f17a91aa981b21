"""An export beside its model in torch, used by the card's own lines and by the encoder, where there is no torch."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import MAX_TOKENS, mixed_sentences

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.runtime.checks import verify_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate import export_command
from ctxsim_hf.surrogate.search_index import SearchIndex

Run = Callable[..., tuple[int, str, str]]
SENTENCES = [*mixed_sentences(50), "", "   ", "\U0001f600\U0001f680", "nul\0inside", "<s> <pad> </s>", "e\u0301"]
FILES = ["README.md", "model.onnx", "onnx_surrogate.json", "stage.json", "stage.log", "tokenizer.json"]


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("exports") / "onnx"
    export_command.run(export_command.ExportArguments(surrogate=str(folder), output=str(output)))
    return output


@pytest.fixture(scope="module")
def exported_int8(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("exports") / "int8"
    export_command.run(export_command.ExportArguments(surrogate=str(folder), output=str(output), quantize="int8"))
    return output


def test_the_vectors_are_those_of_torch(encoder: SentenceEncoder, exported: Path) -> None:
    onnx, normalised = SentenceEncoder.from_pretrained(exported), encoder.encode(SENTENCES, normalize_embeddings=True)
    assert sorted(path.name for path in exported.iterdir()) == FILES
    np.testing.assert_allclose(onnx.encode(SENTENCES), normalised, atol=1e-5)
    np.testing.assert_allclose(onnx.encode(SENTENCES, tokens_per_batch=1), normalised, atol=1e-5)
    long = ["words " * 99]
    np.testing.assert_allclose(onnx.encode(long), encoder.encode(long, normalize_embeddings=True), atol=1e-5)
    assert onnx.max_tokens == MAX_TOKENS and onnx.fingerprint == encoder.fingerprint
    first, second = SENTENCES[:5], SENTENCES[5:10]
    np.testing.assert_allclose(onnx.similarity(first, second), encoder.similarity(first, second), atol=1e-5)


def test_int8_is_near_and_smaller(encoder: SentenceEncoder, exported: Path, exported_int8: Path) -> None:
    onnx = SentenceEncoder.from_pretrained(exported_int8)
    near = np.asarray(onnx.encode(SENTENCES)) @ np.asarray(encoder.encode(SENTENCES, normalize_embeddings=True)).T
    assert near.diagonal().min() > 0.98
    assert onnx.fingerprint != encoder.fingerprint
    graphs = [(folder / "model.onnx").read_bytes() for folder in (exported, exported_int8)]
    assert b"MatMulInteger" in graphs[1] and b"MatMulInteger" not in graphs[0]


# Whoever imports torch or transformers in this process fails.
WITHOUT_TORCH = "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"


@pytest.mark.parametrize("kind", ["exported", "exported_int8"])
def test_the_lines_of_the_card(encoder: SentenceEncoder, kind: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(kind)
    (lines,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    assert sum(map(bool, lines.splitlines())) <= 10
    lines = WITHOUT_TORCH + lines + "import json; print(json.dumps(vectors.tolist()))"
    process = subprocess.run([sys.executable, "-c", lines], cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    found = np.array(json.loads(process.stdout.splitlines()[-1]))
    sentences = ["A man plays a guitar.", "Someone makes music.", "It rains."]
    wanted = np.asarray(encoder.encode(sentences, normalize_embeddings=True))
    np.testing.assert_allclose(found, wanted, atol=1e-5 if kind == "exported" else 0.1)


# Torch is found, as where it is installed, but whoever imports it in this process fails.
TORCH_FAILS = """
import sys
from importlib.machinery import ModuleSpec

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.split(".")[0] == "torch" else None
    def create_module(self, spec):
        raise ImportError("somebody imports torch")
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, NoTorch())
"""
COMMAND = "from ctxsim_hf.cli import main\nsys.exit(main(sys.argv[1:]))"
PYTHON = """
import ctxsim_hf
assert "transformers" not in sys.modules
from ctxsim_hf import SentenceEncoder
import numpy as np
np.save(sys.argv[2], SentenceEncoder.from_pretrained(sys.argv[1]).encode(["one line", "another"]))
"""


def run_where_torch_fails(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", TORCH_FAILS + script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_torch_does_fail_there(folder: Path) -> None:
    process = run_where_torch_fails(PYTHON, folder, "vectors.npy")
    assert process.returncode == 1 and "somebody imports torch" in process.stderr


@pytest.mark.parametrize("road", ["command", "python"])
def test_the_encoder_needs_no_torch(encoder: SentenceEncoder, exported: Path, tmp_path: Path, road: str) -> None:
    output = tmp_path / "vectors.npy"
    if road == "command":
        (tmp_path / "sentences.txt").write_text("one line\nanother\n")
        words = ("--surrogate", exported, "--input", tmp_path / "sentences.txt", "--output", output)
        process = run_where_torch_fails(COMMAND, "encode", *words)
    else:
        process = run_where_torch_fails(PYTHON, exported, output)
    assert process.returncode == 0, process.stderr
    wanted = encoder.encode(["one line", "another"], normalize_embeddings=True)
    np.testing.assert_allclose(np.load(output), wanted, atol=1e-5)


@pytest.mark.parametrize("words", [["--help"], ["encode", "--help"], ["search", "--help"], ["chunk", "--help"]])
def test_help_needs_no_torch(words: list[str]) -> None:
    process = run_where_torch_fails(COMMAND, *words)
    assert process.returncode == 0 and "usage: ctxsim" in process.stdout, process.stderr


def test_an_export_that_differs_is_not_kept(
    folder: Path, tmp_path: Path, ctxsim: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_command, "MAX_DIFFERENCE", 0)
    code, _, err = ctxsim("export", "--surrogate", folder, "--output", tmp_path / "onnx")
    assert code == 2 and "the export was not kept: its vectors differ from the model's" in err
    assert not list(tmp_path.rglob("*.onnx"))


def test_command_twice(folder: Path, exported: Path, tmp_path: Path, ctxsim: Run) -> None:
    """Equal runs leave equal bytes, and a finished one is left alone."""
    flags = ("export", "--surrogate", folder, "--format", "onnx", "--output", tmp_path / "onnx")
    code, out, err = ctxsim(*flags)
    assert code == 0 and out.endswith(f"{tmp_path / 'onnx'} is finished\n"), err
    record = json.loads((exported / "stage.json").read_text())
    assert json.loads((tmp_path / "onnx/stage.json").read_text()) == record
    verify_files(tmp_path / "onnx", record)
    written = (tmp_path / "onnx/model.onnx").stat().st_mtime_ns
    assert ctxsim(*flags) == (0, out, "")
    assert (tmp_path / "onnx/model.onnx").stat().st_mtime_ns == written
    code, _, err = ctxsim(*flags, "--quantize", "int8")
    assert code == 2 and "was made by another run: arguments.quantize was None, now int8" in err


def test_wrong_words(folder: Path, exported: Path, tmp_path: Path, ctxsim: Run) -> None:
    output = ("--output", tmp_path / "out")
    for flags, words in (
        (("--surrogate", folder, "--format", "tflite"), "--format must be one of onnx, got 'tflite'"),
        (("--surrogate", folder, "--quantize", "int4"), "--quantize must be one of int8, got 'int4'"),
        (("--surrogate", exported), "is an export already"),
        (("--surrogate", tmp_path), "expected a surrogate and its tokenizer in"),
    ):
        code, _, err = ctxsim("export", *flags, *output)
        assert code == 2 and words in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["tokenizer.json", "model.onnx"])
def test_an_export_that_lacks_a_file(exported: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(exported, tmp_path / "onnx")
    (tmp_path / "onnx" / name).unlink()
    with pytest.raises(UserError, match=f"{name}' is missing; make the folder again with --overwrite"):
        SentenceEncoder.from_pretrained(tmp_path / "onnx")
    (tmp_path / "onnx/stage.json").unlink()  # without it, there is nothing to check against
    with pytest.raises(UserError, match=f"an ONNX surrogate and its tokenizer in .*, but it has no {name}"):
        SentenceEncoder.from_pretrained(tmp_path / "onnx")


def test_a_device_that_onnx_has_not(exported: Path) -> None:
    with pytest.raises(UserError, match="runs on the CPU, got the device 'cuda'"):
        SentenceEncoder.from_pretrained(exported, device="cuda")


def test_a_missing_package_names_its_extra(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"pip install 'ctxsim-hf\[onnx\]'"):
        SentenceEncoder.from_pretrained(exported)


def test_an_export_searches_what_its_model_indexed(
    encoder: SentenceEncoder, exported: Path, exported_int8: Path, tmp_path: Path
) -> None:
    SearchIndex(tmp_path / "index", encoder).add(SENTENCES)
    hits = SearchIndex(tmp_path / "index", SentenceEncoder.from_pretrained(exported)).search([SENTENCES[3]])
    assert hits[0][0].place == 3
    with pytest.raises(UserError, match=r"was made by the surrogate .* with other weights than"):
        SearchIndex(tmp_path / "index", SentenceEncoder.from_pretrained(exported_int8))


@pytest.mark.parametrize("precision", [None, "int8"])
def test_what_a_score_means_survives(folder: Path, tmp_path: Path, ctxsim: Run, precision: str | None) -> None:
    shutil.copytree(folder, tmp_path / "known")
    Thresholds.from_scores(np.linspace(-1, 0.2, 50), np.linspace(0, 0.9, 50)).save(tmp_path / "known")
    flags = ["--quantize", precision] if precision else []
    assert ctxsim("export", "--surrogate", str(tmp_path / "known"), "--output", str(tmp_path / "onnx"), *flags)[0] == 0
    code, out, err = ctxsim("similarity", "one sentence", "one sentence", "--surrogate", str(tmp_path / "onnx"))
    assert code == 0, err
    assert "above all 50 random pairs of sentences and all adjacent ones" in out
