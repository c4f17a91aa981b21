"""Turn `kind:where` into a system to evaluate, ours or a baseline."""

import importlib
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.evaluation.examples import Similarity
from ctxsim_hf.evaluation.limited_encoder import LimitedEncoder
from ctxsim_hf.evaluation.word_counts import count_corpus, count_texts, find_corpora
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import locate
from ctxsim_hf.runtime.pretrained import explain_opening
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine


@dataclass(frozen=True)
class SystemResources:
    """What a system may need besides its own folder or file."""

    origin_settings: SettingsArguments
    chunks: str | None = None
    data_root: str | Path | None = None
    documents: Sequence[str] = ()  # of retrieval, to count words in where there is nothing else

    def has_text(self) -> bool:
        return self.chunks is not None or (self.data_root is None and bool(self.documents))

    def count_words(self) -> TfidfCosine:
        if self.chunks is None and self.has_text():
            return count_texts(self.documents)
        return count_corpus(self.chunks, self.data_root)


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
        if kind == "rrf":
            _members(where)
        return cls(name, kind, where)

    def check(self, resources: SystemResources) -> None:
        """What can be known before it is opened, which may be after hours of others."""
        members = _members(self.where) if self.kind == "rrf" else [self]
        if any(SYSTEM_KINDS[member.kind].counts_words for member in members) and not resources.has_text():
            find_corpora(resources.data_root)

    def open(self, resources: SystemResources) -> Similarity:
        """Open the system."""
        return SYSTEM_KINDS[self.kind].open(self.located(), resources)

    def located(self) -> str:
        """Return where the system is, `package:` resolved."""
        return locate(self.where)

    def members(self) -> list["System"]:
        """Return the systems that a fused one is made of."""
        return _members(self.where)


def describe_kinds() -> str:
    """Return a line of help on all kinds."""
    return "; ".join(f"{_spelled(kind)} {SYSTEM_KINDS[kind].help}" for kind in SYSTEM_KINDS)


def _spelled(kind: str) -> str:
    return f"{kind}:{SYSTEM_KINDS[kind].where}" if SYSTEM_KINDS[kind].where else kind


def _origin(where: str, resources: SystemResources) -> Similarity:
    return resources.origin_settings.open_origin(where)


def _surrogate(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

    encoder = SentenceEncoder.from_pretrained(where)
    return LimitedEncoder(
        lambda sentences: np.asarray(encoder.encode(sentences)), encoder.tokenizer, encoder.max_tokens
    )


def _tfidf(where: str, resources: SystemResources) -> Similarity:
    return resources.count_words()


def _letters(where: str, resources: SystemResources) -> Similarity:
    return LetterCosine(resources.count_words())


def _bm25(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.bm25 import Bm25

    return Bm25(resources.count_words())


def _vectors(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.word_vectors import WordVectors

    return EncoderSignal(WordVectors(where).encode)


def _sif(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.sif import Sif

    return EncoderSignal(Sif(where, resources.count_words()).encode)


def _usif(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.sif import USif

    return EncoderSignal(USif(where, resources.count_words()).encode)


def _transformer(where: str, pooling: str) -> Similarity:
    from ctxsim_hf.evaluation.transformer_states import TransformerStates

    states = TransformerStates(where)
    return LimitedEncoder(lambda sentences: states.encode(sentences, pooling), states.tokenizer, states.max_tokens)


def _bertscore(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.transformer_states import TransformerStates

    return PairScorer(TransformerStates(where).bertscore)


def _sentence_transformer(where: str, resources: SystemResources) -> Similarity:
    model = _open_with_sentence_transformers("SentenceTransformer", where)

    def encode(sentences: list[str]) -> np.ndarray:
        return np.asarray(model.encode(sentences, show_progress_bar=sys.stderr.isatty()))

    longest = model.max_seq_length
    if longest is None or longest == math.inf:  # word vectors, which read all of a text
        return EncoderSignal(encode)
    return LimitedEncoder(encode, model.tokenizer, longest)


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
    with explain_opening(f"a {name}", where):
        return getattr(library, name)(where, trust_remote_code=False)


def _rrf(where: str, resources: SystemResources) -> Similarity:
    from ctxsim_hf.evaluation.fusion import ReciprocalRankFusion

    return ReciprocalRankFusion([member.open(resources) for member in _members(where)])


def _members(where: str) -> list[System]:
    """The systems of SYSTEM+SYSTEM."""
    members = [System.parse(part) for part in where.split("+")]
    if len(members) < 2 or any(member.kind == "rrf" for member in members):
        raise UserError(f"expected {_spelled('rrf')}, such as rrf:bm25+st:ID, got 'rrf:{where}'")
    return members


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
    "letters": SystemKind("", "the same, with the forms of a word alike", _letters, counts_words=True),
    "bm25": SystemKind("", "both ways for pairs, the query's way for --retrieval", _bm25, counts_words=True),
    "vectors": SystemKind("FILE", "mean of word vectors (GloVe, word2vec)", _vectors),
    "sif": SystemKind("FILE", "the same by SIF, 10 components removed", _sif, counts_words=True),
    "usif": SystemKind("FILE", "the same by uSIF", _usif, counts_words=True),
    "hf": SystemKind("ID", "mean of a transformer's last layer", lambda where, _: _transformer(where, "mean")),
    "hf-cls": SystemKind("ID", "its first token (BERT, DPR)", lambda where, _: _transformer(where, "cls")),
    "st": SystemKind("ID", "sentence-transformers", _sentence_transformer),
    "bertscore": SystemKind("ID", "BERTScore with a transformer", _bertscore),
    "rrf": SystemKind("SYSTEM+SYSTEM", "their rankings fused by reciprocal rank, for --retrieval", _rrf),
    "scores": SystemKind("FILE", "scores made elsewhere: sentence TAB sentence TAB score", _scores),
    "python": SystemKind("MODULE:NAME", "what NAME() gives, with encode or similarity", _python),
}
