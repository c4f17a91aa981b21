"""Turn `kind:where` into a system to evaluate, ours or a baseline."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.evaluation.examples import Similarity
from ctxsim_hf.evaluation.word_counts import count_corpus, find_corpora
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.letters import LetterCosine


@dataclass(frozen=True)
class SystemResources:
    """What a system may need besides its own folder or file."""

    origin_settings: SettingsArguments
    chunks: str | None = None
    data_root: str | Path | None = None


class SystemKind(NamedTuple):
    """A kind of system and how to open one."""

    where: str  # what comes after the colon; empty if nothing does
    help: str
    open: Callable[[str, SystemResources], Similarity]
    counts_words: bool = False  # needs the word counts of a corpus


class PairScorer(NamedTuple):
    """A function as a system."""

    similarity: Callable[[Sequence[str], Sequence[str]], np.ndarray]


class System(NamedTuple):
    """A system of the command line. Systems with the same name are seeds of one system."""

    name: str
    kind: str
    where: str

    @classmethod
    def parse(cls, spelling: str) -> "System":
        """Parse `kind`, `kind:where`, or `name=kind:where` with a name for the tables."""
        name, named, rest = spelling.partition("=")
        if not named or ":" in name:  # the equals sign is part of a path
            name, rest = spelling, spelling
        kind, _, where = rest.partition(":")
        if kind not in SYSTEM_KINDS:
            raise UserError(f"unknown system {spelling!r}; expected one of {', '.join(map(_spelled, SYSTEM_KINDS))}")
        if bool(where) != bool(SYSTEM_KINDS[kind].where):
            raise UserError(f"expected {_spelled(kind)}, got {rest!r}")
        return cls(name, kind, where)

    def check(self, resources: SystemResources) -> None:
        """Check what can be checked before the system is opened, which may be hours later."""
        if SYSTEM_KINDS[self.kind].counts_words and resources.chunks is None:
            find_corpora(resources.data_root)

    def open(self, resources: SystemResources) -> Similarity:
        """Open the system."""
        return SYSTEM_KINDS[self.kind].open(_locate(self.where), resources)


def describe_kinds() -> str:
    """Return a line of help on all kinds."""
    return "; ".join(f"{_spelled(kind)} {SYSTEM_KINDS[kind].help}" for kind in SYSTEM_KINDS)


def _spelled(kind: str) -> str:
    return f"{kind}:{SYSTEM_KINDS[kind].where}" if SYSTEM_KINDS[kind].where else kind


def _locate(where: str) -> str:
    """Turn `package:NAME/PATH` into a path inside an installed package, without running its code."""
    prefix, _, inside = where.partition(":")
    if prefix != "package":
        return where
    package, _, path = inside.partition("/")
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations if found else None) or ():
        if (Path(folder) / path).exists():
            return str(Path(folder) / path)
    raise UserError(
        f"expected {path!r} in an installed package {package!r}, found {'none' if found else 'no package'}"
    )


def _origin(where: str, resources: SystemResources) -> Similarity:
    return resources.origin_settings.open_origin(where)


def _surrogate(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

    encoder = SentenceEncoder.from_pretrained(where)
    return EncoderSignal(lambda sentences: np.asarray(encoder.encode(sentences)))


def _tfidf(where: str, resources: SystemResources) -> Similarity:
    return count_corpus(resources.chunks, resources.data_root)


def _letters(where: str, resources: SystemResources) -> Similarity:
    return LetterCosine(count_corpus(resources.chunks, resources.data_root))


def _bm25(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.bm25 import Bm25

    return Bm25(count_corpus(resources.chunks, resources.data_root))


def _vectors(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.word_vectors import WordVectors

    return EncoderSignal(WordVectors(where).encode)


def _sif(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.word_vectors import WordVectors

    return EncoderSignal(WordVectors(where, count_corpus(resources.chunks, resources.data_root)).encode)


def _transformer(where: str, pooling: str) -> Similarity:
    from ctxsim_hf.evaluation.transformer_states import TransformerStates

    states = TransformerStates(where)
    return EncoderSignal(lambda sentences: states.encode(sentences, pooling))


def _bertscore(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.transformer_states import TransformerStates

    return PairScorer(TransformerStates(where).bertscore)


def _sentence_transformer(where: str, resources: SystemResources) -> Similarity:
    model = _open_with_sentence_transformers("SentenceTransformer", where)
    return EncoderSignal(lambda sentences: model.encode(sentences, show_progress_bar=sys.stderr.isatty()))


def _cross(where: str, resources: SystemResources) -> Similarity:
    model = _open_with_sentence_transformers("CrossEncoder", where)
    if (labels := model.config.num_labels) != 1:
        raise UserError(f"expected a cross-encoder with one score for each pair, {where!r} gives {labels} numbers")
    return PairScorer(lambda first, second: model.predict(list(zip(first, second, strict=True))))


def _open_with_sentence_transformers(name: str, where: str) -> Any:
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise UserError(f"{where!r} opens with sentence-transformers: pip install sentence-transformers") from error
    try:
        return getattr(library, name)(where)
    except (OSError, ValueError) as error:  # which include every error of the Hub's client
        reason = str(error).splitlines()[0]
        raise UserError(f"expected a folder or an id on the Hub for {name}, got {where!r}: {reason}") from error


def _scores(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.scores_file import ScoresFile

    return ScoresFile(where)


def _python(where: str, resources: SystemResources) -> Similarity:
    module, _, name = where.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"expected python:MODULE:NAME, a class or function to call, got {where!r}: {error}") from error
    if hasattr(made, "encode"):
        return EncoderSignal(made.encode)
    if hasattr(made, "similarity"):
        return PairScorer(made.similarity)
    raise UserError(f"expected an object with encode or similarity from {where!r}, got a {type(made).__name__}")


SYSTEM_KINDS = {
    "origin": SystemKind("DIR", "an origin folder", _origin),
    "surrogate": SystemKind("DIR", "a surrogate", _surrogate),
    "cross": SystemKind("ID", "a cross-encoder, such as a cross surrogate or BLEURT", _cross),
    "tfidf": SystemKind("", "cosine of TF-IDF weights", _tfidf, counts_words=True),
    "letters": SystemKind("", "the same, with the forms of a word as similar", _letters, counts_words=True),
    "bm25": SystemKind("", "BM25, mean of both directions", _bm25, counts_words=True),
    "vectors": SystemKind("FILE", "mean of word vectors (GloVe, word2vec)", _vectors),
    "sif": SystemKind("FILE", "SIF average of word vectors", _sif, counts_words=True),
    "hf": SystemKind("ID", "mean of a transformer's last layer", lambda where, _: _transformer(where, "mean")),
    "hf-cls": SystemKind("ID", "its first token (BERT, DPR)", lambda where, _: _transformer(where, "cls")),
    "st": SystemKind("ID", "sentence-transformers", _sentence_transformer),
    "bertscore": SystemKind("ID", "BERTScore with a transformer", _bertscore),
    "scores": SystemKind("FILE", "scores made elsewhere: sentence TAB sentence TAB score", _scores),
    "python": SystemKind("MODULE:NAME", "the object that NAME() returns, with encode or similarity", _python),
}
