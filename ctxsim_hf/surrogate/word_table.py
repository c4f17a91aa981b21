"""A vocabulary -> a vector, a weight and a frequency for each of its tokens: what a surrogate starts as the mean of.

| made by | vectors | weights | frequencies |
|---|---|---|---|
| a light generator of the same vocabulary | its token vectors | what it learned | its unigram distribution |
| a language model of any vocabulary | its states after a bridge, the token being the sentence | a / (a + p) | counts |

A language model reads every word once, which takes minutes, so its states are kept in the Hugging Face cache.
"""

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
from ctxsim_hf.context_models.registry import describe_context_model
from ctxsim_hf.encoder.vector_checks import check_vectors
from ctxsim_hf.origin.layout import default_device
from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.runtime.errors import UserError

FORMAT = 1  # part of the digest: a change of layout must not meet old arrays
SIF_SMOOTHING = 1e-3  # a in a / (a + p)
STATES_WHITENING = 0.7  # best for states of a language model on the validation split of STSb, from 0.5 to 0.7
BYTE = re.compile("<0x[0-9A-F]{2}>")
NOT_TEXT = "\ufffd"  # what a decoder makes of bytes that are no whole letter


@dataclass(frozen=True)
class TokenTable:
    vectors: torch.Tensor  # (tokens, vector size), float64
    weights: torch.Tensor  # (tokens,): of a vector in a sentence's mean, 0 if the token is no text
    frequencies: torch.Tensor  # (tokens,): shares of the tokens of a text
    whitening: float = 0.5  # the power that suits the vectors; for a light generator's, that of Origin's scores

    @classmethod
    @torch.no_grad()
    def from_light_generator(cls, generator: LightContextGeneratorModel) -> "TokenTable":
        return cls(
            generator.input_embeddings.weight.double(),
            torch.sigmoid(generator.token_weight_logits.double()),
            torch.softmax(generator.output_bias.double(), 0),
        )

    @classmethod
    def from_language_model(cls, folder: Path, tokenizer: TokenizersBackend, counts: np.ndarray) -> "TokenTable":
        """Ask the language model in a folder for a vector of every token that is text.

        Args:
            folder (`Path`): A causal language model; its settings say by which bridges it is asked. States of several
                bridges stand side by side.
            tokenizer (`TokenizersBackend`): The surrogate's, whose tokens these are.
            counts (`np.ndarray`): How often each token occurs in a text like those to be compared.
        """
        texts = token_texts(tokenizer)
        words = sorted({text for text in texts if text})
        if not words:
            raise UserError("expected a tokenizer whose tokens are words or pieces of words, but none of them is text")
        states = torch.from_numpy(word_states(folder, words)).double().flatten(1)
        places = {word: place for place, word in enumerate(words)}
        known = torch.tensor([bool(text) for text in texts])
        vectors = states.new_zeros(len(texts), states.shape[1])
        vectors[known] = states[[places[text] for text in texts if text]]
        frequencies = torch.from_numpy(counts + 1.0)  # a token that was not seen may still come
        frequencies /= frequencies.sum()
        return cls(vectors, known * (SIF_SMOOTHING / (SIF_SMOOTHING + frequencies)), frequencies, STATES_WHITENING)


def token_texts(tokenizer: TokenizersBackend) -> list[str]:
    """Return each token of a vocabulary as it is spelled in a text, without marks of where a word starts or goes on;
    nothing for bytes and special tokens."""
    added = tokenizer.added_tokens_decoder.items()
    special = {*tokenizer.all_special_ids, *(number for number, token in added if token.special)}
    return [
        "" if number in special or BYTE.fullmatch(token) else _spelled(tokenizer, token)
        for number, token in enumerate(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    ]


def _spelled(tokenizer: TokenizersBackend, token: str) -> str:
    # After another token, since decoders treat the first one of a text in ways of their own.
    text = tokenizer.convert_tokens_to_string(["a", token]).removeprefix("a").strip()
    return "" if NOT_TEXT in text else text


def word_states(folder: Path, words: list[str]) -> np.ndarray:
    """Return the states of a language model after each bridge that takes a word: (words, bridges, hidden). They come
    from the cache if these words were asked before."""
    settings = asdict(CausalSettings.load(folder))
    made_from = [FORMAT, describe_context_model(folder), settings["bridges"], settings["layer"], words]

    def build(empty: Path) -> None:
        states = CausalContextModel.load(folder, default_device()).vectors(words)
        np.save(empty / "states.npy", check_vectors(states))

    states: np.ndarray = np.load(cached_folder("word-states", made_from, build) / "states.npy")
    return states
