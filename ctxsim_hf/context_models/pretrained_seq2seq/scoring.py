"""A pretrained BART or T5 as a context model: all three generative terms of Eq. 3, from text, without training.

    log p(target | the rest of the text, with a mark in the target's place) / number of the target's tokens

How the text is put to the model: templates.py. Every sentence is tokenised by itself and as it stands within a text,
after a space: its tokens are then the same wherever it stands, so that it is always clear which tokens are the
target's. (Tokenised together, two parts could share a token; and byte-level BPE, as BART has it, has one token for a
word after a space and another for the same word at the start. SentencePiece, as T5 has it, puts that space itself and
takes a second one away.)

The source of the term `sentence` is the context alone: it is encoded once for all sentences that are scored together.
Its states are not kept after that, since those of one context take hundreds of kilobytes. The other two terms have a
source of their own for every pair.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, TokenizersBackend

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.pretrained_seq2seq.loading import check_fits, load_seq2seq
from ctxsim_hf.context_models.pretrained_seq2seq.questions import Questions, Sides
from ctxsim_hf.context_models.pretrained_seq2seq.templates import TEMPLATES, TemplateIds
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE, ReadingSettings
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.context_models.token_budget import padded_batches
from ctxsim_hf.text.fast_tokenizer import open_tokenizer

TOKENS_PER_BLOCK = 256  # target tokens whose logits over the vocabulary are held at a time


class PretrainedSeq2SeqContextModel(ContextModel):
    r"""
    Args:
        model (`PreTrainedModel`): A seq2seq language model of a type in `TEMPLATES`.
        tokenizer (`TokenizersBackend`): Its own.
        settings (`ReadingSettings`, *optional*): None means the defaults.
    """

    terms = DIRECTIONS
    files: ClassVar[tuple[str, ...]] = (*ContextModel.files, SETTINGS_FILE)

    def __init__(
        self, model: PreTrainedModel, tokenizer: TokenizersBackend, settings: ReadingSettings | None = None
    ) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings or ReadingSettings()
        self.width = self.settings.width
        config = model.config
        check_fits(config, tokenizer, self.settings)
        template = TEMPLATES[config.model_type]
        self._template = TemplateIds(template, tokenizer)
        scaled = template.scaled_if is not None and getattr(config, template.scaled_if)
        self._scale = config.d_model**-0.5 if scaled else 1.0
        self._bias = getattr(model, "final_logits_bias", None)  # BART's

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        return cls(load_seq2seq(folder, device), open_tokenizer(folder), ReadingSettings.load(folder))

    def prepare_sentences(self, sentences: Sequence[str]) -> list[np.ndarray]:
        if not sentences:
            return []
        # Text that mentions <mask> must not open a second gap. (Sentinels are pieces of T5's vocabulary, and stay.)
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        rows = self.tokenizer([f" {sentence}" for sentence in sentences], **options)["input_ids"]
        return [np.array(row[: self.settings.max_sentence_tokens], dtype=np.int64) for row in rows]

    def prepare_contexts(self, contexts: Contexts) -> list[Sides]:
        texts = contexts.texts(self.width)
        ids = iter(self.prepare_sentences([sentence for sides in texts for side in sides for sentence in side]))
        nothing = np.zeros(0, np.int64)
        return [Sides(*(np.concatenate([nothing, *(next(ids) for _ in side)]) for side in sides)) for sides in texts]

    @torch.inference_mode()
    def score(self, term: str, sentences: list[np.ndarray], contexts: list[Sides]) -> np.ndarray:
        found = np.zeros(len(sentences) * len(contexts), np.float32)
        questions = Questions(self._template, term, sentences, contexts)
        for different, pairs in questions.by_source():
            states, mask = self._encode([questions.source(pair) for pair in different])
            lengths = questions.decoder_lengths[pairs] + mask.shape[1]
            for rows in padded_batches(np.argsort(lengths, kind="stable"), lengths):
                sources = torch.from_numpy(rows % len(different)).to(mask.device)
                ids = [questions.decoder(pair) for pair in pairs[rows]]
                targets = questions.target_lengths[pairs[rows]]
                sums = self._log_probs(states[sources], mask[sources], ids, targets)
                found[pairs[rows]] = sums / np.maximum(targets, 1)  # a side without a sentence scores 0
        return found.reshape(len(sentences), len(contexts))

    def _encode(self, sources: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the encoder's states and their mask: (sources, tokens, d_model), (sources, tokens)."""
        ids = _stack(sources).to(self.model.device)
        lengths = torch.tensor([len(source) for source in sources], device=ids.device)
        mask = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()
        return self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state, mask

    def _log_probs(
        self, states: torch.Tensor, mask: torch.Tensor, decoder_ids: list[np.ndarray], target_lengths: np.ndarray
    ) -> np.ndarray:
        """Return the sum over the log-probabilities of the last tokens of each row, as many as its target has."""
        labels = _stack(decoder_ids)
        starts = torch.full((len(labels), 1), self.model.config.decoder_start_token_id)
        hidden = self.model.get_decoder()(
            # Padding comes last, where a causal decoder sees it from nowhere else.
            input_ids=torch.cat([starts, labels[:, :-1]], dim=1).to(self.model.device),
            encoder_hidden_states=states,
            encoder_attention_mask=mask,
            use_cache=False,
        ).last_hidden_state  # (rows, tokens, d_model)
        ends = torch.tensor([len(ids) for ids in decoder_ids])[:, None]
        places = torch.arange(labels.shape[1])
        counted = (places < ends) & (places >= ends - torch.from_numpy(target_lengths)[:, None])
        found = torch.zeros(labels.shape)
        found[counted] = self._token_log_probs(hidden[counted.to(hidden.device)], labels[counted]).cpu()
        return found.sum(1).numpy()

    def _token_log_probs(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return log p of each token, block by block, so that no (all tokens, vocabulary) tensor is ever held."""
        scores = [hidden.new_zeros(0)]
        for states, ids in zip(hidden.split(TOKENS_PER_BLOCK), tokens.split(TOKENS_PER_BLOCK), strict=True):
            logits = self.model.get_output_embeddings()(states * self._scale)  # (block, vocabulary)
            if self._bias is not None:
                logits = logits + self._bias
            scores.append(-torch.nn.functional.cross_entropy(logits, ids.to(logits.device), reduction="none"))
        return torch.cat(scores)


def _stack(rows: list[np.ndarray]) -> torch.Tensor:
    """Return rows as one matrix, padded on the right by what nobody looks at."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
