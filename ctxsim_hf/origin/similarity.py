"""Compute the similarity of sentence pairs by the signals of an origin (Origin)."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from ctxsim_hf import __version__
from ctxsim_hf.context_models.base import ContextModel, Ranker
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.origin.candidates import Candidates
from ctxsim_hf.origin.cloze_signal import ClozeModel, ClozeSignal, Whitening
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.context_set import ContextSets
from ctxsim_hf.origin.contexts_signal import ContextsSignal
from ctxsim_hf.origin.explaining import ContextExplainer, explain
from ctxsim_hf.origin.explanation import Explanation
from ctxsim_hf.origin.fit_score import ContextScorer, answered_terms
from ctxsim_hf.origin.group_scoring import GROUP_SCORERS, Labels, score_group
from ctxsim_hf.origin.layout import SIGNALS, TOKENIZER, Layout, default_device
from ctxsim_hf.origin.pair_scores import PairScores
from ctxsim_hf.origin.segments import WORDS, Version
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.signals import CLOZE, CONTEXTS, mix, open_signal, shares
from ctxsim_hf.origin.suggested_words import WordModel, WordSuggestions
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.record import open_stage
from ctxsim_hf.runtime.threads import no_spinning
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.sentence_checks import check_pairs
from ctxsim_hf.text.signal import Signal

if TYPE_CHECKING:
    import torch

DEFAULT_ORIGIN = "ctxsim/origin-light"
FEW_CONTEXTS = {"num_contexts": 4, "rerank_candidates": 2, "background_size": 12, "compare_by": "zscore"}
STD_SENTENCES = 48  # background sentences, every two of which are a pair


class OriginSimilarity:
    """The similarity of sentences by an origin, opened by [`~OriginSimilarity.from_pretrained`].

    A similarity depends on the two sentences, the folder and the settings alone, not on other pairs of the same call.
    A sentence without a word known to the index has no contexts of its own; if neither sentence has any, their
    similarity by contexts is 0.
    """

    def __init__(
        self,
        folder: Path,
        version: Version,
        index: ContextIndex,
        models: Mapping[str, ContextModel],
        settings: OriginSettings,
        record: Mapping[str, Any],
        cache_folder: str | Path | None = None,
    ) -> None:
        self.folder, self.version, self.index, self.models = folder, version, index, models
        self.settings, self._record = settings, record
        self.background = version.background[: settings.background_size]
        self._words = TfidfCosine.load(version.folder / WORDS)  # now, since the files of a version may be removed
        self._cache = Path(cache_folder) if cache_folder else None
        self.signals: dict[str, Signal] = {name: self._open_signal(name) for name in settings.active_signals}

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
        """Open an origin.

        Args:
            origin (`str` or `Path`): Folder made by `ctxsim index`, or its id on the Hub.
            revision (`str`, *optional*): Revision on the Hub, such as a commit. None takes the latest.
            device (`str` or `torch.device`, *optional*): Device of the models. None takes a GPU if there is one.
            cache_folder (`str` or `Path`, *optional*): Folder that keeps context sets between runs. None keeps none.
            settings: Settings to override; see [`OriginSettings`].
        """
        folder = origin_folder(origin, revision)
        record = open_stage(folder, "index")
        layout, version = Layout.load(folder), Version.current(folder, record)
        return cls(
            folder,
            version,
            ContextIndex.open(version, open_tokenizer(folder / TOKENIZER), layout.width),
            layout.open_models(folder, str(device or default_device())),
            OriginSettings.load(folder).override(**settings),
            record,
            cache_folder=cache_folder,
        )

    @cached_property
    def contexts(self) -> ContextsSignal:
        """Similarity by retrieved contexts, whether or not it counts."""
        settings, models = self.settings, self.models
        scorer = ContextScorer(models, settings.weights)
        ranker = next(((name, model) for name, model in models.items() if isinstance(model, Ranker)), None)
        candidates = Candidates(self.index, settings.screen_chunks, ranker)
        sets = ContextSets(self.index, scorer, candidates, settings, _digest(self._record), self._cache)
        return ContextsSignal(self.index, scorer, sets, self.background, settings)

    def _open_signal(self, name: str) -> Signal:
        if name == CONTEXTS:
            return self.contexts
        if name == CLOZE:
            background = self.version.cloze_states()
            model = next((model for model in self.models.values() if isinstance(model, ClozeModel)), None)
            if model is None or background is None:
                raise UserError("no context model of this origin knows cloze contexts; index with a language model")
            power = model.cloze_power if self.settings.cloze_power is None else self.settings.cloze_power
            whitening = Whitening(background, power, self.settings.cloze_ridge)
            inputs = self._record["inputs"]
            asked = [*inputs["context_models"], *inputs.get("bridges", [])]  # what the states depend on
            key = xxhash.xxh3_128_hexdigest(repr(asked).encode())
            cache = self._cache / f"cloze-{key}.sqlite" if self._cache else None
            return ClozeSignal(model, whitening, cache, background, self.settings.cloze_neighbours)
        return open_signal(name, self.version.folder / WORDS if name == "words" else self.folder / SIGNALS / name)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of each signal in the mean; see signals.py."""
        weights = self.settings.active_signals
        return shares(weights, self.signal_stds() if len(weights) > 1 else {})

    def signal_stds(self) -> dict[str, float]:
        """Return the standard deviation of each signal over pairs of background sentences, contexts in one pool."""
        sentences = self.background[:STD_SENTENCES]
        pairs = np.stack(np.triu_indices(len(sentences), 1), axis=1)
        first, second = ([sentences[place] for place in side] for side in pairs.T)
        return {
            name: float(
                score_group(self.contexts, sentences, pairs)[0].std()
                if name == CONTEXTS
                else signal.similarity(first, second).std()
            )
            for name, signal in self.signals.items()
        }

    @property
    def signature(self) -> str:
        """Everything a score depends on, in one line. Figures with the same signature can be compared."""
        inputs, settings = self._record["inputs"], self.settings.to_json()
        models = [f"{model['model_type']}={model['xxh3_128'][:8]}" for model in inputs["context_models"]]
        parts = {
            "origin": _digest(self._record)[:8],
            "version": self.version.name[:8],
            "context_models": "+".join(models),
            "chunks": inputs["chunks"]["xxh3_128"][:8],
            **settings,
            "signals": "+".join(f"{name}={weight:g}" for name, weight in self.settings.active_signals.items()),
            "weights": ",".join(f"{weight:g}" for weight in settings["weights"].values()),
            "ctxsim_hf": __version__,
            "torch": version("torch"),
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    @no_spinning()
    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the similarity of each pair, (pairs,)."""
        return np.array([pair.similarity for pair in self.compare(sentences1, sentences2)], dtype=np.float64)

    def compare(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> Iterator[PairScores]:
        """Yield the signals of each pair."""
        sentences1, sentences2 = check_pairs(sentences1, sentences2)
        others = {
            name: signal.similarity(sentences1, sentences2).tolist()
            for name, signal in self.signals.items()
            if name != CONTEXTS
        }
        counts = CONTEXTS in self.signals
        by_contexts = self.contexts.compare(sentences1, sentences2) if counts else [None] * len(sentences1)
        for place, contexts in enumerate(by_contexts):
            values = {name: found[place] for name, found in others.items()}
            if contexts is not None:
                values[CONTEXTS] = contexts.similarity
            yield PairScores(values, self.shares, contexts)

    @no_spinning()
    def label(self, sentences: Sequence[str], pairs: np.ndarray, mode: str) -> Labels:
        """Return the scores and spreads of pairs within a group of sentences.

        Args:
            sentences (`Sequence[str]`): The group.
            pairs (`np.ndarray`): (pairs, 2) places in the group.
            mode (`str`): `pair`, with the contexts of the two sentences; or `group`, with one pool of contexts.
        """
        first, second = ([sentences[member] for member in side] for side in pairs.T)
        values, spreads = {}, np.zeros(len(pairs))
        for name, signal in self.signals.items():
            if name == CONTEXTS:
                values[name], spreads = GROUP_SCORERS[mode](self.contexts, sentences, pairs)
                spreads = self.shares[name] * spreads
            elif isinstance(signal, ClozeSignal):
                values[name] = signal.group_similarity(sentences, pairs)
            else:
                values[name] = signal.similarity(first, second)
        return mix(values, self.shares), spreads

    @no_spinning()
    def explain(self, sentence1: str, sentence2: str) -> Explanation:
        """Explain the similarity of two sentences."""
        (pair,) = self.compare([sentence1], [sentence2])
        answered = answered_terms(self.models)
        words = self._suggestions(sentence1, sentence2) if self._suggestions else None
        meaning = self.thresholds.describe(pair.similarity) if self.thresholds else None
        if not answered:
            return explain(sentence1, sentence2, pair, None, None, words, meaning)
        signal = self._few_contexts if self._is_slow else self.contexts
        contexts = pair.contexts or next(signal.compare([sentence1], [sentence2]))
        all_terms = ContextScorer(self.models, ScoreWeights(**{term: float(term in answered) for term in TERMS}))
        counted = self.contexts.scorer if self.has_fast_contexts else None
        explainer = ContextExplainer(self.index, all_terms, counted, self.background)
        return explain(sentence1, sentence2, pair, contexts, explainer, words, meaning)

    @property
    def has_fast_contexts(self) -> bool:
        """Whether thousands of scores take a moment: those of models that keep arrays beside the index."""
        return set(self.contexts.scorer.models) <= set(self.index.stored)

    @property
    def _is_slow(self) -> bool:
        return any(self.models[name].is_slow for name in answered_terms(self.models).values())

    @cached_property
    def thresholds(self) -> Thresholds | None:
        """What a similarity means: those of other pairs. None if they were not measured with these settings."""
        found = Thresholds.load(self.folder)
        return found if found is not None and found.settings == self.settings.to_json() else None

    def __repr__(self) -> str:
        signals = ", ".join(f"{name} {weight:g}" for name, weight in self.settings.active_signals.items())
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        lines = [
            f"OriginSimilarity({str(self.folder)!r})",
            f"  signals         {signals}",
            f"  contexts        {self.index.num_contexts:,}, of which {self.settings.num_contexts} for each sentence",
            f"  compared by     {self.settings.compare_by}, with {len(self.background)} background sentences",
            f"  context models  {', '.join(self.models)}",
            f"  size            {size / 1e6:,.0f} MB",
        ]
        return "\n".join(lines)

    @cached_property
    def _few_contexts(self) -> ContextsSignal:
        """Retrieved contexts to show where they do not count and their model is slow."""
        origin = copy.copy(self)
        origin.settings = self.settings.override(**FEW_CONTEXTS)
        origin.background = self.background[: origin.settings.background_size]
        origin.__dict__.pop("contexts", None)
        return origin.contexts

    @cached_property
    def _suggestions(self) -> WordSuggestions | None:
        model = next((model for model in self.models.values() if isinstance(model, WordModel)), None)
        return None if model is None else WordSuggestions(model, self.background, self._words)


def origin_folder(origin: str | Path, revision: str | None = None) -> Path:
    """Return a local folder, or download it from the Hub; None as the revision takes the latest."""
    return fetch_folder(str(origin), "a folder made by `ctxsim index`", revision=revision)


def _digest(record: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(record, sort_keys=True).encode())
