"""A sentence and a context -> what a pretrained denoising model reads and predicts: a table by model type.

A text is left side, sentence, right side. One of them is the target (the term's name says which); what stands before
and after it in the text is given, and a mark stands in its place.

| model type | encoder | decoder, after its start token |
|---|---|---|
| `bart` | `<s>` before `<mask>` after `</s>` | `<s>` before **target** |
| `t5`, `mt5`, `umt5` | before `<extra_id_0>` after `</s>` | `<extra_id_0>` **target** |

So for the term `left` nothing stands before the mark, and for the term `right` nothing after it. Only the target's
tokens count, each given the encoder's input and all that stands before it in the decoder.

These are the forms in which the models were trained. BART (Lewis et al. 2020, "text infilling") replaces spans by one
`<mask>` each and reconstructs the whole text, so what stands before the target is given to the decoder too; what comes
after the target cannot change a causal decoder's answer, and is left out. T5 (Raffel et al. 2020, "span corruption")
replaces each span by a sentinel and predicts the spans alone, each behind its sentinel; mT5 and uMT5 follow it. Both
were trained on spans of about three tokens: they know what fits a gap better than how long a sentence is. That is why
T5's closing sentinel does not count (it would mostly say how likely so long a span is), nor BART's `</s>`, which only
the right side could have. BARTScore (Yuan et al. 2021) takes the mean over the target's tokens, as Eq. 3 does.
"""

from dataclasses import dataclass

import numpy as np
from transformers import TokenizersBackend

from ctxsim_hf.runtime.errors import UserError

BEFORE, TARGET, AFTER = "before", "target", "after"
READING_ORDER = ("left", "sentence", "right")  # also the names of the terms whose target they are

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]  # left side, sentence, right side


@dataclass(frozen=True)
class Template:
    """Pieces: a part of the text, the role of a special token (an attribute of the tokenizer), or the token itself.

    Args:
        source (`tuple[str, ...]`): The encoder's input.
        decoder (`tuple[str, ...]`): What the decoder is given after its start token, the target last.
        scaled_if (`str`, *optional*): The attribute of the configuration that says whether the decoder's states are
            divided by the square root of their width before the output layer. None if they never are.
    """

    source: tuple[str, ...]
    decoder: tuple[str, ...]
    scaled_if: str | None = None


_SENTINEL = "<extra_id_0>"
_T5_SOURCE, _T5_DECODER = (BEFORE, _SENTINEL, AFTER, "eos_token"), (_SENTINEL, TARGET)
TEMPLATES = {
    "bart": Template(("bos_token", BEFORE, "mask_token", AFTER, "eos_token"), ("bos_token", BEFORE, TARGET)),
    "t5": Template(_T5_SOURCE, _T5_DECODER, "scale_decoder_outputs"),
    "mt5": Template(_T5_SOURCE, _T5_DECODER),
    "umt5": Template(_T5_SOURCE, _T5_DECODER, "tie_word_embeddings"),
}


class TemplateIds:
    """A template in the ids of a tokenizer."""

    def __init__(self, template: Template, tokenizer: TokenizersBackend) -> None:
        self.template = template
        vocabulary = tokenizer.get_vocab()
        self._marks: dict[str, np.ndarray] = {}
        for piece in dict.fromkeys((*template.source, *template.decoder)):
            if piece in (BEFORE, TARGET, AFTER):
                continue
            token = getattr(tokenizer, piece) if piece.endswith("_token") else piece
            if token not in vocabulary:
                raise UserError(f"the tokenizer has no {piece}; use the one that the model was trained with")
            self._marks[piece] = np.array([vocabulary[token]])

    def source(self, term: str, parts: Parts) -> np.ndarray:
        """Return the encoder's input. The part that is the target is not looked at."""
        return self._join(self.template.source, term, parts)

    def decoder(self, term: str, parts: Parts) -> np.ndarray:
        """Return what the decoder reads and predicts after its start token. The target's tokens are the last."""
        return self._join(self.template.decoder, term, parts)

    def source_lengths(self, term: str, part_lengths: Parts) -> np.ndarray:
        """Return the number of tokens of sources, from those of their parts."""
        return self._count(self.template.source, term, part_lengths)

    def decoder_lengths(self, term: str, part_lengths: Parts) -> np.ndarray:
        return self._count(self.template.decoder, term, part_lengths)

    def _join(self, pieces: tuple[str, ...], term: str, parts: Parts) -> np.ndarray:
        return np.concatenate([part for piece in pieces for part in self._pick(piece, term, parts)])

    def _count(self, pieces: tuple[str, ...], term: str, part_lengths: Parts) -> np.ndarray:
        texts = [piece for piece in pieces if piece not in self._marks]
        counted = [length for piece in texts for length in self._pick(piece, term, part_lengths)]
        total: np.ndarray = np.sum(counted, axis=0) + len(pieces) - len(texts)
        return total

    def _pick(self, piece: str, term: str, parts: Parts) -> tuple[np.ndarray, ...]:
        """Return what a piece stands for."""
        place = READING_ORDER.index(term)
        texts = {BEFORE: parts[:place], TARGET: parts[place : place + 1], AFTER: parts[place + 1 :]}
        return texts[piece] if piece in texts else (self._marks[piece],)
