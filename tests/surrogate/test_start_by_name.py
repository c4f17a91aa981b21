"""A start on the Hub is treated as the same folder would be, and its id is kept for the card."""

import json
from pathlib import Path

import pytest
import torch
from hub_processes import environment, run_commands
from huggingface_hub import ModelCard
from loopback_hub import LARGE, WRITER, Blob, LoopbackHub, Repository
from tiny_surrogate import save_tiny
from topic_pairs import write_pairs
from transformers import AutoTokenizer

from ctxsim_hf import SurrogateModel
from ctxsim_hf.encoder.sentence_transformers_files import Pooling, read_pooling
from ctxsim_hf.encoder.static_encoder import StaticConfig


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """A static model, an encoder with CLS pooling, and one before which sentence-transformers lowercases."""
    torch.manual_seed(0)
    folder = tmp_path / "starts"
    for name in ("cls", "lower"):
        save_tiny(folder / name)
        model = SurrogateModel.from_pretrained(folder / name, pooling=Pooling("cls"))
        model.save_pretrained(folder / name)
    path = folder / "lower/sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    tokenizer = AutoTokenizer.from_pretrained(folder / "cls")
    SurrogateModel(StaticConfig(vocab_size=len(tokenizer), hidden_size=8)).save_pretrained(folder / "static")
    tokenizer.save_pretrained(folder / "static")
    return folder


def push(hub: LoopbackHub, folder: Path) -> str:
    repository = hub.repositories["models", f"me/{folder.name}"] = Repository(private=False)
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    repository.commit({name: Blob(content, len(content) > LARGE) for name, content in contents.items()})
    return f"me/{folder.name}"


def test_starts_on_a_hub(corpus: Path, starts: Path, tmp_path: Path) -> None:
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=4)
    fixed = ["train", "surrogate", "--pairs", pairs, "--max-steps", 2, "--tokens-per-batch", 600, "--keep", "last"]
    fixed += ["--max-sentence-tokens", 20]
    with LoopbackHub() as hub:
        ids = [push(hub, starts / name) for name in ("static", "cls", "lower")]
        commands = [[*fixed, "--init", name, "--output", tmp_path / name.split("/")[1]] for name in ids]
        commands.append(["card", tmp_path / "cls"])
        env = environment(hub.endpoint, tmp_path / "home")
        static, cls, lower, card = run_commands([(WRITER, words) for words in commands], env, tmp_path)
        assert hub.unknown == []
    assert (static[0], cls[0], card[0]) == (0, 0, 0), static[2] + cls[2] + card[2]
    record = json.loads((tmp_path / "static/stage.json").read_text())
    assert record["arguments"]["kind"] == "static" and set(record["inputs"]["init"]) > {"id", "model.safetensors"}
    assert read_pooling(tmp_path / "cls").mode == "cls"
    assert ModelCard.load(tmp_path / "cls/README.md").data.base_model == "me/cls"
    assert lower[0] == 2 and "lowercases sentences with `do_lower_case`" in lower[2], lower[2]
