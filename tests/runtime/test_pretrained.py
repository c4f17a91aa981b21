"""Folders that others made: their code is never run, nor is anybody asked whether it should be."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.pretrained import open_auto_tokenizer, open_config

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A surrogate of an unknown type that brings code, which would leave a file."""
    folder = save_tiny(tmp_path / "stranger")
    code = f"open({str(tmp_path / 'was_run')!r}, 'w')\n"
    (folder / "code.py").write_text(
        code + "from transformers import PreTrainedConfig as Config, PreTrainedModel as Model\n"
    )
    config = json.loads((folder / "config.json").read_text())
    auto_map = {"AutoConfig": "code.Config", "AutoModel": "code.Model", "AutoTokenizer": ["code.Model", "code.Model"]}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "stranger", "auto_map": auto_map}))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps(tokenizer | {"auto_map": auto_map, "tokenizer_class": "StrangeTokenizer"})
    )
    return folder


def test_code_of_a_folder_is_not_run(ctxsim: Run, stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*words: object) -> str:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("builtins.input", ask)
    for open_folder in (SentenceEncoder.from_pretrained, open_config):
        with pytest.raises(UserError, match=r"needs code of its own \(`auto_map`\), which is not run"):
            open_folder(stranger)
    code, _, err = ctxsim("similarity", "--surrogate", stranger, "a", "b")
    assert code == 2 and err.count("\n") == 1 and "which is not run" in err
    assert not (stranger.parent / "was_run").exists() and not any("stranger" in name for name in sys.modules)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"half"),
        ("sentence_bert_config.json", b"[]"),
        ("1_Pooling/config.json", b"5"),
        ("modules.json", b'{"type": 1}'),
    ],
)
def test_a_surrogate_without_digests_that_does_not_open(tmp_path: Path, name: str, content: bytes) -> None:
    folder = save_tiny(tmp_path / "damaged")
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=r"^expected a surrogate in '.*damaged': ") as caught:
        SentenceEncoder.from_pretrained(folder)
    assert "\n" not in str(caught.value)


def test_damaged_files_are_named_in_one_line(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "damaged")
    for name, open_folder in (("tokenizer.json", open_auto_tokenizer), ("config.json", open_config)):
        whole = (folder / name).read_text()
        (folder / name).write_text(whole[: len(whole) // 2])
        with pytest.raises(UserError, match=r"^expected a (tokenizer|model) in ") as caught:
            open_folder(folder)
        assert "\n" not in str(caught.value)
        (folder / name).write_text(whole)
