"""A small made-up corpus with something to learn: every document has words of its own, so contexts tell sentences."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ctxsim_hf.context_models.context_data import ContextData


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `chunks` and `tokenizer`, made by the commands."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("training")
    chooser = random.Random(0)
    topics = [[_word(chooser) for _ in range(8)] for _ in range(6)]
    common = [_word(chooser) for _ in range(30)]
    with (folder / "texts.jsonl").open("w") as file:
        for number in range(240):
            words = topics[number % len(topics)]
            sentences = [
                " ".join(chooser.sample(common, chooser.randint(1, 5)) + chooser.sample(words, 3)) + "."
                for _ in range(chooser.randint(6, 24))
            ]
            file.write(json.dumps({"id": number, "text": "\n\n".join(sentences)}) + "\n")
    words = ["chunk", "--corpus", folder / "texts.jsonl", "--held-out", "0.1", "--output", folder / "chunks"]
    assert main([str(word) for word in words]) == 0
    words = ["train-tokenizer", "--chunks", folder / "chunks", "--vocab-size", "900", "--output", folder / "tokenizer"]
    assert main([str(word) for word in words]) == 0
    return folder


def _word(chooser: random.Random) -> str:
    return "".join(chooser.choice("bdfgklmnprstvz") + chooser.choice("aeiou") for _ in range(chooser.randint(2, 4)))


@pytest.fixture(scope="session")
def data(corpus: Path) -> "ContextData":
    from ctxsim_hf.context_models.context_data import ContextData
    from ctxsim_hf.context_models.discriminator.training import DiscriminatorArguments

    return ContextData.open(
        DiscriminatorArguments(
            output="unused", chunks=str(corpus / "chunks"), tokenizer=str(corpus / "tokenizer"), preset="tiny"
        )
    )
