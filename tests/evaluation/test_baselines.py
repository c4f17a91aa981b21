"""Baselines: words counted in chunks and in documents."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text

from ctxsim_hf import read_chunks
from ctxsim_hf.corpus.lexical import TfidfCosine
from ctxsim_hf.errors import UserError
from ctxsim_hf.evaluation.baselines import BASELINES, tfidf

Run = Callable[..., tuple[int, str, str]]


def test_tfidf_from_documents_counts_every_sentence(data_root: Path) -> None:
    weighed = tfidf(None, str(data_root))
    sentences = ["A cat sleeps.", "A dog barks.", "A bird sings.", "It rained.", "The sea was red.", "The end."]
    by_hand = TfidfCosine.from_sentences(sentences)
    assert weighed.num_sentences == 6
    assert weighed.keys.tolist() == by_hand.keys.tolist()
    assert weighed.df.tolist() == by_hand.df.tolist()


def test_tfidf_from_chunks_leaves_held_out_documents_alone(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(make_text(5, number))
    chunks = tmp_path / "chunks"
    words = ("chunk", "--corpus", *tmp_path.glob("*.txt"), "--output", chunks, "--held-out", "0.3")
    assert ctxsim(*words)[0] == 0
    assert len(read_chunks(chunks, "held_out")) > 0
    by_hand = TfidfCosine.from_sentences(s for row in read_chunks(chunks, "train") for s in row["sentences"])
    weighed = tfidf(str(chunks), str(data_root))  # chunks come first
    assert (weighed.num_sentences, weighed.keys.tolist()) == (by_hand.num_sentences, by_hand.keys.tolist())


def test_tfidf_needs_text(tmp_path: Path, data_root: Path) -> None:
    for root in (None, str(tmp_path / "nowhere")):
        with pytest.raises(UserError, match="with --chunks, or a --data-root"):
            BASELINES["tfidf"](None, root)
    with pytest.raises(UserError, match="made by `ctxsim chunk`"):
        BASELINES["tfidf"](str(tmp_path), None)
    (data_root / "corpora/two/train.jsonl").write_text('{"id": 1}')
    with pytest.raises(UserError, match="line 1: expected a column 'text'"):
        BASELINES["tfidf"](None, str(data_root))
