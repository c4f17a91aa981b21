"""Configurations and tokenizers of other people's folders -> opened without running their code, or one plain line."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import locate

OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")


def open_config(name: str | Path) -> Any:
    """Open the configuration of a model by a name as in fetch.py."""
    from transformers import AutoConfig

    with explain_opening("a model", name):
        return AutoConfig.from_pretrained(locate(name), trust_remote_code=False)


def open_auto_tokenizer(name: str | Path) -> Any:
    """Open a tokenizer by a name as in fetch.py."""
    from transformers import AutoTokenizer

    with explain_opening("a tokenizer", name):
        return AutoTokenizer.from_pretrained(locate(name), trust_remote_code=False)


def check_safetensors(what: str, folder: Path) -> None:
    """Refuse the folder of `what` if its weights are not in safetensors, which is all that an origin copies."""
    if not any(folder.glob("*.safetensors")):
        others = sorted(path.name for path in folder.iterdir() if path.suffix in OTHER_WEIGHTS)
        raise UserError(
            f"expected {what} in {str(folder)!r} with weights in safetensors, found {', '.join(others) or 'none'}; "
            "open the model with transformers and save it again"
        )


@contextlib.contextmanager
def explain_opening(what: str, name: str | Path) -> Iterator[None]:
    """Turn an error of transformers that opens `what` from a folder or the Hub into one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of many types: tokenizers raise plain exceptions for damaged files
        if "custom code" in str(error) or "trust_remote_code" in str(error):
            raise UserError(
                f"{str(name)!r} needs code of its own (`auto_map`), which is not run; "
                f"expected {what} that transformers knows"
            ) from error
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"expected {what} in {str(name)!r}: {first}") from error
