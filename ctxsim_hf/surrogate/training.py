"""Labelled pairs -> a surrogate, the fast encoder whose cosines stand in for Origin's scores (paper, section 3.4).

    accelerate launch -m ctxsim_hf.train.surrogate --pairs pairs --tokenizer tokenizer --output surrogate

| objective | learns from |
|---|---|
| pairs | `--pairs`: the scores of a harvest |
| cross | the same, reading both sentences of a pair at once |
| sts, nli, triplet | people's labels, in public data sets, mostly with `--init` a surrogate: see public_data.py |
| afs | the same; ten models, each judged on the tenth of the pairs it did not see: see cross_validation.py |
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub import hf_hub_download
from transformers import AutoTokenizer
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file, digest_file
from ctxsim_hf.runtime.presets import fill_from_preset
from ctxsim_hf.surrogate.cross_task import CrossTask
from ctxsim_hf.surrogate.cross_validation import cross_validate
from ctxsim_hf.surrogate.labels import LABEL_KINDS
from ctxsim_hf.surrogate.pair_data import PairFolder
from ctxsim_hf.surrogate.public_data import PUBLIC_DATA, PublicRows
from ctxsim_hf.surrogate.siamese_task import SiameseTask
from ctxsim_hf.surrogate.surrogate_losses import LOSSES
from ctxsim_hf.train.loop import Task
from ctxsim_hf.train.loop_arguments import LoopArguments
from ctxsim_hf.train.training_stage import run_training

COMMAND = "train surrogate"
HARVESTED = ("pairs", "cross")  # objectives that learn from a harvest
OBJECTIVES = (*HARVESTED, *PUBLIC_DATA)
SIZES = ("hidden_size", "layers", "heads", "ffn_size")


@dataclass(kw_only=True)
class SurrogateArguments(LoopArguments):
    objective: str = HfArg(default="pairs", help=f"What to learn: {', '.join(OBJECTIVES)}.")
    pairs: str | None = HfArg(default=None, help="Folder made by ctxsim harvest, or a data set like it, or its id.")
    data_root: str | None = HfArg(default=None, help="Other objectives: folder of data sets, named by their ids.")
    tokenizer: str | None = HfArg(default=None, help="Folder with a fast tokenizer, or its id; by default --init's.")
    preset: str | None = HfArg(default=None, help="Sizes for what is not set; by default light, or --init's.")
    init: str | None = HfArg(default=None, help="Start from this RoBERTa checkpoint, a surrogate too.")
    token_embeddings: str | None = HfArg(
        default=None,
        help="Start as the weighted mean of a sentence's tokens: this light generator's vectors, and their letters.",
    )
    hidden_size: int | None = HfArg(default=None, help="Width of the model; by default the preset's.")
    layers: int | None = HfArg(default=None, help="Layers; by default the preset's.")
    heads: int | None = HfArg(default=None, help="Attention heads; by default the preset's.")
    ffn_size: int | None = HfArg(default=None, help="Width of the feed-forward layers; by default the preset's.")
    dropout: float | None = HfArg(
        default=None, help="Dropout; by default 0.1, 0 with --token-embeddings, or --init's."
    )
    max_sentence_tokens: int = HfArg(default=64, help="A longer sentence is cut.")
    tokens_per_batch: int = HfArg(
        default=2048,
        help="Tokens of the different sentences in a batch of one process; lower it if memory runs out.",
    )
    loss: str = HfArg(default="l2", help=f"On the cosines: {', '.join(LOSSES)}; l2 is the paper's.")
    labels: str = HfArg(default="as-is", help="as-is, or stretched: the scores' range is mapped to [-1, 1].")
    weight_by_spread: bool = HfArg(default=False, help="l2: a pair weighs 1 / spread^2, within bounds.")
    margin: float = HfArg(
        default=1.0, help="triplet: by how much nearer the positive should be; distances of unit vectors are 0 to 2."
    )
    folds: int = HfArg(default=10, help="afs: parts of the data, each of which is held out once.")
    fold: int | None = HfArg(default=None, help="afs: hold out this part only, from 0; the model is kept.")
    gradient_checkpointing: bool = HfArg(default=False, help="Less memory for more time.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *LoopArguments.unrecorded,
        "pairs",
        "data_root",
        "tokenizer",
        "init",
        "token_embeddings",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("objective", OBJECTIVES), ("loss", LOSSES), ("labels", LABEL_KINDS)):
            if getattr(self, name) not in known:
                raise UserError(f"unknown {name} {getattr(self, name)!r}; expected one of {', '.join(known)}")
        if self.max_sentence_tokens < 1:
            raise UserError(f"--max_sentence_tokens must be at least 1, got {self.max_sentence_tokens}")
        if not 0 < self.margin < 2:
            raise UserError(
                f"--margin must be between 0 and 2, the largest distance of unit vectors, got {self.margin}"
            )
        if not 0 <= (self.fold or 0) < self.folds or self.folds < 2:
            raise UserError(f"--fold must be from 0 to below --folds, got {self.fold} and {self.folds}")
        if (self.pairs is None) == (self.objective in HARVESTED):
            wanted = "needs --pairs" if self.pairs is None else "reads a public data set; leave out --pairs"
            raise UserError(f"--objective {self.objective} {wanted}")
        if self.weight_by_spread and (self.loss != "l2" or self.objective != "pairs"):
            raise UserError("--weight-by-spread is for --objective pairs with --loss l2")
        if self.objective in ("cross", "nli", "triplet") and self.loss != "l2":
            raise UserError(f"--objective {self.objective} has a loss of its own; leave out --loss {self.loss}")
        self._settle_start()

    def _settle_start(self) -> None:
        if self.init:
            if given := [name for name in (*SIZES, "preset", "token_embeddings") if getattr(self, name) is not None]:
                raise UserError(f"with --init the sizes and vectors are the checkpoint's; leave out --{given[0]}")
            self.learning_rate = self.learning_rate or 1e-4  # the paper's
        else:
            self.preset = self.preset or "light"
            if self.token_embeddings:  # little steps, and nothing that blurs what is known already
                self.learning_rate = self.learning_rate or 2e-4
                self.dropout = self.dropout or 0.0
            self.dropout = 0.1 if self.dropout is None else self.dropout
            fill_from_preset(self, "surrogate")
            if self.hidden_size % self.heads:  # type: ignore[operator]
                raise UserError(f"--hidden-size {self.hidden_size} is not a multiple of --heads {self.heads}")
        self.tokenizer = self.tokenizer or self.init
        if self.tokenizer is None:
            raise UserError("say which tokenizer to use: --tokenizer")

    def source(self) -> PairFolder | PublicRows:
        if self.pairs is not None:
            return PairFolder.find(self.pairs)
        return PublicRows.read(self.objective, self.data_root, self.fold or 0, self.folds)

    def inputs(self) -> dict[str, Any]:
        """What is read, apart from the data, as stage.json records it."""
        found: dict[str, Any] = {"tokenizer": {"xxh3_128": digest_file(tokenizer_file(str(self.tokenizer)))}}
        for name in ("init", "token_embeddings"):
            if start := getattr(self, name):
                found[name] = _describe_model(start)
        return found


def run(arguments: SurrogateArguments) -> dict[str, Any]:
    """Run the stage; returns the counts that stage.json records."""
    inputs = arguments.inputs()
    source = arguments.source()
    inputs["data"] = source.describe()
    if arguments.objective == "afs" and arguments.fold is None:
        return cross_validate(COMMAND, arguments, inputs, run)
    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer)
    data = source.open(tokenizer, inputs["tokenizer"]["xxh3_128"])

    def make_task() -> Task:
        return (CrossTask if arguments.objective == "cross" else SiameseTask)(arguments, tokenizer, data)

    return run_training(COMMAND, arguments, inputs, tokenizer, make_task)


def tokenizer_file(tokenizer: str) -> Path:
    if Path(tokenizer).is_dir():
        path = Path(tokenizer) / "tokenizer.json"
        if path.exists():
            return path
    else:
        try:
            return Path(hf_hub_download(tokenizer, "tokenizer.json"))
        except (OSError, ValueError):  # every error of the Hub's client is one of these
            pass
    raise UserError(f"no tokenizer in {tokenizer!r}: expected a file tokenizer.json there")


def _describe_model(model: str) -> Any:
    """The digests of a local model's files; of one on the Hub its id."""
    if not Path(model).is_dir():
        return model
    names = sorted({"config.json", *(path.name for path in Path(model).glob("*.safetensors"))})
    return {name: describe_file(Path(model) / name) for name in names if (Path(model) / name).exists()}
