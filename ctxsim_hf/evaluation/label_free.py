"""Held-out documents -> triplets, for people with no labels at all.

Sentences that stand near each other are about the same thing more often than sentences of two documents. So a
similarity is the better, in the user's own domain, the more often it finds them more alike.
"""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.evaluation.examples import Triplets
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.words import words

SPLIT = "held_out"
ADJACENT, DOCUMENT = "adjacent", "document"
NUM_TRIPLETS = 2000
MAX_DISTANCE = 10  # sentences between an anchor and another that counts as near
MIN_WORDS = 4  # a shorter sentence says too little to be told from others


def label_free_tasks(chunks: str, number: int = NUM_TRIPLETS, seed: int = 0) -> list[Triplets]:
    """Two tasks, each with a random sentence of another document as the one that is farther.

    `adjacent`: the nearer one is the next sentence. `document`: it is 2 to 10 places after the anchor in its document.

    Args:
        chunks (`str`): Folder made by `ctxsim chunk`; its held-out documents are read.
        number (`int`): Triplets of each task.
        seed (`int`): Of the choice.
    """
    documents = _held_out_documents(chunks)
    generator = np.random.default_rng(seed)
    return [
        _draw(documents, ADJACENT, (1, 1), number, generator, chunks),
        _draw(documents, DOCUMENT, (2, MAX_DISTANCE), number, generator, chunks),
    ]


def _held_out_documents(folder: str) -> list[list[str]]:
    """The sentences of each document in order. Between chunks a few may be missing, which makes near ones a little
    farther."""
    documents: dict[str, list[str]] = {}
    for row in read_chunks(folder, SPLIT):
        documents.setdefault(row["doc_id"], []).extend(row["sentences"])
    if len(documents) < 2:
        raise UserError(
            f"expected two held-out documents or more in {folder!r}, found {len(documents)}; "
            "chunk again with a larger --held-out share"
        )
    return list(documents.values())


def _draw(
    documents: Sequence[list[str]],
    task: str,
    distances: tuple[int, int],
    number: int,
    generator: np.random.Generator,
    folder: str,
) -> Triplets:
    """Anchors evenly among sentences, not among documents."""
    lengths = np.array([len(document) for document in documents])
    rows: list[tuple[str, str, str]] = []
    for _ in range(20 * number):  # most draws are good ones, unless documents are very short
        if len(rows) == number:
            break
        one, other = generator.choice(len(documents), size=2, p=lengths / lengths.sum())
        place, far = int(generator.integers(lengths[one])), int(generator.integers(lengths[other]))
        near = place + int(generator.integers(distances[0], distances[1] + 1))
        if one == other or near >= lengths[one]:
            continue
        triplet = (documents[one][place], documents[one][near], documents[other][far])
        if len(set(triplet)) == 3 and all(len(words(sentence)) >= MIN_WORDS for sentence in triplet):
            rows.append(triplet)
    if not rows:
        raise UserError(f"the held-out documents in {folder!r} are too few or too short for triplets")
    anchors, positives, negatives = map(list, zip(*rows, strict=True))
    return Triplets(task, SPLIT, anchors, positives, negatives)
