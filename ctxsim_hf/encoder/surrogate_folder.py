"""The folder of a surrogate -> its parts, with checks that the vectors will be those of sentence-transformers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig, TokenizersBackend

from ctxsim_hf.encoder.modeling_cross_surrogate import CrossSurrogateModel
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.part_encoder import NO_LIMIT
from ctxsim_hf.encoder.plain_encoder import POSITIONS_AFTER_PAD, encoder_class, max_tokens
from ctxsim_hf.encoder.sentence_transformers_files import Pooling, read_pooling
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json
from ctxsim_hf.runtime.pretrained import open_auto_tokenizer, open_config
from ctxsim_hf.text.marks import Marks


@dataclass(frozen=True)
class SurrogateFolder:
    """A surrogate on disk: its configuration, tokenizer, pooling and maximum length."""

    path: Path
    config: PreTrainedConfig
    tokenizer: TokenizersBackend
    pooling: Pooling
    max_tokens: int  # of a sentence, special tokens included

    @classmethod
    def open(cls, path: Path) -> "SurrogateFolder":
        """Read and check a folder, without its weights."""
        for name in ("config.json", "tokenizer.json"):  # without the latter, AutoTokenizer makes an empty one
            if not (path / name).exists():
                raise UserError(f"expected a surrogate and its tokenizer in {str(path)!r}, but it has no {name}")
        config, tokenizer = open_config(path), open_auto_tokenizer(path)
        _check_config(config, path)
        _check_tokenizer(tokenizer, config, path)
        check_text(path)
        # As in sentence-transformers, so that both truncate at the same length.
        longest = read_json(path / "sentence_bert_config.json").get("max_seq_length") or tokenizer.model_max_length
        longest = min(longest, max_tokens(config) or NO_LIMIT, NO_LIMIT)
        if longest <= (marks := Marks.of(tokenizer).size):
            raise UserError(f"{str(path)!r} has room for {longest} tokens, and {marks} of them are special tokens")
        return cls(path, config, tokenizer, read_pooling(path), longest)

    def load_model(self) -> SurrogateModel:
        """Load the model; refuse a folder that lacks weights."""
        model, report = SurrogateModel.from_pretrained(
            self.path, config=self.config, pooling=self.pooling, output_loading_info=True
        )
        if missing := report["missing_keys"]:
            raise UserError(
                f"{str(self.path)!r} is incomplete: it lacks {len(missing)} weights, e.g. {sorted(missing)[0]}"
            )
        return model


def _check_config(config: Any, path: Path) -> None:
    try:
        encoder_class(config)
    except UserError as error:
        raise UserError(f"{str(path)!r} is not a surrogate: {error}") from error
    if CrossSurrogateModel.__name__ in (config.architectures or ()):
        raise UserError(f"{str(path)!r} is a cross surrogate, which scores pairs and has no sentence vectors")


def _check_tokenizer(tokenizer: TokenizersBackend, config: PreTrainedConfig, path: Path) -> None:
    # If positions are numbered from the pad id on, another pad id means other positions.
    other_pad = config.model_type in POSITIONS_AFTER_PAD and tokenizer.pad_token_id != config.pad_token_id
    if len(tokenizer) > config.vocab_size or other_pad:
        raise UserError(
            f"the tokenizer in {str(path)!r} is not that of the model: it has {len(tokenizer)} tokens and the pad id "
            f"{tokenizer.pad_token_id}, the model {config.vocab_size} and {config.pad_token_id}"
        )


def check_text(path: Path) -> None:
    """Refuse a folder for which sentence-transformers would change sentences before tokenising them."""
    if read_json(path / "sentence_bert_config.json").get("do_lower_case"):
        raise UserError(
            f"{str(path)!r} lowercases sentences with `do_lower_case`; save it with a tokenizer that does so instead"
        )
