"""A folder -> its fast tokenizer. Equal files are opened once per process."""

import shutil
from pathlib import Path

from transformers import AutoTokenizer, TokenizersBackend

from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.text.tokenized import find_tokenizer_file

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_opened: dict[tuple[str, ...], TokenizersBackend] = {}


def open_tokenizer(folder: str | Path) -> TokenizersBackend:
    """Open the tokenizer in a folder. Equal files give the same object, so that stored tokens can be matched to their
    tokenizer by identity."""
    folder = Path(folder)
    find_tokenizer_file(folder)  # without it, AutoTokenizer would make an empty tokenizer
    paths = [folder / name for name in TOKENIZER_FILES]
    key = tuple(digest_file(path) if path.exists() else "" for path in paths)
    if key not in _opened:
        _opened[key] = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    return _opened[key]


def copy_tokenizer(folder: Path, target: Path) -> None:
    """Copy the files of a tokenizer into another folder."""
    open_tokenizer(folder)  # refuses a missing or unreadable tokenizer
    target.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)
