"""Words counted in chunks and in documents, and kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text

from ctxsim_hf import read_chunks
from ctxsim_hf.evaluation import word_counts
from ctxsim_hf.evaluation.word_counts import count_corpus
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lexical import TfidfCosine

Run = Callable[..., tuple[int, str, str]]


def test_from_documents_counts_every_sentence(data_root: Path) -> None:
    weighed = count_corpus(None, str(data_root))
    sentences = ["A cat sleeps.", "A dog barks.", "A bird sings.", "It rained.", "The sea was red.", "The end."]
    by_hand = TfidfCosine.from_sentences(sentences)
    assert weighed.num_sentences == 6
    assert weighed.words.keys.tolist() == by_hand.words.keys.tolist()
    assert weighed.words.counts.tolist() == by_hand.words.counts.tolist()


def test_from_chunks_leaves_held_out_documents_alone(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(make_text(5, number))
    chunks = tmp_path / "chunks"
    words = ("chunk", "--corpus", *tmp_path.glob("*.txt"), "--output", chunks, "--held-out", "0.3")
    assert ctxsim(*words)[0] == 0
    assert len(read_chunks(chunks, "held_out")) > 0
    by_hand = TfidfCosine.from_sentences(s for row in read_chunks(chunks, "train") for s in row["sentences"])
    weighed = count_corpus(str(chunks), str(data_root))  # chunks come first
    assert (weighed.num_sentences, weighed.words.keys.tolist()) == (by_hand.num_sentences, by_hand.words.keys.tolist())


def test_needs_text(tmp_path: Path, data_root: Path) -> None:
    for root in (None, str(tmp_path / "nowhere")):
        with pytest.raises(UserError, match="with --chunks, or a --data-root"):
            count_corpus(None, root)
    with pytest.raises(UserError, match="made by `ctxsim chunk`"):
        count_corpus(str(tmp_path), None)
    (data_root / "corpora/two/train.jsonl").write_text('{"id": 1}')
    with pytest.raises(UserError, match="line 1: expected a column 'text'"):
        count_corpus(None, str(data_root))


def test_what_was_counted_is_kept(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = count_corpus(None, data_root)
    monkeypatch.setattr(word_counts, "_count_documents", pytest.fail)
    assert count_corpus(None, data_root).words.counts.tolist() == first.words.counts.tolist()
    monkeypatch.undo()
    (data_root / "corpora/two/train.jsonl").write_text('{"id": 1, "text": "Other words stand here now."}')
    assert count_corpus(None, data_root).num_sentences == 4


def test_workers_count_alike(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = [
        word_counts.Corpus(str(folder), word_counts.Columns(), 1000) for folder in (data_root / "corpora").glob("*")
    ]
    whole = word_counts._count_documents(corpora)
    monkeypatch.setattr(word_counts, "CHARS_PER_BATCH", 1)  # a batch for each document
    parts = word_counts._count_documents(corpora)
    assert (parts.words.keys.tolist(), parts.words.counts.tolist()) == (
        whole.words.keys.tolist(),
        whole.words.counts.tolist(),
    )
