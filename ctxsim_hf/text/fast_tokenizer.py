"""A folder -> its fast tokenizer. Equal files are opened once per process."""

import shutil
import threading
from pathlib import Path

from transformers import TokenizersBackend

from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.pretrained import open_auto_tokenizer
from ctxsim_hf.text.tokenized import find_tokenizer_file

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_opened: dict[tuple[str, ...], TokenizersBackend] = {}
_lock = threading.Lock()


def open_tokenizer(folder: str | Path) -> TokenizersBackend:
    """Open the tokenizer in a folder. Equal files give the same object, so that stored tokens can be matched to their
    tokenizer by identity."""
    folder = Path(folder)
    find_tokenizer_file(folder)  # without it, AutoTokenizer would make an empty tokenizer
    paths = [folder / name for name in TOKENIZER_FILES]
    key = tuple(digest_file(path) if path.exists() else "" for path in paths)
    with _lock:
        if key not in _opened:
            _opened[key] = open_auto_tokenizer(folder)
        return _opened[key]


def copy_tokenizer(folder: Path, target: Path) -> None:
    """Copy the files of a tokenizer into another folder."""
    open_tokenizer(folder)  # refuses a missing or unreadable tokenizer
    target.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)
