"""The TF-IDF index beside scikit-learn and bm25s: building, opening, screening, memory, growth with the corpus.

    python -m benchmarks.bench_index [--chunks DIR] [--size 1000000]        (default: the demo corpus)

Chunks are made by joining the first half of one chunk of a corpus to the second half of another, to any number. All
three are built on `--peer-size` chunks, where scikit-learn's cosines are the truth. At `--size`, where building the
peers would take most of the run, their kernels get our weights, of the terms of the sentences alone; what a user of
theirs would wait for besides (making vectors of the sentences, double precision) is not counted.
"""

import argparse
import multiprocessing
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

from benchmarks.demo_data import Chunks, add_chunks_flag, draw_sentences, find_chunks, read_sentences, resampled
from benchmarks.measuring import timed
from benchmarks.report import report
from ctxsim_hf.origin.tfidf_index import Found, TfidfIndex, Vectors
from ctxsim_hf.text.word_ngrams import NgramKeys

SENTENCES_PER_PRODUCT = 10  # a product holds every chunk that shares a stop word, which is nearly all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_chunks_flag(parser)
    parser.add_argument("--size", type=int, default=1_000_000, help="chunks to screen")
    parser.add_argument("--peer-size", type=int, default=100_000, help="chunks on which all three are built")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences to screen for")
    parser.add_argument("--k", type=int, default=20_000, help="chunks to find for each sentence")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each screening; the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        corpus = read_sentences(find_chunks(args.chunks, place))
        sentences = draw_sentences(corpus, args.sentences, random.Random(0))
        rows, details = build_beside_peers(corpus, sentences[:100], args, place)
        sizes = [args.size // 100, args.size // 10, args.size]
        for size in sizes:
            _, building = timed(partial(TfidfIndex.build, resampled(corpus, size), place / f"{size}"))
            details[f"{size} chunks"] = {"build seconds": building}
            details[f"{size} chunks"] |= in_another_process(measure_query, place / f"{size}", sentences, args.k)
            show(f"{size} chunks: {details[f'{size} chunks']}")
        more_rows, more_details = screen_beside_peers(TfidfIndex.open(place / f"{args.size}"), sentences, args)
    growth = details[f"{args.size} chunks"]["seconds"] / details[f"{sizes[1]} chunks"]["seconds"]
    opening = details[f"{args.size} chunks"]["open seconds"]
    rows += more_rows
    rows.append({"measure": "10 times the chunks, screening time", "ratio": growth, "wanted": "<= 12"})
    rows.append({"measure": f"seconds to open {args.size} chunks", "ratio": opening, "wanted": "< 1"})
    report("index", rows, details | more_details)


def show(line: str) -> None:
    print(line, flush=True)


def terms_of(chunk: Sequence[str]) -> list[str]:
    words = [re.findall(r"\w+", sentence.lower()) for sentence in chunk]
    return [word for row in words for word in row] + [f"{a} {b}" for row in words for a, b in pairwise(row)]


def build_beside_peers(
    corpus: Chunks, sentences: Sequence[str], args: argparse.Namespace, place: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Build all three on the same chunks; scikit-learn's cosines say whether we find the right ones."""
    chunks = list(resampled(corpus, args.peer_size))
    seconds = {}
    index, seconds["ours"] = timed(lambda: TfidfIndex.build(chunks, place / "beside_peers"))
    cosines, seconds["scikit-learn"] = build_scikit_learn(chunks, sentences)
    _, seconds["bm25s"] = timed(lambda: build_bm25s(chunks))
    show(f"building {args.peer_size} chunks: {seconds}")
    k = args.peer_size // 50
    right = share_of_best((cosines[[i]].toarray()[0] for i in range(len(sentences))), index.search(sentences, k), k)
    rows = [
        {"measure": f"{peer} over ours, time to build", "ratio": seconds[peer] / seconds["ours"], "wanted": ">= 1"}
        for peer in ("scikit-learn", "bm25s")
    ]
    rows.append({"measure": "share of scikit-learn's top chunks found", "ratio": right, "wanted": "1.00"})
    return rows, {f"seconds to build {args.peer_size} chunks": seconds}


def build_scikit_learn(chunks: Chunks, sentences: Sequence[str]) -> tuple[sp.csr_array, float]:
    """Cosines (sentences, chunks), and the seconds to fit."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=terms_of, sublinear_tf=True)
    matrix, seconds = timed(lambda: vectorizer.fit_transform(chunks))
    return (vectorizer.transform([[sentence] for sentence in sentences]) @ matrix.T).tocsr(), seconds


def build_bm25s(chunks: Chunks) -> None:
    import bm25s

    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms_of(chunk)] for chunk in chunks]
    bm25s.BM25(backend="numba").index((ids, vocabulary), show_progress=False)


def screen_beside_peers(
    index: TfidfIndex, sentences: Sequence[str], args: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    vectors = index._vectors(sentences, NgramKeys(index.ngrams))
    queries, postings = as_matrices(index, vectors)
    k = min(args.k, index.num_chunks)
    retriever = bm25s_retriever(postings)
    ids = [row.indices.tolist() for row in queries]
    contenders: dict[str, Callable[[], Any]] = {
        "ours": lambda: exhaust(index.search(sentences, k)),
        "ours, 2 threads": lambda: exhaust(index.search(sentences, k, threads=2)),
        "scikit-learn": lambda: exhaust(sparse_product(queries, postings, k)),
        "bm25s": lambda: retriever.retrieve(ids, k=k, show_progress=False, n_threads=1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(args.repeat):  # in turn, so that a slow minute of the machine hits all
        for name, run in contenders.items():
            seconds[name].append(timed(run)[1])
            show(f"screening {index.num_chunks} chunks, {name}: {seconds[name][-1]:.1f} s")
    best = {name: min(times) for name, times in seconds.items()}
    few = slice(0, 50)
    exact_queries, exact_postings = (
        m.astype(np.float64) for m in as_matrices(index, vectors.part(few.start, few.stop))
    )
    truth = ((exact_queries[[i]] @ exact_postings).toarray()[0] for i in range(exact_queries.shape[0]))
    right = share_of_best(truth, index.search(sentences[few], k), k)
    ratios = [
        ("scikit-learn's product and top k over ours, time", best["scikit-learn"] / best["ours"], ">= 5"),
        ("bm25s (numba) over ours, time", best["bm25s"] / best["ours"], ">= 1"),
        ("1 thread over 2, time", best["ours"] / best["ours, 2 threads"], ">= 1.3"),
        ("share of brute force's top chunks found", right, "1.00"),
    ]
    rows = [{"measure": measure, "ratio": ratio, "wanted": wanted} for measure, ratio, wanted in ratios]
    return rows, {f"seconds to screen {index.num_chunks} chunks": seconds}


def as_matrices(index: TfidfIndex, vectors: Vectors) -> tuple[sp.csr_array, sp.csr_array]:
    """Sentences by terms and terms by chunks, of the terms in these sentences."""
    (segment,), (places,) = index.segments, vectors.places
    terms = np.unique(places)
    slices = [slice(segment.starts[term], segment.starts[term + 1]) for term in terms.tolist()]
    chunks = [segment.chunks[place] for place in slices]
    norms = index.weights.inverse_norms
    weights = [segment.weights[place] * norms[held] for place, held in zip(slices, chunks, strict=True)]
    shape = (len(terms), index.num_chunks)
    postings = sp.csr_array((np.concatenate(weights), np.concatenate(chunks), starts(chunks)), shape=shape)
    columns, shape = np.searchsorted(terms, places), (len(vectors.norms), len(terms))
    queries = sp.csr_array((vectors.factors, (vectors.sentence_of, columns)), shape=shape)
    return queries, postings


def starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int32)


def sparse_product(queries: sp.csr_array, postings: sp.csr_array, k: int) -> Iterator[Found]:
    """As one does with TfidfVectorizer, but its matrix is turned beforehand, and in single precision."""
    for start in range(0, queries.shape[0], SENTENCES_PER_PRODUCT):
        product = queries[start : start + SENTENCES_PER_PRODUCT] @ postings
        for first, last in pairwise(product.indptr):
            scores = product.data[first:last]
            best = np.argpartition(scores, -k)[-k:] if k < len(scores) else np.arange(len(scores))
            best = best[np.argsort(-scores[best])]
            yield product.indices[first:last][best], scores[best]


def bm25s_retriever(postings: sp.csr_array) -> Any:
    import bm25s

    retriever = bm25s.BM25(backend="numba")
    retriever.index(([[0], [1]], {"a": 0, "b": 1}), show_progress=False)
    retriever.scores = {
        "data": postings.data,
        "indices": postings.indices,
        "indptr": postings.indptr,
        "num_docs": postings.shape[1],
    }
    retriever.unique_token_ids_set = set(range(postings.shape[0]))
    retriever.retrieve([[0]], k=1, show_progress=False, n_threads=1)  # compile
    return retriever


def share_of_best(truth: Iterator[np.ndarray], found: Iterator[Found], k: int) -> float:
    """Share of found chunks that are among the true k best, or as good as the last of these to single precision."""
    shares = []
    for scores, (chunks, _) in zip(truth, found, strict=True):
        expected = min(k, np.count_nonzero(scores))
        cut = np.sort(scores)[len(scores) - expected] * (1 - 1e-6)
        shares.append(np.count_nonzero(scores[chunks] >= cut) / max(1, expected))
    return float(np.mean(shares))


def measure_query(folder: Path, sentences: Sequence[str], k: int) -> dict[str, float]:
    """What a process that opens an index and screens sees; pages of mapped files can be given back, others not."""
    bare = memory()
    index, opening = timed(lambda: TfidfIndex.open(folder))
    exhaust(index.search(sentences, k))  # reads the files into memory
    _, seconds = timed(lambda: exhaust(index.search(sentences, k)))
    used = {f"{kind} MB more than before": mb - bare[kind] for kind, mb in memory().items()}
    index_mb = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return {"open seconds": opening, "seconds": seconds, "index MB": index_mb} | used


def memory() -> dict[str, float]:
    process = psutil.Process()
    anonymous = sum(part.anonymous for part in process.memory_maps())
    return {
        "resident": process.memory_info().rss / 1e6,
        "proportional": process.memory_full_info().pss / 1e6,
        "anonymous": anonymous / 1e6,
    }


def in_another_process(function: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def exhaust(found: Iterator[Found]) -> None:
    for _ in found:
        pass


if __name__ == "__main__":
    main()
