"""The TF-IDF index: weights worked out by hand, by brute force and by scikit-learn; ties, odd text, damaged files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from made_up import make_text

from ctxsim_hf.origin.tfidf_build import build_segment
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.origin.tfidf_merge import merge_tfidf
from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.origin.tfidf_weights import TfidfWeights
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.word_ngrams import NgramKeys, mix

Chunks = list[list[str]]
ODD = ["", "   ", "...", "😀😀", "❤\ufe0f", "\0", "\ud800", "\n\t"]  # no words in them
POSTINGS_ONLY, ROWS_ONLY = 2.0, 0.0  # shares of chunks from which a term is kept as a row


def made_up_chunks(number: int, seed: int = 0) -> Chunks:
    sentences = [s + "." for s in make_text(number * 3, seed).replace("\n\n", " ").split(".")[: number * 3]]
    return [sentences[start : start + 3] for start in range(0, len(sentences), 3)]


def terms_of(sentences: list[str], ngrams: str = "uni+bigrams") -> list[str]:
    words = [re.findall(r"\w+", sentence.lower()) for sentence in sentences]
    bigrams = [f"{first} {second}" for row in words for first, second in pairwise(row)]
    return bigrams if ngrams == "bigrams" else [word for row in words for word in row] + bigrams


def brute_force(chunks: Chunks, sentences: list[str], ngrams: str) -> np.ndarray:
    """All cosines (sentences, chunks), term by term."""
    counted = [Counter(terms_of(chunk, ngrams)) for chunk in chunks]
    df = Counter(term for counts in counted for term in counts)

    def vector(counts: Counter[str]) -> dict[str, float]:
        weights = {t: (1 + log(n)) * (1 + log((1 + len(chunks)) / (1 + df[t]))) for t, n in counts.items() if t in df}
        norm = sqrt(sum(weight**2 for weight in weights.values()))
        return {term: weight / norm for term, weight in weights.items()}

    vectors = [vector(counts) for counts in counted]
    queries = [vector(Counter(terms_of([sentence], ngrams))) for sentence in sentences]
    return np.array([[sum(w * v.get(t, 0) for t, w in query.items()) for v in vectors] for query in queries])


def assert_best(found: tuple[np.ndarray, np.ndarray], truth: np.ndarray, k: int) -> None:
    chunks, scores = found
    assert chunks.dtype == np.int32 and scores.dtype == np.float32
    assert len(chunks) == min(k, (truth > 0).sum()) and len(set(chunks.tolist())) == len(chunks)
    assert list(zip(-scores, chunks, strict=True)) == sorted(zip(-scores, chunks, strict=True))
    np.testing.assert_allclose(scores, truth[chunks], rtol=1e-5)
    np.testing.assert_allclose(scores, np.sort(truth)[::-1][: len(chunks)], rtol=1e-5)  # none better was left out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    TfidfIndex.build(made_up_chunks(40), tmp_path / "small")
    return tmp_path / "small"


@pytest.mark.parametrize("row_share", [POSTINGS_ONLY, 0.5, ROWS_ONLY])
def test_worked_example(tmp_path: Path, row_share: float) -> None:
    chunks = [["The cat sat."], ["The dog SAT,", "the end"], ["A cat!"]]
    index = TfidfIndex.build(iter(chunks), tmp_path / "index", row_share=row_share)
    # Twice: the, cat, sat. Once: the_cat, cat_sat; dog, end, the_dog, dog_sat, the_end (but no sat_the); a, a_cat.
    twice, once = 1 + log(4 / 3), 1 + log(4 / 2)
    norms = [
        sqrt(3 * twice**2 + 2 * once**2),
        sqrt(((1 + log(2)) * twice) ** 2 + twice**2 + 5 * once**2),
        sqrt(twice**2 + 2 * once**2),
    ]
    query = sqrt(2 * twice**2 + once**2)
    ((found, scores),) = index.search(["the CAT, unheard of"], 10)
    assert found.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx(
        [query / norms[0], twice * (1 + log(2)) * twice / (query * norms[1]), twice * twice / (query * norms[2])]
    )
    assert index.num_chunks == 3 and len(index.segments[0].keys) == 12
    assert len(index.segments[0].row_terms) == {POSTINGS_ONLY: 0, 0.5: 3, ROWS_ONLY: 12}[row_share]


@pytest.mark.parametrize("ngrams", ["uni+bigrams", "bigrams"])
@pytest.mark.parametrize("row_share", [POSTINGS_ONLY, 1 / 8, ROWS_ONLY])
def test_brute_force_finds_the_same(tmp_path: Path, ngrams: str, row_share: float) -> None:
    chunks = made_up_chunks(700)
    sentences = [chunk[1] for chunk in chunks[::70]] + [" ".join(chunks[5]), "terminating terminating", "Unheard of."]
    index = TfidfIndex.build(chunks, tmp_path / "index", ngrams, row_share=row_share)
    truth = brute_force(chunks, sentences, ngrams)
    for k in (1, 20, 250, 10_000):
        for row, found in zip(truth, index.search(sentences, k), strict=True):
            assert_best(found, row, k)
    assert not truth[-1].any() and (truth > 0).any(axis=1).sum() >= len(sentences) - 2


def test_scikit_learn_gives_the_same_cosines(tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    chunks = made_up_chunks(100)
    sentences = [chunk[0] for chunk in chunks[:10]]
    vectorizer = TfidfVectorizer(analyzer=terms_of, sublinear_tf=True)
    matrix = vectorizer.fit_transform(chunks)
    cosines = (vectorizer.transform([[sentence] for sentence in sentences]) @ matrix.T).toarray()
    index = TfidfIndex.build(chunks, tmp_path / "index")
    assert len(index.segments[0].keys) == len(vectorizer.vocabulary_)
    for row, found in zip(cosines, index.search(sentences, 30), strict=True):
        assert_best(found, row, 30)


def test_among_equals_the_first_chunks_win(tmp_path: Path) -> None:
    chunks = [["red fox"] if number % 3 else ["grey wolf"] for number in range(1000)]
    index = TfidfIndex.build(chunks, tmp_path / "index")
    foxes = [number for number in range(1000) if number % 3]
    for k in (1, 4, 300, 666, 5000):
        ((found, scores),) = index.search(["the red fox"], k)
        assert found.tolist() == foxes[:k] and scores == pytest.approx(1)


def test_the_best_are_found_where_a_sample_of_chunks_misleads(tmp_path: Path) -> None:
    """Every 64th chunk fits well: to look at these alone tells that many more do."""
    chunks = [["red fox"] if number % 64 == 0 else ["brown fox"] for number in range(6400)]
    index = TfidfIndex.build(chunks, tmp_path / "index")
    ((found, _),) = index.search(["red fox"], 200)
    assert found.tolist() == [*range(0, 6400, 64), *(number for number in range(102) if number % 64)]


@pytest.mark.parametrize("row_share", [POSTINGS_ONLY, ROWS_ONLY])
def test_sentences_without_words_find_nothing(tmp_path: Path, row_share: float) -> None:
    chunks = [*([sentence] for sentence in ODD), ["a\0b 😀", *ODD], [], ["naïve ŽLUŤ", "C"]]
    index = TfidfIndex.build(chunks, tmp_path / "index", row_share=row_share)
    queries = [*ODD, "unknown", "A", "a b", "NAÏVE", "b. C"]
    found = [sorted(found.tolist()) for found, _ in index.search(queries, 5)]
    ab, naive = len(ODD), len(ODD) + 2
    assert found == [[] for _ in ODD] + [[], [ab], [ab], [naive], [ab, naive]]
    wordless = TfidfIndex.build([ODD], tmp_path / "wordless")
    assert [len(found) for found, _ in wordless.search(["a b"], 5)] == [0]
    assert list(index.search([], 5)) == []


def test_a_very_long_sentence(tmp_path: Path) -> None:
    chunks = made_up_chunks(50)
    long = " ".join(sentence for chunk in made_up_chunks(3000) for sentence in chunk)
    index = TfidfIndex.build([*chunks, [long]], tmp_path / "index")
    ((found, scores),) = index.search([long], 3)
    truth = brute_force([*chunks, [long]], [long], "uni+bigrams")[0]
    assert found.tolist() == np.argsort(-truth)[:3].tolist() and found[0] == 50
    assert scores == pytest.approx(truth[found], rel=1e-3)  # single precision, of sums of 40,000 terms


def test_bigrams_alone_need_two_words_of_one_sentence(tmp_path: Path) -> None:
    index = TfidfIndex.build([["red fox", "ran home"], ["fox ran"]], tmp_path / "index", "bigrams")
    assert [found.tolist() for found, _ in index.search(["red", "fox red", "Red fox ran", "fox ran"], 9)] == [
        [],
        [],
        [1, 0],
        [1],
    ]
    assert TfidfIndex.open(tmp_path / "index").ngrams == "bigrams"


def test_the_same_bytes_for_any_size_of_blocks_and_buckets(tmp_path: Path) -> None:
    chunks = made_up_chunks(150)
    TfidfIndex.build(chunks, tmp_path / "large")
    for number, sizes in enumerate(({"chunks_per_block": 1}, {"buckets": 1}, {"chunks_per_block": 7, "buckets": 300})):
        TfidfIndex.build(iter(chunks), tmp_path / f"{number}", **sizes)
        assert contents(tmp_path / f"{number}") == contents(tmp_path / "large")


def test_the_same_bytes_for_any_batch_and_number_of_threads(tmp_path: Path) -> None:
    chunks = made_up_chunks(300)
    sentences = [sentence for chunk in chunks[:40] for sentence in chunk]
    index = TfidfIndex.build(chunks, tmp_path / "index")
    expected = [(found.tobytes(), scores.tobytes()) for found, scores in index.search(sentences, 50)]
    for threads in (1, 2, 5):
        found = [(f.tobytes(), s.tobytes()) for f, s in index.search(sentences, 50, threads)]
        assert found == expected
    backwards = [next(index.search([sentence], 50)) for sentence in reversed(sentences)]
    assert [(found.tobytes(), scores.tobytes()) for found, scores in reversed(backwards)] == expected


def test_what_was_interrupted_leaves_no_index_and_is_made_again(tmp_path: Path) -> None:
    def breaking() -> Iterator[list[str]]:
        yield from made_up_chunks(20, seed=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TfidfIndex.build(breaking(), tmp_path / "index", chunks_per_block=5)
    assert not (tmp_path / "index").exists()
    TfidfIndex.build(made_up_chunks(20), tmp_path / "index")
    TfidfIndex.build(made_up_chunks(20), tmp_path / "undisturbed")
    assert contents(tmp_path / "index") == contents(tmp_path / "undisturbed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "undisturbed"]


def test_keys_tell_terms_apart() -> None:
    keys, sentences = NgramKeys("uni+bigrams")(["A b", "", "b a b"])
    (a, b, ab), (ba) = (keys[number] for number in (0, 1, 2)), keys[5]
    assert keys.tolist() == [a, b, ab, b, a, ba, b, ab] and len({a, b, ab, ba}) == 4
    assert sentences.tolist() == [0, 0, 0, 2, 2, 2, 2, 2]
    numbers = np.arange(1 << 10, dtype=np.uint64)  # far more alike than hashes are
    mixed = mix(np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers)))
    assert len(np.unique(mixed)) == len(mixed)
    assert abs(np.bincount((mixed >> np.uint64(56)).astype(int), minlength=256) / len(mixed) * 256 - 1).max() < 0.1


@pytest.mark.parametrize("word", ["नमस्ते", "cafe\u0301", "می\u200cروم", "snake_case", "x²"])
def test_marks_and_joiners_belong_to_their_words(word: str) -> None:
    keys, _ = NgramKeys("uni+bigrams")([f"{word}, ({word})"])
    assert len(keys) == 3 and keys[0] == keys[1]  # the word, the word again, and the two


def test_forgotten_words_get_the_same_keys() -> None:
    sentences = [sentence for chunk in made_up_chunks(20) for sentence in chunk]
    remembering, forgetting = NgramKeys("bigrams"), NgramKeys("bigrams", max_cached_words=3)
    for sentence in sentences:
        assert forgetting([sentence])[0].tolist() == remembering([sentence])[0].tolist()


@pytest.mark.parametrize("name", ["keys", "starts", "chunks", "weights", "row_terms", "rows", "norms"])
def test_damaged_files_are_refused(small: Path, name: str) -> None:
    path = small / f"{name}.npy"
    whole, array = path.read_bytes(), np.load(path)
    assert array.size > 1
    path.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=rf"{name}\.npy' is damaged"):
        TfidfIndex.open(small)
    path.write_bytes(whole[:20])
    with pytest.raises(UserError, match=rf"{name}\.npy' is damaged"):
        TfidfIndex.open(small)
    np.save(path, array.astype(np.float64))
    with pytest.raises(UserError, match=f"expected {array.dtype}, found float64"):
        TfidfIndex.open(small)
    np.save(path, array[:-1])
    with pytest.raises(UserError, match="expected shape"):
        TfidfIndex.open(small)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=rf"{name}\.npy' is damaged"):
        TfidfIndex.open(small)
    path.unlink()
    with pytest.raises(UserError, match=rf"{name}\.npy' is damaged or missing"):
        TfidfIndex.open(small)
    path.write_bytes(whole)
    assert len(next(TfidfIndex.open(small).search(["terminating"], 3))[0]) == 3


def test_another_format_is_refused(small: Path, tmp_path: Path) -> None:
    about = json.loads((small / "index.json").read_text())
    assert about == {"format": 3, "ngrams": "uni+bigrams", "num_chunks": 40}
    (small / "index.json").write_text(json.dumps(about | {"format": 2}))
    with pytest.raises(UserError, match="index of format 2, expected 3; build the index again"):
        TfidfIndex.open(small)
    for text in ("", "[]", "{}", '{"format": 3}', json.dumps(about | {"num_chunks": "40"})):
        (small / "index.json").write_text(text)
        with pytest.raises(UserError, match="build the index again"):
            TfidfIndex.open(small)
    with pytest.raises(UserError, match=r"nowhere' has no index\.json"):
        TfidfIndex.open(tmp_path / "nowhere")


def test_misuse_is_explained(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"one of uni\+bigrams, bigrams, words, got 'trigrams'"):
        TfidfIndex.build([["a b"]], tmp_path / "index", "trigrams")
    with pytest.raises(UserError, match="no chunk to index"):
        TfidfIndex.build([], tmp_path / "index")
    with pytest.raises(UserError, match="small' exists already"):
        TfidfIndex.build([["a b"]], small)
    with pytest.raises(UserError, match=r"could not write .*: Not a directory"):
        TfidfIndex.build([["a b"]], small / "index.json/index")
    with pytest.raises(UserError, match="k and threads must be at least 1, got 0 and 1"):
        next(TfidfIndex.open(small).search(["a"], 0))


@pytest.mark.parametrize("row_share", [POSTINGS_ONLY, 1 / 8, ROWS_ONLY])
def test_segments_give_the_same_to_the_bit(tmp_path: Path, row_share: float) -> None:
    """However chunks are cut into segments, and with deleted ones among them."""
    chunks = [*made_up_chunks(200), *made_up_chunks(100, seed=1)]
    deleted = np.array([0, 1, 50, 120, 121, 299])
    left = [chunk for number, chunk in enumerate(chunks) if number not in deleted]
    sentences = [chunk[1] for chunk in chunks[::20]] + ["Unheard of.", ""]
    whole = TfidfIndex.build(left, tmp_path / "whole")
    expected = [(found.tolist(), scores.tolist()) for found, scores in whole.search(sentences, 60)]
    edges = [0, 1, 2, 130, 131, 250, 300]
    parts = [chunks[first:last] for first, last in pairwise(edges)]
    for number, part in enumerate(parts):
        build_segment(part, tmp_path / f"{number}", row_share=row_share)
    segments = [TfidfSegment.open(tmp_path / f"{number}") for number in range(len(parts))]
    (tmp_path / "weights").mkdir()
    TfidfWeights.compute(segments, deleted).save(tmp_path / "weights", segments)
    index = TfidfIndex.open(tmp_path / "weights", [tmp_path / f"{number}" for number in range(len(parts))], deleted)
    assert index.num_chunks == len(left)
    assert [(found.tolist(), scores.tolist()) for found, scores in index.search(sentences, 60)] == expected
    truth = brute_force(left, sentences, "uni+bigrams")
    for row, found in zip(truth, index.search(sentences, 60), strict=True):
        assert_best(found, row, 60)


@pytest.mark.parametrize("postings_per_block", [50, 1 << 20])
def test_merging_equals_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postings_per_block: int) -> None:
    """To the byte, although terms that have rows differ from segment to segment."""
    monkeypatch.setattr("ctxsim_hf.origin.tfidf_merge.POSTINGS_PER_BLOCK", postings_per_block)
    chunks, deleted = made_up_chunks(150), np.array([0, 1, 50, 149])
    for number, part in enumerate((chunks[:1], chunks[1:100], chunks[100:])):
        build_segment(part, tmp_path / f"{number}")
    segments = [TfidfSegment.open(tmp_path / f"{number}") for number in range(3)]
    merge_tfidf(tmp_path / "merged", segments, np.zeros(0, np.int64))
    build_segment(chunks, tmp_path / "built")
    assert contents(tmp_path / "merged") == contents(tmp_path / "built")
    merge_tfidf(tmp_path / "merged less", segments, deleted)
    build_segment([chunk for n, chunk in enumerate(chunks) if n not in deleted], tmp_path / "less")
    assert contents(tmp_path / "merged less") == contents(tmp_path / "less")
