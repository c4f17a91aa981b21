"""A surrogate's folder -> its parts, checked: whatever opens gives the vectors that sentence-transformers gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, TokenizersBackend

from ctxsim_hf.encoder.modeling_surrogate import CrossSurrogateModel, SurrogateModel
from ctxsim_hf.encoder.plain_encoder import POSITIONS_AFTER_PAD, encoder_class, max_tokens
from ctxsim_hf.encoder.sentence_transformers_files import Pooling, read_pooling
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json
from ctxsim_hf.text.marks import Marks

NO_LIMIT = 2**31 - 1  # of a tokenizer and an encoder that both set none


@dataclass(frozen=True)
class SurrogateFolder:
    path: Path
    config: PreTrainedConfig
    tokenizer: TokenizersBackend
    pooling: Pooling
    max_tokens: int  # of a sentence, marks included

    @classmethod
    def open(cls, path: Path) -> "SurrogateFolder":
        for name in ("config.json", "tokenizer.json"):  # without the latter AutoTokenizer makes up an empty one
            if not (path / name).exists():
                raise UserError(f"expected a surrogate and its tokenizer in {str(path)!r}, but it has no {name}")
        config, tokenizer = AutoConfig.from_pretrained(path), AutoTokenizer.from_pretrained(path)
        _check_config(config, path)
        _check_tokenizer(tokenizer, config, path)
        _check_text(path)
        # As sentence-transformers decides it, so that both truncate alike.
        longest = read_json(path / "sentence_bert_config.json").get("max_seq_length") or tokenizer.model_max_length
        longest = min(longest, max_tokens(config) or NO_LIMIT, NO_LIMIT)
        if longest <= (marks := Marks.of(tokenizer).size):
            raise UserError(f"{str(path)!r} reads {longest} tokens, and {marks} of them are its tokenizer's marks")
        return cls(path, config, tokenizer, read_pooling(path), longest)

    def load_model(self) -> SurrogateModel:
        model, report = SurrogateModel.from_pretrained(
            self.path, config=self.config, pooling=self.pooling, output_loading_info=True
        )
        if missing := report["missing_keys"]:
            raise UserError(f"{str(self.path)!r} is no whole surrogate: it lacks {len(missing)} weights")
        return model


def _check_config(config: Any, path: Path) -> None:
    try:
        encoder_class(config)
    except UserError as error:
        raise UserError(f"{str(path)!r} holds no surrogate: {error}") from error
    if CrossSurrogateModel.__name__ in (config.architectures or ()):
        raise UserError(f"{str(path)!r} holds a cross surrogate, which scores pairs and has no vectors of sentences")


def _check_tokenizer(tokenizer: TokenizersBackend, config: PreTrainedConfig, path: Path) -> None:
    # Where positions are counted from the padding on, another pad id means other positions.
    other_pad = config.model_type in POSITIONS_AFTER_PAD and tokenizer.pad_token_id != config.pad_token_id
    if len(tokenizer) > config.vocab_size or other_pad:
        raise UserError(
            f"the tokenizer in {str(path)!r} is not the model's: it has {len(tokenizer)} tokens and the pad id "
            f"{tokenizer.pad_token_id}, the model {config.vocab_size} and {config.pad_token_id}"
        )


def _check_text(path: Path) -> None:
    """Refuse what sentence-transformers does to a sentence before it is tokenised."""
    if read_json(path / "sentence_bert_config.json").get("do_lower_case"):
        raise UserError(f"{str(path)!r} lowercases sentences by `do_lower_case`; save it with a tokenizer that does")
    settings = read_json(path / "config_sentence_transformers.json")
    prompt = settings.get("prompts", {}).get(settings.get("default_prompt_name"))
    if prompt:
        raise UserError(
            f"{str(path)!r} puts the prompt {prompt!r} before every sentence by default, which is not supported; "
            "set default_prompt_name in config_sentence_transformers.json to null to encode sentences as they are"
        )
