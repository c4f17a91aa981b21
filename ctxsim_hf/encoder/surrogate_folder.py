"""A surrogate's folder -> its parts, checked: whatever opens gives the vectors that
sentence-transformers gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, RobertaConfig, TokenizersBackend

from ctxsim_hf.encoder.modeling_surrogate import CrossSurrogateModel, SurrogateModel
from ctxsim_hf.encoder.sentence_transformers_files import max_tokens
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json

MEAN_POOLING = ("pooling_mode", "mean"), ("pooling_mode_mean_tokens", True)  # today's spelling, and the older one


@dataclass(frozen=True)
class SurrogateFolder:
    path: Path
    config: RobertaConfig
    tokenizer: TokenizersBackend
    max_tokens: int  # of a sentence, `<s>` and `</s>` included

    @classmethod
    def open(cls, path: Path) -> "SurrogateFolder":
        for name in ("config.json", "tokenizer.json"):  # without the latter AutoTokenizer makes up an empty one
            if not (path / name).exists():
                raise UserError(f"expected a surrogate and its tokenizer in {str(path)!r}, but it has no {name}")
        config, tokenizer = AutoConfig.from_pretrained(path), AutoTokenizer.from_pretrained(path)
        _check_config(config, path)
        _check_tokenizer(tokenizer, config, path)
        _check_modules(path)
        # As sentence-transformers decides it, so that both truncate alike.
        longest = read_json(path / "sentence_bert_config.json").get("max_seq_length") or tokenizer.model_max_length
        return cls(path, config, tokenizer, min(longest, max_tokens(config)))

    def load_model(self) -> SurrogateModel:
        model, report = SurrogateModel.from_pretrained(self.path, config=self.config, output_loading_info=True)
        if missing := report["missing_keys"]:
            raise UserError(f"{str(self.path)!r} is no whole surrogate: it lacks {len(missing)} weights")
        return model


def _check_config(config: Any, path: Path) -> None:
    if config.model_type != RobertaConfig.model_type:
        raise UserError(f"expected a surrogate, which is a RoBERTa, but {str(path)!r} holds a {config.model_type}")
    if CrossSurrogateModel.__name__ in (config.architectures or ()):
        raise UserError(f"{str(path)!r} holds a cross surrogate, which scores pairs and has no vectors of sentences")


def _check_tokenizer(tokenizer: TokenizersBackend, config: RobertaConfig, path: Path) -> None:
    if len(tokenizer) > config.vocab_size or tokenizer.pad_token_id != config.pad_token_id:
        raise UserError(
            f"the tokenizer in {str(path)!r} is not the model's: it has {len(tokenizer)} tokens and the pad id "
            f"{tokenizer.pad_token_id}, the model {config.vocab_size} and {config.pad_token_id}"
        )
    bare, marked = (tokenizer("a", add_special_tokens=marks)["input_ids"] for marks in (False, True))
    if marked != [tokenizer.bos_token_id, *bare, tokenizer.eos_token_id]:
        raise UserError(f"expected a tokenizer that makes `<s> a </s>` of `a` in {str(path)!r}, it makes {marked}")


def _check_modules(path: Path) -> None:
    """Refuse what sentence-transformers would turn into other vectors: another pooling, further layers."""
    for module in read_json(path / "modules.json") or ():
        kind = module["type"].rsplit(".", 1)[-1]
        settings = read_json(path / module["path"] / "config.json") if kind == "Pooling" else {}
        is_mean = any(settings.get(key) == value for key, value in MEAN_POOLING)
        if kind != "Transformer" and not is_mean:
            found = f"{kind} {settings or ''}".strip()
            raise UserError(
                f"expected mean pooling and nothing else after the model in {str(path)!r}, found {found}; "
                "sentence-transformers can open it"
            )
