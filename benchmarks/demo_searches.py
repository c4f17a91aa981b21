"""Ten searches in the documents of `make demo`: the first hit of each system, for a reader to judge.

    python -m benchmarks.demo_searches --adapted demo --encoder FOLDER

The queries were written before anything was searched. BM25 ranks sentences, and whole documents, of which it shows the
best sentence; the surrogate and another encoder search as `ctxsim search` does, with words and without.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ctxsim_hf import DocumentIndex, SentenceEncoder
from ctxsim_hf.evaluation.bm25 import bm25_vectors
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.surrogate.document_file import DocumentFile

QUERIES = [
    "create a temporary file that is removed afterwards",
    "convert a string to lower case",
    "choose a random element from a list",
    "measure how long a piece of code takes to run",
    "download a file from the internet",
    "send an e-mail message",
    "run another program and read its output",
    "pack a folder into a zip archive",
    "solve a system of linear equations",
    "remove duplicate values from an array",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapted", required=True, help="folder that make demo left")
    parser.add_argument("--encoder", help="folder of another encoder to search with")
    args = parser.parse_args()
    folder = AdaptedFolder.find(args.adapted)
    documents = DocumentFile(folder.place("documentation.jsonl"), "text")
    found = dict(bm25(documents)) | dict(search("surrogate", DocumentIndex(folder.place("documents"))))
    if args.encoder:
        with tempfile.TemporaryDirectory() as scratch:
            index = DocumentIndex(Path(scratch, "index"), SentenceEncoder.from_pretrained(args.encoder))
            index.add(documents)
            found |= dict(search("encoder", index))
    for number, query in enumerate(QUERIES):
        print(f"\n? {query}", *(f"{name:20} {hits[number]}" for name, hits in found.items()), sep="\n")


def search(name: str, index: DocumentIndex) -> Iterator[tuple[str, list[str]]]:
    for system, fuse in ((name, False), (f"{name} and BM25", True)):
        yield system, [f"{hit.title}: {hit.sentence}" for (hit,) in index.search(QUERIES, 1, fuse)]


def bm25(documents: DocumentFile) -> Iterator[tuple[str, list[str]]]:
    split = [document.sentences("en") for document in documents]
    sentences = [sentence for found in split for sentence in found]
    yield "BM25, sentences", [sentences[place] for place in _scores(sentences).argmax(1)]
    best = [split[place] for place in _scores([" ".join(found) for found in split]).argmax(1)]
    hits = [found[_scores(found)[number].argmax()] for number, found in enumerate(best)]
    yield "BM25, documents", [f"{found[0]}: {hit}" for found, hit in zip(best, hits, strict=True)]


def _scores(texts: list[str]) -> np.ndarray:
    asked, held = bm25_vectors(QUERIES, texts)
    return np.asarray((asked @ held.T).toarray())


if __name__ == "__main__":
    main()
