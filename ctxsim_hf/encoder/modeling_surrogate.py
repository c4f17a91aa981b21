"""Sentences -> vectors whose cosine is their similarity: the fast surrogate of Origin (paper, section 3.4).

    h = mean of the last layer's states over a sentence's tokens,    similarity = cos(h_1, h_2)
    loss = mean of (similarity - Origin's score)^2

The model reads one sentence at a time; that in modeling_cross_surrogate.py reads both together.
"""

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from ctxsim_hf.context_models.input_checks import check_index, check_tokens
from ctxsim_hf.encoder.hub_files import hub_arguments, resolve_config
from ctxsim_hf.encoder.plain_encoder import encoder_class, max_tokens, new_encoder
from ctxsim_hf.encoder.pooling import POOLINGS
from ctxsim_hf.encoder.sentence_transformers_files import (
    Pooling,
    TextSettings,
    read_pooling,
    read_text_settings,
    write_sentence_transformer_files,
)
from ctxsim_hf.encoder.static_encoder import StaticConfig, read_static_table


@dataclass
class SurrogateOutput(ModelOutput):
    """Output of [`SurrogateModel`].

    Args:
        loss (`torch.FloatTensor`, *optional*): Mean squared error of the similarities, if labels were given.
        last_hidden_state (`torch.FloatTensor` of shape `(sentences, tokens, hidden)`): The states of the last layer.
        sentence_embedding (`torch.FloatTensor` of shape `(sentences, hidden)`): The pooled states.
        similarity (`torch.FloatTensor` of shape `(pairs,)`, *optional*): Cosines, if pairs were given.
        hidden_states, attentions (*optional*): Those of the encoder, if requested.
    """

    # Without labels the first item is `last_hidden_state`, as code written for the plain encoder expects.
    loss: torch.Tensor | None = None
    last_hidden_state: torch.Tensor | None = None
    sentence_embedding: torch.Tensor | None = None
    similarity: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class SurrogateModel(PreTrainedModel):
    r"""An encoder and the pooling of its states.

    One class covers many architectures, since it only needs `last_hidden_state` of an encoder: `encoder` is the model
    of transformers for the type in the configuration (BERT, RoBERTa, DistilBERT, MPNet, ModernBERT, ...), and the
    pooling has no weights. So the folder of a surrogate is that of the plain encoder, with its `model_type` and the
    names of its weights, and this package is not needed to open it: `AutoModel` gives the plain encoder, and
    `SentenceTransformer`, for which the pooling is saved too, gives the same vectors. After `import ctxsim_hf`,
    `AutoModel` gives a `SurrogateModel` if `architectures` names it; see registration.py. Conversely,
    `SurrogateModel.from_pretrained` opens any encoder, with or without a head, with the pooling of a
    sentence-transformers folder. A StaticEmbedding of sentence-transformers or a model of model2vec is opened too: its
    table is an encoder whose states are the vectors of the tokens, and whose input has no special tokens.

    Args:
        config (`PreTrainedConfig`): Configuration of the plain encoder.
        add_pooling_layer (`bool`): Passed on to encoders that have such an argument. Sentence-transformers passes it
            to the result of AutoModel; our pooling does not use it.
        pooling (`Pooling`, *optional*): How states become a vector. None means their mean.
        text (`TextSettings`, *optional*): Prompts and maximum length, kept for sentence-transformers and
            [`SentenceEncoder`]; the model itself reads tokens. None means no prompt.
    """

    config_class = AutoConfig  # each encoder has its own
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    # The encoder decides which attention it supports.
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = _supports_attention_backend = True
    # Poolers and heads of the checkpoint that training starts from.
    _keys_to_ignore_on_load_unexpected = (r"pooler", r"^(?!encoder\.)")

    def __init__(
        self,
        config: PreTrainedConfig,
        add_pooling_layer: bool = False,
        pooling: Pooling | None = None,
        text: TextSettings | None = None,
    ) -> None:
        encoder = new_encoder(config, add_pooling_layer)  # first, since it sets the attention in the configuration
        super().__init__(config)
        self.encoder = encoder
        self.pooling, self.text = pooling or Pooling(), text or TextSettings()
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Open a surrogate, or any encoder, as a surrogate: see `PreTrainedModel.from_pretrained`."""
        name, hub = pretrained_model_name_or_path, hub_arguments(kwargs)
        kwargs.setdefault("pooling", read_pooling(name, **hub))
        kwargs.setdefault("text", read_text_settings(name, **hub))
        if (table := read_static_table(name, **hub)) is not None:
            return static_surrogate(cls, table, kwargs["pooling"], kwargs["text"])
        config = resolve_config(name, kwargs.get("config"), hub)
        # A checkpoint with a head stores the encoder under this prefix.
        kwargs.setdefault("key_mapping", {rf"^{encoder_class(config).base_model_prefix}\.": "encoder."})
        return super().from_pretrained(name, *args, **kwargs)

    def set_attn_implementation(self, *args: Any, **kwargs: Any) -> None:
        self.encoder.set_attn_implementation(*args, **kwargs)

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
        r"""Compute sentence embeddings, the similarities of pairs, and the loss if labels are given.

        Pairs are given by indices of sentences, so a sentence that occurs in many pairs is encoded once.

        Args:
            input_ids (`(sentences, tokens)`): Sentences with the special tokens of the tokenizer, padded.
            attention_mask (`(sentences, tokens)`, *optional*): 0 at padding. None masks the pad id.
            sentence1_index, sentence2_index (`(pairs,)`, *optional*): Rows of `input_ids`. None gives no similarity.
            labels (`(pairs,)`, *optional*): The score of each pair. None gives no loss.
        """
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        check_tokens(input_ids, attention_mask)
        longest = max_tokens(self.config)
        if longest is not None and input_ids.shape[1] > longest:
            raise ValueError(f"Sentences may have at most {longest} tokens, got {input_ids.shape[1]}. Truncate them.")
        outputs = self.encoder(input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        embedding = POOLINGS[self.pooling.mode](outputs.last_hidden_state, attention_mask)
        if self.pooling.normalize:
            embedding = nn.functional.normalize(embedding, dim=-1)
        similarity = _pair_similarity(embedding, sentence1_index, sentence2_index, labels)
        loss = None
        if similarity is not None and labels is not None:
            loss = nn.functional.mse_loss(similarity, labels.to(similarity))
        return SurrogateOutput(
            loss=loss,
            last_hidden_state=outputs.last_hidden_state,
            sentence_embedding=embedding,
            similarity=similarity,
            hidden_states=outputs.get("hidden_states"),
            attentions=outputs.get("attentions"),
        )

    def save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        state_dict: dict[str, torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        """Save the plain encoder and the files of sentence-transformers. With the tokenizer saved to the same folder,
        `SentenceTransformer(folder)` gives the same vectors."""
        weights = self.state_dict() if state_dict is None else state_dict
        weights = {name.removeprefix("encoder."): weight for name, weight in weights.items()}
        kwargs["save_original_format"] = False  # the checkpoint it started from may have had a head
        super().save_pretrained(save_directory, is_main_process=is_main_process, state_dict=weights, **kwargs)
        if is_main_process:
            write_sentence_transformer_files(save_directory, self.config, self.pooling, self.text)


@torch.no_grad()
def static_surrogate(
    kind: type[SurrogateModel], table: torch.Tensor, pooling: Pooling | None = None, text: TextSettings | None = None
) -> SurrogateModel:
    """Return a surrogate of this class whose encoder is a table of token vectors, (tokens, hidden)."""
    model = kind(StaticConfig(vocab_size=len(table), hidden_size=table.shape[1]), pooling=pooling, text=text)
    model.encoder.embedding.weight.copy_(table)
    return model.eval()


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
