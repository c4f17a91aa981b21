"""Origin: fit scores a second, what caches and batches are worth, whitening, and how time grows with contexts.

python -m benchmarks.bench_origin [--origin DIR]        (default: hardly trained models of the demo corpus)
"""

import argparse
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ctxsim_hf
from benchmarks.demo_data import chunks_and_tokenizer
from benchmarks.measuring import best, timed
from benchmarks.report import report
from ctxsim_hf.context_models.light.scoring import LightContextModel
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.seq2seq.configuration import ContextGeneratorConfig
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.context_models.seq2seq.scoring import Seq2SeqContextModel
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.origin.comparison import comparable, cosine
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.presets import preset_sizes

GENERATORS_ALONE = ScoreWeights(discriminative=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origin", help="folder made by ctxsim index with a light generator")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each measurement of whole similarities")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.origin) if args.origin else demo_origin(Path(scratch))
        rows: list[dict[str, Any]] = []
        details: dict[str, Any] = {}
        rows += light_scores(folder, details)
        rows.append(seq2seq_scores(folder, details))
        rows.append(against_no_caches(folder, details))
        whitening(details)
        growth(folder, args.pairs, details)
    report("origin", rows, details)
    for name, value in details.items():
        print(f"{name}: {value}")


def demo_origin(scratch: Path) -> Path:
    chunks, tokenizer = chunks_and_tokenizer(argparse.Namespace(chunks=None, tokenizer=None), scratch)
    for kind in ("discriminator", "light"):
        ctxsim_hf.train_context_model(kind, chunks=chunks, tokenizer=tokenizer, max_steps=2, output=scratch / kind)
    models = {"discriminator": scratch / "discriminator", "generator": scratch / "light"}
    ctxsim_hf.build_index(chunks, **models, output=scratch / "origin")
    return scratch / "origin"


def some_sentences(origin: OriginSimilarity, number: int, seed: int = 0) -> list[str]:
    lengths = origin.index.chunks.lengths
    ordinary = np.flatnonzero((lengths >= 5) & (lengths <= 40))
    return origin.index.texts(np.random.default_rng(seed).choice(ordinary, number))


def some_contexts(origin: OriginSimilarity, number: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(0, origin.index.num_contexts, number)
    return origin.index.chunks.contexts_at(np.sort(rows))


def light_scores(folder: Path, details: dict[str, Any]) -> list[dict[str, Any]]:
    """All three questions of the light generator, sentences and contexts new to it, tokens to scores."""
    origin = OriginSimilarity.from_pretrained(folder, weights=GENERATORS_ALONE)
    sentences, contexts = some_sentences(origin, 256), some_contexts(origin, 2000)

    def score() -> Any:
        return origin.contexts.scorer.score(sentences, origin.index.contexts(contexts))

    speed = len(sentences) * len(contexts) / best(score)
    details["light fit scores a second, three generator terms"] = speed
    return [{"measure": "light fit scores a second, in millions", "ratio": speed / 1e6, "wanted": ">= 1"}]


def against_no_caches(folder: Path, details: dict[str, Any]) -> dict[str, Any]:
    """The scores of a pair and its background, against a version that computes every score from tokens alone."""
    origin = OriginSimilarity.from_pretrained(folder, weights=GENERATORS_ALONE)
    sentences, contexts = some_sentences(origin, 258), some_contexts(origin, 200)
    scorer, nothing_stored = origin.contexts.scorer, replace(origin.index, stored={})
    with_caches = best(lambda: scorer.score(sentences, origin.index.contexts(contexts))) / (258 * 200)

    def one_score(row: int) -> Any:
        return scorer.score(sentences[row : row + 1], nothing_stored.contexts(contexts[row : row + 1]))

    without = best(lambda: [one_score(row) for row in range(20)]) / 20
    details["light, microseconds a score"] = {"with caches": 1e6 * with_caches, "without": 1e6 * without}
    return {"measure": "light: with caches over without", "ratio": without / with_caches, "wanted": ">= 100"}


def seq2seq_scores(folder: Path, details: dict[str, Any]) -> dict[str, Any]:
    """The preset small, untrained: one forward for each sentence, context and question, against our batches."""
    origin = OriginSimilarity.from_pretrained(folder)
    light = next(model for model in origin.models.values() if isinstance(model, LightContextModel))
    model = small_model(light.model.config.max_sentence_tokens, len(light.tokenizer))
    scorer = ContextScorer({"seq2seq": Seq2SeqContextModel(model, light.tokenizer)}, GENERATORS_ALONE)
    sentences, contexts = some_sentences(origin, 8), some_contexts(origin, 20)
    single = [origin.index.contexts(contexts[column : column + 1]) for column in range(len(contexts))]

    def one_by_one() -> np.ndarray:
        return np.array([[scorer.score([sentence], context)[0, 0] for context in single] for sentence in sentences])

    def together() -> np.ndarray:
        return scorer.score(sentences, origin.index.contexts(contexts))

    difference = float(np.abs(one_by_one() - together()).max())
    slow, fast = best(one_by_one, 2), best(together, 3)
    details["seq2seq (small), fit scores a second"] = {"one by one": 160 / slow, "ours": 160 / fast}
    details["seq2seq, largest difference of a score"] = difference
    return {"measure": "seq2seq: batches over one forward each", "ratio": slow / fast, "wanted": ">= 2.5"}


def small_model(max_sentence_tokens: int, vocab_size: int) -> ContextGeneratorModel:
    sizes = preset_sizes("small", "generator")
    torch.manual_seed(0)
    return ContextGeneratorModel(
        ContextGeneratorConfig(
            vocab_size=vocab_size,
            d_model=sizes["hidden_size"],
            encoder_layers=sizes["layers"],
            decoder_layers=sizes["layers"],
            encoder_attention_heads=sizes["heads"],
            decoder_attention_heads=sizes["heads"],
            encoder_ffn_dim=sizes["ffn_size"],
            decoder_ffn_dim=sizes["ffn_size"],
            max_position_embeddings=len(DIRECTIONS) * (max_sentence_tokens + 1) + 1,
            max_sentence_tokens=max_sentence_tokens,
            direction="all",
            max_sentences=3,
        )
    )


def whitening(details: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    found = {}
    for contexts in (40, 200, 1000):
        scores, background = rng.normal(size=(2, contexts)), rng.normal(size=(256, contexts))
        seconds = best(lambda s=scores, b=background: cosine(*comparable("whitened", s, b)))  # type: ignore[misc]
        found[contexts] = 1e3 * seconds
    details["whitening, milliseconds a pair at background 256, by contexts of both sentences"] = found


def growth(folder: Path, pairs: int, details: dict[str, Any]) -> None:
    """Whole similarities of sentences not seen before."""
    found = {}
    for number in (20, 100, 500):
        origin = OriginSimilarity.from_pretrained(folder, num_contexts=number, screen_chunks=max(500, 5 * number))
        sentences = some_sentences(origin, 2 * pairs, seed=number)
        origin.similarity(sentences[:1], sentences[:1])
        _, seconds = timed(partial(origin.similarity, sentences[:pairs], sentences[pairs:]))
        found[number] = 1e3 * seconds / pairs
    details["milliseconds a pair of new sentences, by contexts of one sentence"] = found


if __name__ == "__main__":
    main()
