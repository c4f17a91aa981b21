"""Define the arguments of `ctxsim train surrogate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Lt
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.causal.loading import GGUF
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import describe_file, digest_file
from ctxsim_hf.runtime.presets import Preset, fill_from_preset
from ctxsim_hf.runtime.validation import Count, CountOrZero, OneOf, Share
from ctxsim_hf.surrogate.labelled_file import LabelledFile
from ctxsim_hf.surrogate.labels import LABEL_KINDS
from ctxsim_hf.surrogate.pair_data import PairFolder
from ctxsim_hf.surrogate.public_data import PUBLIC_OBJECTIVES, PublicRows
from ctxsim_hf.surrogate.surrogate_losses import LOSSES
from ctxsim_hf.train.loop_arguments import LoopArguments

HARVEST_OBJECTIVES = ("pairs", "cross")  # those that train on a harvest
OBJECTIVES = (*HARVEST_OBJECTIVES, *PUBLIC_OBJECTIVES)
SIZES = ("hidden_size", "layers", "heads", "ffn_size")


@dataclass(kw_only=True)
class SurrogateArguments(LoopArguments):
    """The arguments of `ctxsim train surrogate`."""

    objective: Annotated[str, OneOf(OBJECTIVES)] = HfArg(
        default="pairs", help=f"What to learn: {', '.join(OBJECTIVES)}."
    )
    pairs: str | None = HfArg(default=None, help="Folder made by ctxsim harvest, or the id of such a dataset.")
    data_root: str | None = HfArg(default=None, help="Other objectives: folder of datasets, named by their ids.")
    labelled: str | None = HfArg(
        default=None, help="sts: learn these labels instead of a public dataset's; a .tsv file made by ctxsim label."
    )
    tokenizer: str | None = HfArg(default=None, help="Folder with a fast tokenizer, or its id; by default --init's.")
    preset: Preset | None = HfArg(default=None, help="Sizes for what is not set; by default light, or --init's.")
    init: str | None = HfArg(default=None, help="Checkpoint of an encoder to start from, such as a surrogate.")
    token_embeddings: str | None = HfArg(
        default=None,
        help="Start as the weighted mean of a sentence's tokens: vectors of this light generator, or of this causal "
        "language model, which reads every token once; and the tokens' letters.",
    )
    hidden_size: Count | None = HfArg(default=None, help="Width of the model; by default the preset's.")
    layers: Count | None = HfArg(default=None, help="Layers; by default the preset's.")
    heads: Count | None = HfArg(default=None, help="Attention heads; by default the preset's.")
    ffn_size: Count | None = HfArg(default=None, help="Width of the feed-forward layers; by default the preset's.")
    dropout: Share | None = HfArg(
        default=None, help="Dropout; by default 0.1, 0 with --token-embeddings, or --init's."
    )
    max_sentence_tokens: Count = HfArg(default=64, help="Tokens that are read of a sentence; a longer one is cut.")
    tokens_per_batch: Count = HfArg(
        default=2048,
        help="Tokens of the different sentences in a batch of one process; lower it if memory runs out.",
    )
    loss: Annotated[str, OneOf(LOSSES)] = HfArg(
        default="l2", help=f"Loss on the cosines: {', '.join(LOSSES)}; l2 is the paper's."
    )
    labels: Annotated[str, OneOf(LABEL_KINDS)] = HfArg(
        default="as-is", help="as-is; or stretched, which maps the range of the scores to [-1, 1]."
    )
    weight_by_spread: bool = HfArg(default=False, help="l2: weigh a pair by 1 / spread^2, within bounds.")
    margin: Annotated[float, Gt(0), Lt(2)] = HfArg(
        default=1.0, help="triplet: by how much nearer the positive should be; distances of unit vectors are 0 to 2."
    )
    folds: Annotated[int, Ge(2)] = HfArg(default=10, help="afs: parts of the data, each of which is held out once.")
    fold: CountOrZero | None = HfArg(default=None, help="afs: hold out only this part, from 0, and keep the model.")
    gradient_checkpointing: bool = HfArg(default=False, help="Less memory for more time.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *LoopArguments.unrecorded,
        "pairs",
        "data_root",
        "labelled",
        "tokenizer",
        "init",
        "token_embeddings",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fold is not None and self.fold >= self.folds:
            raise UserError(f"--fold must be below --folds, got {self.fold} and {self.folds}")
        if (self.pairs is None) == (self.objective in HARVEST_OBJECTIVES):
            wanted = "needs --pairs" if self.pairs is None else "reads a public dataset; leave out --pairs"
            raise UserError(f"--objective {self.objective} {wanted}")
        if self.labelled is not None and (self.objective != "sts" or self.data_root is not None):
            raise UserError("--labelled is for --objective sts, and takes the place of --data-root")
        if self.weight_by_spread and (self.loss != "l2" or self.objective != "pairs"):
            raise UserError("--weight-by-spread is for --objective pairs with --loss l2")
        if self.objective in ("cross", "nli", "triplet") and self.loss != "l2":
            raise UserError(f"--objective {self.objective} has a loss of its own; leave out --loss {self.loss}")
        self._settle_start()

    def _settle_start(self) -> None:
        if self.init:
            if given := [name for name in (*SIZES, "preset", "token_embeddings") if getattr(self, name) is not None]:
                flag = given[0].replace("_", "-")
                raise UserError(f"with --init the sizes and vectors are the checkpoint's; leave out --{flag}")
            self.learning_rate = self.learning_rate or 1e-4  # the paper's
        else:
            self.preset = self.preset or "light"
            if self.token_embeddings:  # small steps and no dropout, to keep what the vectors know
                self.learning_rate = self.learning_rate or 2e-4
                self.dropout = self.dropout or 0.0
            self.dropout = 0.1 if self.dropout is None else self.dropout
            fill_from_preset(self, "surrogate")
            if self.hidden_size % self.heads:  # type: ignore[operator]
                raise UserError(f"--hidden-size {self.hidden_size} is not a multiple of --heads {self.heads}")
        self.tokenizer = self.tokenizer or self.init
        if self.tokenizer is None:
            raise UserError("expected a tokenizer; name one with --tokenizer")

    def source(self) -> PairFolder | PublicRows | LabelledFile:
        """Open the data to train on."""
        if self.labelled is not None:
            return LabelledFile.read(self.labelled)
        if self.pairs is not None:
            return PairFolder.find(self.pairs)
        return PublicRows.read(self.objective, self.data_root, self.fold or 0, self.folds)

    def inputs(self) -> dict[str, Any]:
        """Describe what is read apart from the data, for stage.json."""
        found: dict[str, Any] = {"tokenizer": {"xxh3_128": digest_file(tokenizer_file(str(self.tokenizer)))}}
        for name in ("init", "token_embeddings"):
            if start := getattr(self, name):
                found[name] = _describe_model(start)
        return found


def tokenizer_file(tokenizer: str) -> Path:
    """Return the path of tokenizer.json in a folder or on the Hub."""
    folder = fetch_folder(tokenizer, "a folder with a fast tokenizer", allow_patterns=["tokenizer.json"])
    if not (folder / "tokenizer.json").exists():
        raise UserError(f"expected a file tokenizer.json in {tokenizer!r}, but there is none")
    return folder / "tokenizer.json"


def _describe_model(model: str) -> Any:
    """Return the digests of a local model's files, or the id of a model on the Hub."""
    if not Path(model).is_dir():
        return model
    patterns = ("config.json", SETTINGS_FILE, "*.safetensors", GGUF)
    paths = sorted({path for pattern in patterns for path in Path(model).glob(pattern)})
    return {path.name: describe_file(path) for path in paths}
