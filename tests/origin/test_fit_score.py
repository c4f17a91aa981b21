"""The fit score: Eq. 3 by hand, and each context model against the plainest road to the same number."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import pytest
import torch
from planted import PlantedCorpus

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.discriminator.scoring import DiscriminatorContextModel
from ctxsim_hf.context_models.light.scoring import LightContextModel
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.context_models.seq2seq.scoring import Seq2SeqContextModel
from ctxsim_hf.context_models.seq2seq.windows import GeneratorCollator
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

CONTEXTS = np.array([1, 2, 11, 20, 33, 46])


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    probes = PlantedCorpus().probes(3)
    return [probe.sentence for probe in probes] + [probes[0].near_copy[:12]]


@pytest.fixture(scope="module", params=["origin", "origin-seq2seq"])
def origin(planted: Path, request: pytest.FixtureRequest) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(planted / request.param, weights=ScoreWeights())


CONTEXT = Context("c", 1, ("before",), "gone", ("after",))


class GivenTerms(ContextModel):
    """Terms from a table."""

    width = 1

    def __init__(self, **tables: np.ndarray) -> None:
        self.terms, self.tables = tuple(tables), tables

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        raise NotImplementedError

    def prepare_sentences(self, sentences: Sequence[str]) -> int:
        return len(sentences)

    def prepare_contexts(self, contexts: Contexts) -> int:
        return len(contexts)

    def score(self, term: str, sentences: int, contexts: int) -> np.ndarray:
        assert self.tables[term].shape == (sentences, contexts)
        return self.tables[term]


class Unusable(GivenTerms):
    def prepare_sentences(self, sentences: Sequence[str]) -> int:
        raise AssertionError("nobody should ask")

    def prepare_contexts(self, contexts: Contexts) -> int:
        raise AssertionError("nobody should ask")


def test_eq_3_by_hand() -> None:
    """Two sentences, one context: S = 1 * -0.5 + 2 * -3 + 0.5 * -4 + 1 * -5 for the first."""
    models = {
        "one": GivenTerms(discriminative=np.array([[-0.5], [-0.1]])),
        "other": GivenTerms(
            sentence=np.array([[-3.0], [-1.0]]), left=np.array([[-4.0], [-2.0]]), right=np.array([[-5.0], [-6.0]])
        ),
    }
    scorer = ContextScorer(models, ScoreWeights(1, 2, 0.5, 1))
    np.testing.assert_allclose(scorer.score(["one", "two"], [CONTEXT]), [[-13.5], [-9.1]])


def test_term_without_weight_is_not_computed() -> None:
    models = {"idle": Unusable(discriminative=np.zeros((1, 1))), "asked": GivenTerms(sentence=np.array([[-3.0]]))}
    assert ContextScorer(models, ScoreWeights(0, 1, 0, 0)).score(["one"], [CONTEXT]) == -3
    with pytest.raises(UserError, match="expected at least one term of the fit score"):
        ScoreWeights(0, 0, 0, 0)


def test_every_term_has_one_model() -> None:
    table = np.zeros((1, 1))
    with pytest.raises(
        UserError, match=r"no model answers the term left, right; .* \(there are models for: sentence\)"
    ):
        ContextScorer({"one": GivenTerms(sentence=table)}, ScoreWeights(0, 1, 1, 1))
    with pytest.raises(UserError, match="two context models answer the term 'left': one and other; leave one out"):
        ContextScorer({"one": GivenTerms(left=table, right=table), "other": GivenTerms(sentence=table, left=table)})


def test_default_weights_are_those_of_the_sides() -> None:
    table = np.zeros((1, 1))
    models = {"one": GivenTerms(discriminative=table), "other": GivenTerms(sentence=table, right=table)}
    assert ContextScorer(models).weights == ScoreWeights(0, 0, 0, 1)
    assert ContextScorer({"one": models["one"]}).weights == ScoreWeights(1, 0, 0, 0), "whatever is answered"


def test_score_does_not_depend_on_the_batch(origin: OriginSimilarity, sentences: list[str]) -> None:
    together = origin.contexts.scorer.score(sentences, origin.index.contexts(CONTEXTS))
    for row, sentence in enumerate(sentences):
        for column, context in enumerate(CONTEXTS):
            alone = origin.contexts.scorer.score([sentence], origin.index.contexts(np.array([context])))
            assert alone[0, 0] == pytest.approx(together[row, column], abs=1e-5)
    np.testing.assert_array_equal(together, origin.contexts.scorer.score(sentences, origin.index.contexts(CONTEXTS)))


def test_stored_and_computed_agree(origin: OriginSimilarity, sentences: list[str]) -> None:
    """What the index keeps of a context, what is computed from its tokens, and what from its text."""
    stored = origin.index.contexts(CONTEXTS)
    computed = replace(origin.index, stored={}).contexts(CONTEXTS)
    assert set(origin.index.stored) == {name for name, model in origin.models.items() if model.stores}
    texts = [
        Context(chunk.chunk_id, place, chunk.sentences[:place], "", chunk.sentences[place + 1 :])
        for chunk, place in origin.index.chunk_of(CONTEXTS)
    ]
    scores = [origin.contexts.scorer.score(sentences, contexts) for contexts in (stored, computed, texts)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    np.testing.assert_allclose(scores[1], scores[2], atol=1e-5)


@torch.inference_mode()
def test_discriminative_term_is_the_models_own(origin: OriginSimilarity, sentences: list[str]) -> None:
    found = origin.models["discriminator"]
    assert isinstance(found, DiscriminatorContextModel)
    index, model = origin.index, found.model
    left, right = index.chunks.neighbours(CONTEXTS, 1)
    store = index.chunks.pick(np.concatenate([left[:, 0], right[:, 0]]))
    store = store.followed_by(tokenize_sentences(found.tokenizer, sentences[:1]))
    ids, mask = found.tensors(store, model.device)
    number = len(CONTEXTS)
    places = torch.arange(number)[:, None]
    logits = model(ids, mask, places, torch.full((number,), 2 * number), places + number).logits
    terms = origin.contexts.scorer.terms(
        origin.contexts.scorer.prepare_sentences(sentences[:1]),
        origin.contexts.scorer.prepare_contexts(index.contexts(CONTEXTS)),
    )
    np.testing.assert_allclose(terms["discriminative"][0], -np.log1p(np.exp(-logits.double().numpy())), atol=1e-5)


def test_light_terms_from_the_definition(planted: Path, sentences: list[str]) -> None:
    """Token by token with a plain softmax over the vocabulary."""
    origin = OriginSimilarity.from_pretrained(planted / "origin", weights=ScoreWeights())
    light = origin.models["light_generator"]
    assert isinstance(light, LightContextModel)
    model, eos = light.model, light.tokenizer.eos_token_id
    table = {name: value.double().numpy() for name, value in model.state_dict().items()}
    weights = 1 / (1 + np.exp(-table["token_weight_logits"]))

    def mean(ids: np.ndarray) -> np.ndarray:
        return (weights[ids, None] * table["input_embeddings.weight"][ids]).sum(0) / weights[ids].sum()

    def log_p(target: np.ndarray, source: np.ndarray) -> float:
        logits = table["output_embeddings.weight"] @ source + table["output_bias"]
        return float((logits[target] - np.log(np.exp(logits).sum())).mean())

    def ids(store: TokenizedSentences, number: int) -> np.ndarray:
        return np.append(store.pick(np.array([number])).tokens.astype(np.int64), eos)

    terms = origin.contexts.scorer.terms(
        origin.contexts.scorer.prepare_sentences(sentences),
        origin.contexts.scorer.prepare_contexts(origin.index.contexts(CONTEXTS)),
    )
    said = tokenize_sentences(light.tokenizer, sentences)
    for row in range(len(sentences)):
        sentence = ids(said, row)
        for column, context in enumerate(CONTEXTS):
            left, right = ids(origin.index.chunks, context - 1), ids(origin.index.chunks, context + 1)
            source = table["left_to_sentence.weight"] @ mean(left) + table["right_to_sentence.weight"] @ mean(right)
            assert terms["sentence"][row, column] == pytest.approx(log_p(sentence, source), abs=1e-5)
            for side, target in (("left", left), ("right", right)):
                source = table[f"sentence_to_{side}.weight"] @ mean(sentence)
                assert terms[side][row, column] == pytest.approx(log_p(target, source), abs=1e-5)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.inference_mode()
def test_seq2seq_terms_are_those_of_training(planted: Path, attention: str) -> None:
    """The corpus's own sentences in their own contexts, through the collator that training uses, one at a time."""
    origin = OriginSimilarity.from_pretrained(planted / "origin-seq2seq", weights=ScoreWeights())
    fast = origin.models["generator"]
    assert isinstance(fast, Seq2SeqContextModel)
    model = ContextGeneratorModel.from_pretrained(planted / "seq2seq", attn_implementation=attention)
    model.eval()
    collate = GeneratorCollator(
        origin.index.chunks, 1, model.config.max_sentence_tokens, fast.special, one_model_for_all=True
    )
    own = origin.index.texts(CONTEXTS)
    terms = origin.contexts.scorer.terms(
        origin.contexts.scorer.prepare_sentences(own),
        origin.contexts.scorer.prepare_contexts(origin.index.contexts(CONTEXTS)),
    )
    for place, context in enumerate(CONTEXTS):
        for direction in ("sentence", "left", "right"):
            tensors = collate(np.array([context]), direction)
            expected = model.log_prob(**tensors) / model.target_lengths(tensors["labels"])
            assert terms[direction][place, place] == pytest.approx(expected.item(), abs=1e-5)


def test_no_sentences_and_no_contexts(origin: OriginSimilarity, sentences: list[str]) -> None:
    none = np.zeros(0, dtype=np.int64)
    assert origin.contexts.scorer.score(sentences, origin.index.contexts(none)).shape == (len(sentences), 0)
    assert origin.contexts.scorer.score([], origin.index.contexts(CONTEXTS)).shape == (0, len(CONTEXTS))
