"""Sentence similarity learned from plain documents: two sentences are alike if they fit the same contexts."""

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> its module, imported when the name is first used: torch alone takes seconds, and `ctxsim --help` or
# whoever only reads chunks should not wait for it.
_PUBLIC = {
    "Chunk": "ctxsim_hf.corpus.chunks",
    "Context": "ctxsim_hf.corpus.chunks",
    "read_chunks": "ctxsim_hf.corpus.chunks",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
