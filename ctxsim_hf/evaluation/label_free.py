"""Turn held-out documents into tasks that need no labels: the yardstick first, then simpler questions.

Sentences close to each other are about the same thing more often than sentences of different documents. `adjacent` and
`document` ask for just that, which is a question of topic; people ask whether two sentences say the same, and the
yardstick agrees with them better: see yardstick.py.
"""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.evaluation import yardstick
from ctxsim_hf.evaluation.examples import PairExamples, Triplets
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.words import words

SPLIT = "held_out"
ADJACENT, DOCUMENT = "adjacent", "document"
MEANINGS = yardstick.MEANINGS | {
    ADJACENT: "the next sentence against one of another document",
    DOCUMENT: "a sentence 2 to 10 places later against one of another document",
}
NUM_TRIPLETS = 2000
MAX_DISTANCE = 10  # places from an anchor to a sentence that counts as near
MIN_WORDS = 4  # shorter sentences say too little to be told apart


def label_free_tasks(chunks: str, number: int = NUM_TRIPLETS, seed: int = 0) -> list[PairExamples]:
    """Return the yardstick, the questions it is made of, and two tasks whose negatives are random sentences of another
    document. The positive of `adjacent` is the next sentence, that of `document` a sentence 2 to 10 places later.

    Args:
        chunks (`str`): Folder made by `ctxsim chunk`; its held-out documents are read.
        number (`int`): Number of triplets of each task, or of related pairs of each question.
        seed (`int`): Random seed of the choice.
    """
    documents = held_out_documents(chunks)
    generator = np.random.default_rng(seed)
    measured = yardstick.yardstick(documents, SPLIT, number, seed)
    return [
        measured,
        *measured.questions,
        _draw(documents, ADJACENT, (1, 1), number, generator, chunks),
        _draw(documents, DOCUMENT, (2, MAX_DISTANCE), number, generator, chunks),
    ]


def held_out_documents(folder: str) -> list[list[str]]:
    """Return the sentences of each document in order; between chunks a few may be missing."""
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
    """Draw triplets whose anchors are spread evenly over sentences, not over documents."""
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
