"""Part of a window of sentences -> the probability of the rest, token by token (Eq. 2).

    log p(target | source) = sum_j log p(target_j | source, target_<j)

| direction | source | target |
|---|---|---|
| `sentence` | left and right side | the sentence |
| `left` | sentence and right side | left side |
| `right` | left side and sentence | right side |

The model is BART with the sentence-position embeddings of the paper and, for `direction="all"`, a direction embedding.
Both start at zero, so a model opened from a BART checkpoint answers as BART does until it is trained. The numbering of
sentences is described at `max_sentences` of [`ContextGeneratorConfig`].
"""

from typing import Any

import torch
from torch import nn
from transformers import BartForConditionalGeneration
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import BartEncoder

from ctxsim_hf.context_models.seq2seq.configuration import ContextGeneratorConfig
from ctxsim_hf.context_models.terms import DIRECTIONS

IGNORED = -100  # the label of padding
# Target tokens whose logits over the vocabulary are in memory at a time when scoring; few fit the cache of a CPU.
TOKENS_PER_BLOCK = 256


class PlaceEmbedding(nn.Embedding):
    """Learned vectors that are added to those of tokens, initialised to zero."""


class ContextEncoder(BartEncoder):
    """BART's encoder with embeddings of the sentence position and, for `direction="all"`, of the direction."""

    config: ContextGeneratorConfig

    def __init__(self, config: ContextGeneratorConfig) -> None:
        super().__init__(config)
        self.embed_sentences = PlaceEmbedding(config.max_sentences, config.d_model)
        if config.direction == "all":
            self.embed_directions = PlaceEmbedding(len(DIRECTIONS), config.d_model)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, PlaceEmbedding):
            init.zeros_(module.weight)
        else:
            super()._init_weights(module)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        sentence_ids: torch.Tensor | None = None,
        direction_ids: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        """See [`ContextGeneratorModel.forward`]."""
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)  # (batch, tokens, d_model)
        places = self._place_vectors(inputs_embeds, sentence_ids, direction_ids)
        return super().forward(attention_mask=attention_mask, inputs_embeds=inputs_embeds + places, **kwargs)

    def _place_vectors(
        self, inputs_embeds: torch.Tensor, sentence_ids: torch.Tensor | None, direction_ids: torch.Tensor | None
    ) -> torch.Tensor:
        batch, tokens = inputs_embeds.shape[:2]
        if sentence_ids is None or sentence_ids.shape != (batch, tokens):
            came = "None" if sentence_ids is None else f"the shape {tuple(sentence_ids.shape)}"
            raise ValueError(f"`sentence_ids` must be (batch, tokens) = {(batch, tokens)} like the ids, got {came}.")
        places = self.embed_sentences(sentence_ids)  # (batch, tokens, d_model)
        if self.config.direction != "all":
            if direction_ids is not None:
                direction = self.config.direction
                raise ValueError(f"`direction_ids` must be None for a model of direction {direction!r}, got a tensor.")
            return places
        if direction_ids is None or direction_ids.shape != (batch,):
            came = "None" if direction_ids is None else f"the shape {tuple(direction_ids.shape)}"
            raise ValueError(f"`direction_ids` must be (batch,) = {(batch,)} for direction 'all', got {came}.")
        return places + self.embed_directions(direction_ids)[:, None]


class ContextGeneratorModel(BartForConditionalGeneration):
    """A BART that generates the sentence of a context, or one of its sides."""

    config: ContextGeneratorConfig

    def __init__(self, config: ContextGeneratorConfig) -> None:
        super().__init__(config)
        self.model.encoder = ContextEncoder(config)
        self.post_init()  # again, to tie the token embeddings of the new encoder

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        sentence_ids: torch.Tensor | None = None,
        direction_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        encoder_outputs: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        r"""Compute the logits of a target given its source, and the loss if labels are given.

        Args:
            input_ids (`(batch, tokens)`): The sentences of the source, concatenated and padded on the right.
            sentence_ids (`(batch, tokens)`): For each token the position of its sentence in the window; any valid
                position at padding.
            direction_ids (`(batch,)`, *optional*): Index of the direction in `DIRECTIONS`. Required if the direction
                of the model is `"all"`, else None.
            labels (`(batch, target tokens)`, *optional*): The target with its end token, -100 at padding. None gives
                no loss.
            encoder_outputs (*optional*): The result of `encode` for this source. None encodes it here.
        """
        if encoder_outputs is None:
            recorded = {name: kwargs[name] for name in ("output_attentions", "output_hidden_states") if name in kwargs}
            encoder_outputs = self.model.encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                sentence_ids=sentence_ids,
                direction_ids=direction_ids,
                **recorded,
            )
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            encoder_outputs=encoder_outputs,
            labels=labels,
            **kwargs,
        )

    def encode(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        sentence_ids: torch.Tensor,
        direction_ids: torch.Tensor | None = None,
    ) -> BaseModelOutput:
        """Encode sources once, to pass to `log_prob` or `forward` as `encoder_outputs` for many targets."""
        return self.model.encoder(
            input_ids=input_ids, attention_mask=attention_mask, sentence_ids=sentence_ids, direction_ids=direction_ids
        )

    @staticmethod
    def target_lengths(labels: torch.Tensor) -> torch.Tensor:
        """Return the number of target tokens, counting the end token: (..., target tokens) -> (...)."""
        return (labels != IGNORED).sum(-1)

    def log_prob(
        self,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor,
        sentence_ids: torch.Tensor | None,
        labels: torch.Tensor,
        direction_ids: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
    ) -> torch.Tensor:
        """Return the sum of the token log-probabilities of each target, including the end token.

        Labels (batch, target tokens) give (batch,); labels (batch, targets, target tokens) give (batch, targets), each
        source being encoded once for all its targets. With `encoder_outputs` from `encode`, the ids may be None; the
        attention mask of the source is still needed. A target that is all -100 scores 0.
        """
        if labels.dim() not in (2, 3) or len(labels) != len(attention_mask):
            raise ValueError(
                f"`labels` must be (batch, target tokens) or (batch, targets, target tokens) for a batch of "
                f"{len(attention_mask)}, got the shape {tuple(labels.shape)}."
            )
        if encoder_outputs is None:
            if input_ids is None or sentence_ids is None:
                raise ValueError(
                    "`log_prob` needs `input_ids` and `sentence_ids`, or else `encoder_outputs`; got neither."
                )
            encoder_outputs = self.encode(input_ids, attention_mask, sentence_ids, direction_ids)
        targets = labels.flatten(0, -2)  # (rows, target tokens)
        states = encoder_outputs.last_hidden_state
        if labels.dim() == 3:
            states = states.repeat_interleave(labels.shape[1], 0)
            attention_mask = attention_mask.repeat_interleave(labels.shape[1], 0)
        hidden = self.model.decoder(
            input_ids=self.prepare_decoder_input_ids_from_labels(targets),
            encoder_hidden_states=states,
            encoder_attention_mask=attention_mask,
            use_cache=False,
        ).last_hidden_state  # (rows, target tokens, d_model)
        real = targets != IGNORED
        scores = self._token_log_probs(hidden[real], targets[real])
        return scores.new_zeros(targets.shape).masked_scatter(real, scores).sum(-1).reshape(labels.shape[:-1])

    def _token_log_probs(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return log p of each token, block by block, so that no (all tokens, vocabulary) tensor is in memory."""
        scores = []
        for states, ids in zip(hidden.split(TOKENS_PER_BLOCK), tokens.split(TOKENS_PER_BLOCK), strict=True):
            logits = torch.addmm(self.final_logits_bias, states, self.lm_head.weight.T)  # (block, vocabulary)
            scores.append(-nn.functional.cross_entropy(logits, ids, reduction="none"))
        return torch.cat(scores)
