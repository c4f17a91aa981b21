"""Two lists of sentences -> how alike each pair is, by the contexts they fit (Origin)."""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from tqdm import tqdm

from ctxsim_hf import __version__
from ctxsim_hf.origin.comparison import comparable, context_spread, cosine
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.context_set import ContextSets
from ctxsim_hf.origin.fit_score import ContextScorer, Prepared
from ctxsim_hf.origin.indexing import read_background
from ctxsim_hf.origin.models import OriginModels
from ctxsim_hf.origin.score_weights import TERMS, ScoreWeights
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.term_scorers import DiscriminatorScorer
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.stage import read_stage, verify_files_once
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.sentence_checks import check_pairs

if TYPE_CHECKING:
    import torch

    from ctxsim_hf.origin.explanation import Explanation

logger = logging.getLogger(__name__)

DEFAULT_ORIGIN = "ctxsim/origin-light"
REMEMBERED_CONTEXTS = 5000  # prepared, with their background scores; of a large seq2seq generator half a MB each


@dataclass(frozen=True)
class JudgedContexts:
    """The context set of one sentence, ready to score any sentence in it."""

    contexts: np.ndarray
    prepared: Prepared
    _score_background: Callable[[Prepared], dict[str, np.ndarray]]

    @cached_property
    def background(self) -> dict[str, np.ndarray]:
        """Term -> (background, contexts). Not before somebody asks: the mode `cosine` does not."""
        return self._score_background(self.prepared)


@dataclass(frozen=True)
class PairScores:
    """All that is known of a pair: its contexts, those found for the first sentence first, and the scores in them."""

    settings: OriginSettings
    contexts: np.ndarray
    found_for_first: int
    terms: dict[str, np.ndarray]  # term -> (2, contexts)
    judged: Sequence[JudgedContexts]  # the sets of the two sentences
    lexical: float  # cosine of the words; nan where it has no weight

    @cached_property
    def scores(self) -> np.ndarray:
        """(2, contexts): S of the two sentences."""
        return self.settings.weights.combine(self.terms)

    @cached_property
    def background(self) -> np.ndarray:
        """(background, contexts): S of the background sentences."""
        return self.settings.weights.combine(_side_by_side([found.background for found in self.judged]))

    @cached_property
    def vectors(self) -> np.ndarray:
        """(2, contexts): their cosine is the similarity by contexts."""
        return self._vectors(slice(None))

    @property
    def by_contexts(self) -> float:
        return cosine(*self.vectors)

    @property
    def similarity(self) -> float:
        return self.settings.with_lexical(self.by_contexts, self.lexical)

    @property
    def spread(self) -> float:
        """Standard deviation of the similarity over draws of contexts, the whitening held fixed."""
        first, second = self.vectors
        return self.settings.with_lexical_spread(context_spread(first, second, self.settings.seed))

    @property
    def directional(self) -> tuple[float, float]:
        """The cosine over the contexts of the first sentence alone, and over those of the second alone."""
        parts = slice(0, self.found_for_first), slice(self.found_for_first, None)
        first, second = (cosine(*self._vectors(contexts)) for contexts in parts)
        return first, second

    def _vectors(self, contexts: slice) -> np.ndarray:
        settings, scores = self.settings, self.scores[:, contexts]
        if settings.mode == "cosine":
            return scores
        return comparable(settings.mode, scores, self.background[:, contexts], settings.ridge)


class OriginSimilarity:
    r"""
    Opened by [`~OriginSimilarity.from_pretrained`]. A similarity depends on nothing but the two sentences, the folder
    and the settings: not on what else is asked in the same call.

    Sentences are compared as they come. One without a word known to the index has no contexts of its own; if neither
    has any, their similarity is 0.
    """

    def __init__(
        self,
        index: ContextIndex,
        models: OriginModels,
        background: Sequence[str],
        lexical: LetterCosine,
        settings: OriginSettings,
        record: Mapping[str, Any],
        cache_folder: str | Path | None = None,
    ) -> None:
        scorers = models.scorers()
        discriminator = next(scorer for scorer in scorers if isinstance(scorer, DiscriminatorScorer))
        self.index, self.settings, self._record = index, settings, record
        self.scorer = ContextScorer(scorers, models.tokenizer, models.width, settings.weights)
        answered = {term for scorer in scorers for term in scorer.terms}
        every_term = ScoreWeights(**{term: float(term in answered) for term in TERMS})
        self._explainer = ContextScorer(scorers, models.tokenizer, models.width, every_term)
        self.context_sets = ContextSets(
            index, self.scorer, discriminator, settings, _digest(record), Path(cache_folder) if cache_folder else None
        )
        self.lexical = lexical
        self.background = self.scorer.prepare_sentences(background[: settings.background_size])
        self._judged: OrderedDict[str, JudgedContexts] = OrderedDict()

    @classmethod
    def from_pretrained(
        cls,
        origin: str | Path = DEFAULT_ORIGIN,
        *,
        revision: str | None = None,
        device: "str | torch.device | None" = None,
        cache_folder: str | Path | None = None,
        **settings: Any,
    ) -> "OriginSimilarity":
        r"""
        Args:
            origin (`str` or `Path`): Folder made by `ctxsim index`, or its id on the Hub.
            revision (`str`, *optional*): Of the repository on the Hub, e.g. a commit. None takes the latest.
            device (`str` or `torch.device`, *optional*): Where the models run. None takes a GPU if there is one.
            cache_folder (`str` or `Path`, *optional*): Keep context sets there from one process to the next.
            settings: Override those of the folder; see [`OriginSettings`].
        """
        folder = origin_folder(origin, revision)
        record = read_stage(folder, "index")
        verify_files_once(folder, record)
        models = OriginModels.from_origin(folder, device)
        return cls(
            ContextIndex.open(folder / "index", models.width),
            models,
            read_background(folder),
            LetterCosine(TfidfCosine.load(folder / "lexical")),
            OriginSettings.load(folder).override(**settings),
            record,
            cache_folder=cache_folder,
        )

    @property
    def signature(self) -> str:
        """Everything a score depends on, in one line: two figures with the same signature can be compared."""
        inputs = self._record["inputs"]
        generators = "+".join(generator["xxh3_128"][:8] for generator in inputs["generator"])
        settings = self.settings.to_json() | {
            "weights": ",".join(f"{w:g}" for w in self.settings.to_json()["weights"].values())
        }
        parts = {
            "origin": _digest(self._record)[:8],
            "discriminator": inputs["discriminator"]["xxh3_128"][:8],
            "generator": generators,
            "chunks": inputs["chunks"]["xxh3_128"][:8],
            **settings,
            "ctxsim_hf": __version__,
            "torch": version("torch"),
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """How alike the sentences of each pair are, (pairs,)."""
        return np.array([pair.similarity for pair in self.compare(sentences1, sentences2)], dtype=np.float64)

    def compare(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> Iterator[PairScores]:
        """Everything known of each pair."""
        check_pairs(sentences1, sentences2)
        pairs = list(zip(sentences1, sentences2, strict=True))
        lexical = [float("nan")] * len(pairs)
        if self.settings.lexical_weight:
            lexical = self.lexical.similarity(sentences1, sentences2).tolist()
        few: set[str] = set()
        progress = tqdm(pairs, desc="similarity", unit="pair", disable=None if len(pairs) > 1 else True)
        for (sentence1, sentence2), overlap in zip(progress, lexical, strict=True):
            judged = [self._judge(sentence) for sentence in (sentence1, sentence2)]
            few |= {
                sentence
                for sentence, found in zip((sentence1, sentence2), judged, strict=True)
                if len(found.contexts) < self.settings.num_contexts
            }
            prepared = self.scorer.prepare_sentences([sentence1, sentence2])
            yield PairScores(
                self.settings,
                np.concatenate([found.contexts for found in judged]),
                len(judged[0].contexts),
                _side_by_side([self.scorer.terms(prepared, found.prepared) for found in judged]),
                judged,
                overlap,
            )
        if few:
            wanted = self.settings.num_contexts
            logger.warning(f"{len(few)} sentences have fewer than {wanted} contexts, e.g. {min(few)[:80]!r}")

    def explain(self, sentence1: str, sentence2: str) -> "Explanation":
        """Why two sentences are as alike as they are."""
        from ctxsim_hf.origin.explanation import explain

        (pair,) = self.compare([sentence1], [sentence2])
        return explain(sentence1, sentence2, pair, self.index, self._explainer, self.scorer.weights.active)

    def _judge(self, sentence: str) -> JudgedContexts:
        if sentence not in self._judged:
            (contexts,) = self.context_sets([sentence])
            prepared = self.scorer.prepare_contexts(self.index.tokens(contexts))
            score_background = partial(self.scorer.terms, self.background)
            self._judged[sentence] = JudgedContexts(contexts, prepared, score_background)
            while len(self._judged) * self.settings.num_contexts > REMEMBERED_CONTEXTS and len(self._judged) > 2:
                self._judged.popitem(last=False)
        self._judged.move_to_end(sentence)
        return self._judged[sentence]


def _side_by_side(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The terms over the contexts of both sentences."""
    return {term: np.concatenate([part[term] for part in parts], axis=1) for term in parts[0]}


def _digest(record: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(record, sort_keys=True).encode())


def origin_folder(origin: str | Path, revision: str | None = None) -> Path:
    """Return the folder itself, or what the Hub has under this id; its latest revision if None."""
    return fetch_folder(origin, "a folder made by `ctxsim index`", revision=revision)
