"""A context (left, right) and a sentence -> the probability that the sentence belongs there (Eq. 1).

    p(y=1 | s, c_<, c_>) = sigmoid(head([h_<, h_s, h_>]))

h is the last state of each direction of a one-layer BiLSTM over a sentence's tokens; the h of a side with several
sentences is the mean of theirs. Sentence vectors depend on nothing but the sentence, so they can be stored. Both
heads first add a part of the context and a part of the sentence, so parts can be stored too:

    linear   logit = context_part + sentence_part                     (exactly Eq. 1)
    mlp      logit = w . relu(context_part + sentence_part) + b
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from ctxsim_hf.context_models.discriminator.configuration import ContextDiscriminatorConfig
from ctxsim_hf.context_models.input_checks import check_index, check_tokens, check_vocabulary

# Sentences of similar length go through the LSTM together, this many at a time. On a CPU this trains faster than one
# packed sequence, because oneDNN supports padded batches only, and little of a sorted batch is padding.
SENTENCES_PER_GROUP = 64


@dataclass
class ContextDiscriminatorOutput(ModelOutput):
    """Output of [`ContextDiscriminatorModel`].

    Args:
        loss (`torch.FloatTensor`, *optional*): Binary cross entropy, if labels were given.
        logits (`torch.FloatTensor` of the shape of `sentence_index`): log p/(1-p) of Eq. 1.
    """

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None


class ContextDiscriminatorModel(PreTrainedModel):
    """A BiLSTM over sentences, and a head over a sentence and its sides."""

    config: ContextDiscriminatorConfig
    base_model_prefix = "discriminator"
    main_input_name = "input_ids"
    _no_split_modules = ("LSTM",)
    _input_embed_layer = "embeddings"

    def __init__(self, config: ContextDiscriminatorConfig) -> None:
        super().__init__(config)
        vector_size = 2 * config.hidden_size
        part_size = config.head_size if config.head == "mlp" else 1
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.forward_lstm = nn.LSTM(config.embedding_size, config.hidden_size, batch_first=True)
        self.backward_lstm = nn.LSTM(config.embedding_size, config.hidden_size, batch_first=True)
        # Together these two are one linear layer over [h_<, h_s, h_>], split so that each part can be stored.
        self.context_projection = nn.Linear(2 * vector_size, part_size)
        self.sentence_projection = nn.Linear(vector_size, part_size, bias=False)
        self.output_projection = nn.Linear(part_size, 1) if config.head == "mlp" else None
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def encode_sentences(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the vectors of sentences: right-padded (sentences, tokens) -> (sentences, 2 * hidden).

        A sentence whose mask is all zero gets the zero vector.
        """
        check_tokens(input_ids, attention_mask)
        check_vocabulary(input_ids, self.config.vocab_size)
        mask = attention_mask.long()
        if bool((mask[:, 1:] > mask[:, :-1]).any()):
            raise ValueError("Sentences must be padded on the right, got a mask where a 1 follows a 0.")
        lengths = mask.sum(-1)  # (sentences,)
        order = torch.argsort(lengths, descending=True, stable=True)
        order = order[: int((lengths > 0).sum())]
        if len(order) == 0:
            return self.embeddings.weight.new_zeros(len(input_ids), 2 * self.config.hidden_size)
        states = torch.cat([self._last_states(input_ids[g], lengths[g]) for g in order.split(SENTENCES_PER_GROUP)])
        return states.new_zeros(len(input_ids), states.shape[-1]).index_copy(0, order, states)

    def _last_states(self, input_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return the last states of both directions, for non-empty sentences sorted from long to short."""
        longest = int(lengths[0])
        tokens = self.dropout(self.embeddings(input_ids[:, :longest]))  # (sentences, tokens, embedding)
        # The backward LSTM reads the tokens reversed within the length of each sentence, so that padding stays last.
        places = torch.arange(longest, device=lengths.device)
        reversed_places = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
        reversed_tokens = tokens.gather(1, reversed_places[:, :, None].expand_as(tokens))
        rows = torch.arange(len(lengths), device=lengths.device)
        states = [lstm(read)[0] for lstm, read in ((self.forward_lstm, tokens), (self.backward_lstm, reversed_tokens))]
        return torch.cat([state[rows, lengths - 1] for state in states], -1)  # (sentences, 2 * hidden)

    @staticmethod
    def side_vector(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the mean of the vectors of present sentences, or zero: (..., sentences, size) -> (..., size)."""
        weights = mask.to(vectors.dtype)
        return (vectors * weights[..., None]).sum(-2) / weights.sum(-1, keepdim=True).clamp(min=1)

    def context_part(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return the part of a context in the first layer of the head: two (..., 2 * hidden) -> (..., part)."""
        return self.context_projection(torch.cat([left, right], -1))

    def sentence_part(self, sentence: torch.Tensor) -> torch.Tensor:
        """Return the part of a sentence in the first layer of the head: (..., 2 * hidden) -> (..., part)."""
        return self.sentence_projection(sentence)

    def score_parts(self, context_part: torch.Tensor, sentence_part: torch.Tensor) -> torch.Tensor:
        """Return the logits of two parts, which are broadcast over all axes but the last."""
        total = context_part + sentence_part  # (..., part)
        if self.output_projection is not None:
            total = self.output_projection(self.dropout(torch.relu(total)))  # (..., 1)
        return total.squeeze(-1)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        left_index: torch.Tensor,
        sentence_index: torch.Tensor,
        right_index: torch.Tensor,
        labels: torch.Tensor | None = None,
    ) -> ContextDiscriminatorOutput:
        r"""Compute the logits of sentences in contexts, and the loss if labels are given.

        Args:
            input_ids, attention_mask (`(sentences, tokens)`): Distinct sentences, padded on the right; a sentence that
                occurs in several contexts is encoded once.
            left_index, right_index (`(batch, width)`): The sentences on the sides of each context, -1 for none.
            sentence_index (`(batch,)` or `(batch, candidates)`): The sentence in the middle, or the true one and its
                replacements.
            labels (of the shape of `sentence_index`, *optional*): 1 if the sentence is the true one, else 0. None
                gives no loss.
        """
        check_index(len(input_ids), left_index=left_index, right_index=right_index, sentence_index=sentence_index)
        vectors = self.encode_sentences(input_ids, attention_mask)  # (sentences, 2 * hidden)
        left, right = (
            self.side_vector(vectors[index.clamp(min=0)], index >= 0) for index in (left_index, right_index)
        )
        context = self.context_part(left, right)  # (batch, part)
        if sentence_index.dim() == 2:
            context = context[:, None]  # broadcast over the candidates
        logits = self.score_parts(context, self.sentence_part(vectors)[sentence_index])
        loss = None
        if labels is not None:
            if labels.shape != logits.shape:
                raise ValueError(
                    f"`labels` must have the shape of the logits, {tuple(logits.shape)}, got {tuple(labels.shape)}."
                )
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return ContextDiscriminatorOutput(loss=loss, logits=logits)  # type: ignore[arg-type]
