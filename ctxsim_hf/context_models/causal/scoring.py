"""A causal language model as a context model, used as it is: what the world already knows.

| term | question |
|---|---|
| `right` | log p(c_> given c_<, s) |
| `sentence` | log p(s given c_<): the right side comes later, and a causal model does not see it |

`left` is not asked of it: that would take a model that reads backwards. Text is what it was trained on: the sentences
of the left side, the sentence, those of the right side, with spaces between.

Beside retrieved contexts it knows *cloze contexts*, which are words: after a bridge such as `This sentence: "{}" means
in one word: "` its next-word distribution is log p(c | s) of every one-word context at once. The logits are a linear
map of the state before the output layer, so to compare states is to compare these score vectors: Eq. 3 with contexts
that are words, in closed form, from one forward pass a sentence.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from tqdm import tqdm
from transformers import PreTrainedModel, TokenizersBackend

from ctxsim_hf.context_models.base import MODEL_FILES, ContextModel
from ctxsim_hf.context_models.causal.loading import GGUF, check_fits, load_causal, longest_text, start_ids
from ctxsim_hf.context_models.causal.output_layer import OutputLayer
from ctxsim_hf.context_models.causal.prefix_batches import Batch, PrefixBatches
from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.fast_tokenizer import TOKENIZER_FILES

LOGITS_PER_BLOCK = 256  # target tokens whose logits over the vocabulary are held at a time
BAR_FROM = 200  # sentences that take long enough for a progress bar


class ContextIds(NamedTuple):
    left: list[int]
    right: list[int]


class CausalContextModel(ContextModel):
    is_slow = True
    files: ClassVar[tuple[str, ...]] = (*MODEL_FILES, *TOKENIZER_FILES, GGUF, SETTINGS_FILE)

    def __init__(
        self, model: PreTrainedModel, tokenizer: TokenizersBackend, settings: CausalSettings | None = None
    ) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings or CausalSettings()
        self.width, self.terms = self.settings.width, tuple(self.settings.terms)
        self._start = start_ids(tokenizer)
        head = model.get_output_embeddings()
        if head is None:
            raise UserError(f"expected a causal language model with its head, got a {type(model).__name__}")
        self._head, self._logits = head, OutputLayer(model)
        layers = model.config.get_text_config().num_hidden_layers
        if not -layers <= self.settings.layer <= -1:
            raise UserError(f"layer must be from -{layers} to -1 for this model, got {self.settings.layer}")
        if self.terms:
            check_fits(model.config, self.settings, sides=2 if "right" in self.terms else 1)

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        model, tokenizer = load_causal(folder, device)
        return cls(model, tokenizer, CausalSettings.load(folder))

    def change(self, **settings: Any) -> None:
        """Change some of the settings from now on. Without terms, retrieved contexts are left to other models."""
        self.settings = replace(self.settings, **settings)
        self.terms = tuple(self.settings.terms)

    def prepare_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        return self._ids(sentences)

    def prepare_contexts(self, contexts: Contexts) -> list[ContextIds]:
        texts = contexts.texts(self.width)
        sides = self._ids([sentence for left, right in texts for sentence in (*left, *right)])
        found, place = [], 0
        for left, right in texts:
            middle, end = place + len(left), place + len(left) + len(right)
            found.append(ContextIds(list(chain(*sides[place:middle])), list(chain(*sides[middle:end]))))
            place = end
        return found

    def score(self, term: str, sentences: list[list[int]], contexts: list[ContextIds]) -> np.ndarray:
        scores = np.zeros((len(sentences), len(contexts)), np.float32)
        batches = PrefixBatches(self.model.base_model)
        for column, context in enumerate(contexts if sentences else []):
            # The left side is the beginning that all sentences share in this context.
            prefix = [*self._start, *context.left]
            right = context.right if term == "right" else []
            rows = [[*prefix, *sentence, *right] for sentence in sentences]
            for batch in batches(rows, len(prefix)):
                own = torch.tensor([len(sentences[row]) for row in batch.rows])
                starts, ends = (own, batch.lengths) if term == "right" else (torch.zeros_like(own), own)
                if not prefix:  # the first token of all is foretold by nothing, and not counted
                    starts = starts.clamp(min=1)
                scores[batch.rows, column] = self._mean_log_prob(batch, starts, ends)
        return scores

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the states at the end of each bridge, (sentences, bridges, hidden), float32."""
        return self._bridge_states(sentences, self.settings.layer)

    @torch.inference_mode()
    def word_scores(self, sentences: Sequence[str]) -> np.ndarray:
        """Return log p of every token as a one-word context, averaged over bridges: (sentences, vocabulary)."""
        states = torch.from_numpy(self._bridge_states(sentences, layer=-1)).to(self.model.device, self.model.dtype)
        scores = [self._logits(states[:, bridge]).log_softmax(-1) for bridge in range(states.shape[1])]
        found: np.ndarray = torch.stack(scores).mean(0).cpu().numpy()
        return found

    @cached_property
    def words(self) -> list[str]:
        """The text of every token of `word_scores`, without the space that it may begin with."""
        ids = range(self._head.out_features)
        return [text.strip() for text in self.tokenizer.batch_decode([[number] for number in ids])]

    def _bridge_states(self, sentences: Sequence[str], layer: int) -> np.ndarray:
        states = np.empty((len(sentences), len(self.settings.bridges), self._head.in_features), np.float32)
        batches = PrefixBatches(self.model.base_model, layer)
        total = len(sentences) * len(self.settings.bridges)
        with tqdm(total=total, desc="cloze", unit="sentence", disable=None if total >= BAR_FROM else True) as bar:
            for number, bridge in enumerate(self.settings.bridges if sentences else []):
                # Tokenised as one text: a full stop and a quotation mark after it are one token in many vocabularies.
                rows = self._whole_ids([bridge.replace("{}", sentence) for sentence in sentences])
                for batch in batches(rows, advance=bar.update):
                    last = batch.states[torch.arange(len(batch.rows)), batch.lengths]
                    states[batch.rows, number] = last.float().cpu().numpy()
        return states

    def _ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenise sentences as they stand within a text, after a space."""
        if not sentences:
            return []  # a fast tokenizer takes no empty batch
        encoded = self.tokenizer([f" {sentence}" for sentence in sentences], add_special_tokens=False)["input_ids"]
        return [ids[: self.settings.max_sentence_tokens] for ids in encoded]

    def _whole_ids(self, texts: list[str]) -> list[list[int]]:
        rows = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        longest = max(map(len, rows)) + len(self._start)
        limit = longest_text(self.model.config)
        if limit is not None and longest > limit:
            text = texts[max(range(len(rows)), key=lambda row: len(rows[row]))]
            raise UserError(f"the model reads {limit} tokens at most, but a text has {longest}: {text[:80]!r}")
        return [[*self._start, *row] for row in rows]

    @torch.inference_mode()
    def _mean_log_prob(self, batch: Batch, starts: torch.Tensor, ends: torch.Tensor) -> np.ndarray:
        """Return the mean log-probability of the tokens from `starts` up to `ends` of each row."""
        places = torch.arange(batch.ids.shape[1])
        counted = (places >= starts[:, None]) & (places < ends[:, None])  # (rows, tokens)
        states, tokens = batch.states[:, :-1][counted], batch.ids[counted].to(batch.states.device)
        parts = [
            -torch.nn.functional.cross_entropy(self._logits(block), ids, reduction="none")
            for block, ids in zip(states.split(LOGITS_PER_BLOCK), tokens.split(LOGITS_PER_BLOCK), strict=True)
        ]
        found = torch.zeros(counted.shape)
        found[counted] = torch.cat([torch.zeros(0), *(part.cpu() for part in parts)])
        means: np.ndarray = (found.sum(1) / counted.sum(1).clamp(min=1)).numpy()
        return means
