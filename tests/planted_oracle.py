"""A context model that nobody trained: it knows which words of the planted corpus belong to which meaning. It lives
outside the package, and comes into it by `register_context_model` or by an entry point."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from planted import PlantedCorpus

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts

MODEL_TYPE = "planted_oracle"


class PlantedOracle(ContextModel):
    terms = ("left", "right")
    width = 1
    stores = True

    def __init__(self, meanings: dict[str, int]) -> None:
        self.meanings = meanings  # word -> meaning

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        return cls(json.loads((folder / "config.json").read_text())["meanings"])

    def prepare_sentences(self, sentences: Sequence[str]) -> np.ndarray:
        return np.array([self._meaning(sentence) for sentence in sentences], dtype=np.int8)

    def prepare_contexts(self, contexts: Contexts) -> np.ndarray:
        if "meanings" in contexts.stored:
            return contexts.stored["meanings"]
        sides = [[self._meaning(" ".join(side)) for side in both] for both in contexts.texts(self.width)]
        return np.array(sides, dtype=np.int8).reshape(-1, 2)

    def score(self, term: str, sentences: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        return np.where(sentences[:, None] == contexts[:, self.terms.index(term)], -1.0, -5.0)

    def stored(self, contexts: Contexts) -> dict[str, np.ndarray]:
        return {"meanings": self.prepare_contexts(contexts), "process": np.full(len(contexts), os.getpid())}

    def _meaning(self, text: str) -> int:
        found = Counter(self.meanings[word] for word in text.lower().rstrip(".").split() if word in self.meanings)
        return max(found, key=found.__getitem__, default=-1)


def save_oracle(corpus: PlantedCorpus, folder: Path) -> Path:
    words = zip(corpus.names, corpus.surroundings, strict=True)
    meanings = {
        word: number for number, (names, around) in enumerate(words) for word in (*names[0], *names[1], *around)
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE, "meanings": meanings}))
    return folder
