"""What `ctxsim adapt` does when documents were added to those it was run with before.

The index gains them as a segment. The tokenizer, the context model and the weights of signals stay as they are;
vectors, surrogate, pairs and figures are made anew from the origin that has grown, and the old ones stay in their
places until then.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxsim_hf.hub.cards import remove_card
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.steps import Step, run_steps
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import STAGE_FILE, read_stage

NOTICE = (
    "documents were added: the index gains them; vectors, surrogate, pairs, figures and cards are made anew; "
    "the tokenizer, the context model and the weights of signals stay as they are"
)


def added_corpora(before: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return the corpora that are new in what is asked for; none if anything else differs or one is missing."""
    others = [{name: value for name, value in one.items() if name != "corpus"} for one in (before, asked)]
    old, new = before["corpus"], asked["corpus"]
    return [name for name in new if name not in old] if others[0] == others[1] and new[: len(old)] == old else []


def add_documents(arguments: AdaptArguments, corpora: Sequence[str]) -> None:
    """Add corpora to the index of a folder; an equal run that was interrupted before may have done it."""
    folder = arguments.folder
    for model in (folder.origin, folder.surrogate):  # what it says of the documents will not be true any more
        remove_card(model, arguments.language)
    sys.stderr.write(f"{NOTICE}\n")
    values = {"origin": folder.origin, "add": True, "corpus": list(corpora), "workers": arguments.workers}
    run_steps([Step("index", values, folder.origin)], arguments.minutes)


def is_outdated(made: str, name: str, source: str) -> bool:
    """Return whether a finished folder was made from another version of the folder that it names as an input."""
    if not Path(made).exists() or not Path(source).exists():
        return False
    recorded: str = read_stage(made)["inputs"][name]["xxh3_128"]
    return recorded != digest_file(Path(source) / STAGE_FILE)
