"""Turns sentences into vectors whose cosine is their similarity: the fast stand-in for Origin (paper, section 3.4).

    h = mean of the last layer's states over a sentence's tokens,    similarity = cos(h_1, h_2)
    loss = mean of (similarity - Origin's score)^2

[`SurrogateModel`] is a RoBERTa and its checkpoints say `model_type: roberta`, so nobody needs this package to open
them: `AutoModel` then gives a RobertaModel of the same weights, and `SentenceTransformer` the same vectors. After
`import ctxsim_hf` AutoModel gives a SurrogateModel, by `architectures`; see registration.py.

[`CrossSurrogateModel`] reads both sentences at once, `<s> s1 </s></s> s2 </s>`, and gives the score itself.
"""

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import RobertaConfig, RobertaForSequenceClassification, RobertaModel
from transformers.models.roberta.modeling_roberta import RobertaPreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from ctxsim_hf.context_models.input_checks import check_index, check_tokens
from ctxsim_hf.encoder.sentence_transformers_files import (
    max_tokens,
    write_cross_encoder_files,
    write_sentence_transformer_files,
)


@dataclass
class SurrogateOutput(ModelOutput):
    """
    Args:
        loss (`torch.FloatTensor`, *optional*): Mean squared error of the similarities, when labels were given.
        last_hidden_state (`torch.FloatTensor` of shape `(sentences, tokens, hidden)`)
        sentence_embedding (`torch.FloatTensor` of shape `(sentences, hidden)`)
        similarity (`torch.FloatTensor` of shape `(pairs,)`, *optional*): Cosine, when pairs were given.
        hidden_states, attentions (*optional*): As RobertaModel's, when asked for.
    """

    # Without labels the first is RobertaModel's first too, which is what code written for that one asks for.
    loss: torch.Tensor | None = None
    last_hidden_state: torch.Tensor | None = None
    sentence_embedding: torch.Tensor | None = None
    similarity: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class SurrogateModel(RobertaPreTrainedModel):
    config: RobertaConfig
    _keys_to_ignore_on_load_unexpected = (r"pooler", r"lm_head")  # of a RoBERTa one starts from

    def __init__(self, config: RobertaConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config)
        # The argument is RobertaModel's: sentence-transformers passes it to whatever AutoModel gives.
        self.roberta = RobertaModel(config, add_pooling_layer=add_pooling_layer)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        sentence1_index: torch.Tensor | None = None,
        sentence2_index: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> SurrogateOutput:
        r"""
        Pairs are named by the places of their sentences, so a sentence that stands in many pairs is read once.

        Args:
            input_ids (`(sentences, tokens)`): Each sentence as `<s> ... </s>`, padded.
            attention_mask (`(sentences, tokens)`, *optional*): 0 at padding. None takes the pad id for padding, as
                RoBERTa does when it counts positions.
            sentence1_index, sentence2_index (`(pairs,)`, *optional*): Rows of `input_ids`. None gives no similarity.
            labels (`(pairs,)`, *optional*): The score of each pair. None gives no loss.
        """
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        check_tokens(input_ids, attention_mask)
        if input_ids.shape[1] > (longest := max_tokens(self.config)):
            raise ValueError(f"Sentences may have {longest} tokens, got {input_ids.shape[1]}. Truncate them.")
        outputs = self.roberta(input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        embedding = mean_pooling(outputs.last_hidden_state, attention_mask)
        similarity = _pair_similarity(embedding, sentence1_index, sentence2_index, labels)
        loss = None
        if similarity is not None and labels is not None:
            loss = nn.functional.mse_loss(similarity, labels.to(similarity))
        return SurrogateOutput(
            loss=loss,
            last_hidden_state=outputs.last_hidden_state,
            sentence_embedding=embedding,
            similarity=similarity,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, **kwargs: Any
    ) -> None:
        """Save as every model does, and what sentence-transformers asks for beside it. With the tokenizer saved to
        the same folder, `SentenceTransformer(folder)` gives the same vectors."""
        super().save_pretrained(save_directory, is_main_process=is_main_process, **kwargs)
        if is_main_process:
            write_sentence_transformer_files(save_directory, self.config)


class CrossSurrogateModel(RobertaForSequenceClassification):
    """A RobertaForSequenceClassification of one regression label: `logits` (pairs, 1) are the scores, and the loss is
    their mean squared error. Reads `tokenizer(sentences1, sentences2)`."""

    def __init__(self, config: RobertaConfig) -> None:
        config.num_labels = 1
        config.problem_type = "regression"
        # Else sentence-transformers' CrossEncoder would put a sigmoid over the score.
        config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
        super().__init__(config)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, **kwargs: Any
    ) -> None:
        """As SurrogateModel's, for `CrossEncoder(folder)`."""
        super().save_pretrained(save_directory, is_main_process=is_main_process, **kwargs)
        if is_main_process:
            write_cross_encoder_files(save_directory, self.config)


def mean_pooling(token_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The mean over each sentence's real tokens: (sentences, tokens, hidden) -> (sentences, hidden).

    A sentence whose mask is all zero gets the zero vector.
    """
    mask = attention_mask.to(token_states.dtype).unsqueeze(-1)
    return (token_states * mask).sum(1) / mask.sum(1).clamp(min=1)


def _pair_similarity(
    embedding: torch.Tensor,
    sentence1_index: torch.Tensor | None,
    sentence2_index: torch.Tensor | None,
    labels: torch.Tensor | None,
) -> torch.Tensor | None:
    if sentence1_index is None or sentence2_index is None:
        if sentence1_index is not sentence2_index or labels is not None:
            raise ValueError("Give both `sentence1_index` and `sentence2_index`, or neither and no `labels`.")
        return None
    if sentence1_index.dim() != 1:
        raise ValueError(f"`sentence1_index` must be (pairs,), got the shape {tuple(sentence1_index.shape)}.")
    for name, tensor in {"sentence2_index": sentence2_index, "labels": labels}.items():
        if tensor is not None and tensor.shape != sentence1_index.shape:
            raise ValueError(
                f"`{name}` must have the shape of `sentence1_index`, {tuple(sentence1_index.shape)}, "
                f"got {tuple(tensor.shape)}."
            )
    check_index(len(embedding), sentence1_index=sentence1_index, sentence2_index=sentence2_index)
    return nn.functional.cosine_similarity(embedding[sentence1_index], embedding[sentence2_index])
