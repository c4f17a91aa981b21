"""Two sentences, read together as `<s> s1 </s></s> s2 </s>` -> their score (paper, section 3.4)."""

import os
from typing import Any

import torch
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from ctxsim_hf.encoder.hub_files import hub_arguments, resolve_config
from ctxsim_hf.encoder.plain_encoder import classifier_class
from ctxsim_hf.encoder.sentence_transformers_files import write_cross_encoder_files


class CrossSurrogateModel(PreTrainedModel):
    """An encoder with a classifier of one regression label: `logits` (pairs, 1) are the scores, and the loss is their
    mean squared error. The input is `tokenizer(sentences1, sentences2)`.

    As with [`SurrogateModel`], one class covers many architectures: `scorer` is the model for sequence classification
    that transformers has for the type in the configuration, and the folder is that of this model.
    """

    config_class = AutoConfig  # each encoder has its own
    base_model_prefix = "scorer"
    supports_gradient_checkpointing = True
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = _supports_attention_backend = True

    def __init__(self, config: PreTrainedConfig, scorer: PreTrainedModel | None = None) -> None:
        _prepare_to_score(config)
        scorer = classifier_class(config)(config) if scorer is None else scorer
        super().__init__(config)
        self.scorer = scorer
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Open a cross surrogate, or any encoder with a new classifier: see `PreTrainedModel.from_pretrained`."""
        config = resolve_config(pretrained_model_name_or_path, kwargs.pop("config", None), hub_arguments(kwargs))
        for name in [name for name in kwargs if name.endswith(("dropout", "dropout_prob")) and hasattr(config, name)]:
            setattr(config, name, kwargs.pop(name))
        _prepare_to_score(config)
        scorer_class = classifier_class(config)
        scorer = scorer_class.from_pretrained(pretrained_model_name_or_path, *args, config=config, **kwargs)
        if isinstance(scorer, tuple):  # with output_loading_info
            return cls(config, scorer[0]).eval(), scorer[1]
        return cls(config, scorer).eval()

    @property
    def base_model(self) -> Any:
        """The encoder without the classifier."""
        return self.scorer.base_model

    def init_weights(self) -> None:
        """Leave the weights as they are: the scorer has initialised its own."""

    def set_attn_implementation(self, *args: Any, **kwargs: Any) -> None:
        self.scorer.set_attn_implementation(*args, **kwargs)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Score pairs: see the `forward` of the scorer."""
        if token_type_ids is not None:
            kwargs["token_type_ids"] = token_type_ids
        return self.scorer(input_ids, attention_mask=attention_mask, labels=labels, **kwargs)

    def save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        state_dict: dict[str, torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        """Save the model and the files of sentence-transformers, so that `CrossEncoder(folder)` opens it."""
        weights = self.state_dict() if state_dict is None else state_dict
        weights = {name.removeprefix("scorer."): weight for name, weight in weights.items()}
        kwargs["save_original_format"] = False
        super().save_pretrained(save_directory, is_main_process=is_main_process, state_dict=weights, **kwargs)
        if is_main_process:
            write_cross_encoder_files(save_directory, self.config)


def _prepare_to_score(config: PreTrainedConfig) -> None:
    config.num_labels = 1
    config.problem_type = "regression"
    # Otherwise CrossEncoder of sentence-transformers would apply a sigmoid to the score.
    config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
