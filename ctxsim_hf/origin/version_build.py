"""Write a version of an origin: all that depends on every document that counts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import TokenizersBackend

from ctxsim_hf.encoder.vector_checks import check_vectors
from ctxsim_hf.origin.background import choose_background
from ctxsim_hf.origin.cloze_signal import ClozeModel
from ctxsim_hf.origin.context_index import SENTENCE_KEYS, TFIDF, IndexSentences, open_joined, open_texts
from ctxsim_hf.origin.layout import TOKENIZER, Layout, default_device
from ctxsim_hf.origin.segments import BACKGROUND, CLOZE_STATES, WORDS, Version, save_version
from ctxsim_hf.origin.tfidf_segment import TfidfSegment, map_array
from ctxsim_hf.origin.tfidf_weights import TfidfWeights
from ctxsim_hf.runtime.files import whole_folder, write_json
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.lexical import TfidfCosine


def write_version(
    target: Path,
    origin: Path,
    segments: Sequence[Path],
    deleted: np.ndarray,
    words: TfidfCosine,
    background: tuple[int, int],
    before: Version | None = None,
) -> None:
    """Write a version into a folder that does not exist yet, whole or not at all.

    Args:
        target (`Path`): The folder.
        origin (`Path`): The origin, with tokenizer and context models.
        segments (`Sequence[Path]`): The segments in order.
        deleted (`np.ndarray`): Deleted chunks, numbered through all segments, ascending.
        words (`TfidfCosine`): Words of all sentences that count.
        background (`tuple[int, int]`): Number of background sentences, and the seed of their order.
        before (`Version`, *optional*): The version that this one follows, whose background a language model has read
            already. None if this is the first.
    """
    with whole_folder(target) as folder:
        save_version(folder, segments, deleted)
        opened = [TfidfSegment.open(segment / TFIDF) for segment in segments]
        TfidfWeights.compute(opened, deleted).save(folder, opened)
        words.save(folder / WORDS)
        chosen = _background(Version(folder, tuple(segments)), open_tokenizer(origin / TOKENIZER), *background)
        write_json(folder / BACKGROUND, chosen)
        if (states := _cloze_states(origin, chosen, before)) is not None:
            np.save(folder / CLOZE_STATES, states)


def _background(version: Version, tokenizer: TokenizersBackend, size: int, seed: int) -> list[str]:
    joined = open_joined(version.segments, version.deleted)
    sentences = IndexSentences(open_texts(version.segments, joined), joined.tokenized(), tokenizer)
    keys = [map_array(segment / SENTENCE_KEYS) for segment in version.segments]
    return choose_background(sentences, joined.join(keys, joined.sentences), size, seed)


def _cloze_states(origin: Path, background: list[str], before: Version | None) -> np.ndarray | None:
    """Return what the background suggests to a language model, so that opening an origin need not ask again; it reads
    only sentences that are new in the background. None if there is no language model."""
    known: dict[str, np.ndarray] = {}
    if before is not None:
        if (states := before.cloze_states()) is None:
            return None
        known = dict(zip(before.background, states, strict=True))
    if new := [sentence for sentence in background if sentence not in known]:
        models = Layout.load(origin).open_models(origin, default_device()).values()
        model = next((model for model in models if isinstance(model, ClozeModel)), None)
        if model is None:
            return None
        known |= zip(new, check_vectors(model.vectors(new)), strict=True)
    return np.stack([known[sentence] for sentence in background])
