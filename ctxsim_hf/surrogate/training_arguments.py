"""Define the arguments of `ctxsim train surrogate`."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Lt
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.causal.loading import GGUF
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE
from ctxsim_hf.encoder.find_surrogate import BIN, find_start, is_static
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder, hub_id, locate
from ctxsim_hf.runtime.files import describe_file, digest_file
from ctxsim_hf.runtime.presets import Preset, fill_from_preset
from ctxsim_hf.runtime.record import check_if_stage
from ctxsim_hf.runtime.validation import Count, CountOrZero, NonNegative, OneOf, Share
from ctxsim_hf.surrogate.generator_start import DEFAULT_TABLE, TableSettings
from ctxsim_hf.surrogate.labelled_file import LabelledFile
from ctxsim_hf.surrogate.labels import LABEL_KINDS
from ctxsim_hf.surrogate.pair_data import PairFolder
from ctxsim_hf.surrogate.public_data import PUBLIC_OBJECTIVES, PublicRows
from ctxsim_hf.surrogate.surrogate_losses import LOSSES
from ctxsim_hf.surrogate.teacher_data import VectorFolder
from ctxsim_hf.train.loop_arguments import LoopArguments

HARVEST_OBJECTIVES = ("pairs", "cross")  # those that train on a harvest
TEACHER = "teacher"  # trains on the vectors of an origin
OBJECTIVES = (*HARVEST_OBJECTIVES, TEACHER, *PUBLIC_OBJECTIVES)
ENCODER, STATIC = KINDS = ("encoder", "static")
STATIC_SIZE, STATIC_RATE = 1024, 5e-4  # width of a new static surrogate, and its learning rate
STATIC_LETTERS = 1.5  # their strength in one, best on Hausa, Romanian and health questions: docs/experiments.md
BEST, LAST, START = KEEP = ("best", "last", "start")
SIZES = ("hidden_size", "layers", "heads", "ffn_size")


@dataclass(kw_only=True)
class SurrogateArguments(LoopArguments):
    """The arguments of `ctxsim train surrogate`."""

    objective: Annotated[str, OneOf(OBJECTIVES)] = HfArg(
        default="pairs", help=f"What to learn: {', '.join(OBJECTIVES)}."
    )
    pairs: str | None = HfArg(default=None, help="Folder made by ctxsim harvest, or the id of such a dataset.")
    vectors: str | None = HfArg(default=None, help="For --objective teacher: folder made by ctxsim harvest-vectors.")
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
    kind: Annotated[str, OneOf(KINDS)] | None = HfArg(
        default=None,
        help="encoder; or static, the mean of the tokens' vectors, thousands of sentences a second. By default what "
        "--init is, or encoder.",
    )
    whitening: Share | None = HfArg(
        default=None,
        help="--token-embeddings: power by which directions of the vectors are evened out; by default 0.7 for a "
        "language model, 0.5 for a light generator.",
    )
    letters: NonNegative | None = HfArg(
        default=None,
        help=f"--token-embeddings: strength of the letters; by default {DEFAULT_TABLE.letters:g}, or "
        f"{STATIC_LETTERS:g} for a static surrogate.",
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
    labels: Annotated[str, OneOf(LABEL_KINDS)] | None = HfArg(
        default=None,
        help="as-is; stretched, which maps the range of the scores to [-1, 1]; or start, which gives them the mean "
        "and deviation of the start's own cosines. By default as-is, or start for --objective teacher with a start.",
    )
    weight_by_spread: bool = HfArg(default=False, help="l2: weigh a pair by 1 / spread^2, within bounds.")
    margin: Annotated[float, Gt(0), Lt(2)] = HfArg(
        default=1.0, help="triplet: by how much nearer the positive should be; distances of unit vectors are 0 to 2."
    )
    keep: Annotated[str, OneOf(KEEP)] | None = HfArg(
        default=None,
        help="Weights to write: best, those of the best evaluation, or of the start if none beats it; last; or start, "
        "which trains nothing. By default best, but last for afs, whose evaluation is the test.",
    )
    folds: Annotated[int, Ge(2)] = HfArg(default=10, help="afs: parts of the data, each of which is held out once.")
    fold: CountOrZero | None = HfArg(default=None, help="afs: hold out only this part, from 0, and keep the model.")
    gradient_checkpointing: bool = HfArg(default=False, help="Less memory for more time.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *LoopArguments.unrecorded,
        "pairs",
        "vectors",
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
        if (self.vectors is None) == (self.objective == TEACHER):
            wanted = "needs --vectors" if self.vectors is None else "does not read vectors; leave out --vectors"
            raise UserError(f"--objective {self.objective} {wanted}")
        self.keep = self.keep or (LAST if self.objective == "afs" else BEST)
        self._settle_labels()
        if self.weight_by_spread and (self.loss != "l2" or self.objective != "pairs"):
            raise UserError("--weight-by-spread is for --objective pairs with --loss l2")
        if self.objective in ("cross", "nli", "triplet") and self.loss != "l2":
            raise UserError(f"--objective {self.objective} has a loss of its own; leave out --loss {self.loss}")
        self.tokenizer = self.tokenizer and locate(self.tokenizer)
        if self.init is not None:
            self._refuse_with_init(*SIZES, "preset", "token_embeddings")
        elif self.tokenizer is None:
            raise UserError("expected a tokenizer; name one with --tokenizer")
        else:
            self._settle_kind(self.kind or ENCODER)

    @cached_property
    def start(self) -> Path | None:
        """The folder of the checkpoint that --init names, downloaded if necessary; None if there is no --init."""
        return None if self.init is None else find_start(self.init)

    def settle_start(self) -> None:
        """Settle what depends on the checkpoint of --init, if there is one; flags are parsed before it is fetched."""
        if self.start is not None:
            self._settle_kind(self.kind or (STATIC if is_static(self.start) else ENCODER))
            self.tokenizer = self.tokenizer or str(self.start)

    def _refuse_with_init(self, *names: str) -> None:
        if given := [name for name in names if getattr(self, name) is not None]:
            flag = given[0].replace("_", "-")
            raise UserError(f"with --init the sizes and vectors are the checkpoint's; leave out --{flag}")

    def _settle_kind(self, kind: str) -> None:
        self.kind = kind
        if kind == STATIC:
            self._settle_static()
        else:
            self._settle_encoder()

    def _settle_labels(self) -> None:
        has_start = self.init is not None or self.token_embeddings is not None
        if self.labels is None:
            self.labels = "start" if self.objective == TEACHER and has_start else "as-is"
        if self.labels == "start" and (not has_start or self.objective == "cross"):
            raise UserError("--labels start needs a start with vectors, by --init or --token-embeddings")

    def _settle_encoder(self) -> None:
        if self.init:
            # The paper's, or, where every pair of a batch counts, smaller steps.
            self.learning_rate = self.learning_rate or (2e-5 if self.objective in (TEACHER, "nli") else 1e-4)
        else:
            self.preset = self.preset or "light"
            if self.token_embeddings:  # small steps and no dropout, to keep what the vectors know
                self.learning_rate = self.learning_rate or 2e-4
                self.dropout = self.dropout or 0.0
            self.dropout = 0.1 if self.dropout is None else self.dropout
            fill_from_preset(self, "surrogate")
            if self.hidden_size % self.heads:  # type: ignore[operator]
                raise UserError(f"--hidden-size {self.hidden_size} is not a multiple of --heads {self.heads}")

    def _settle_static(self) -> None:
        given = [name for name in (*SIZES[1:], "preset", "dropout") if getattr(self, name) is not None]
        if self.start is None:
            self.hidden_size = self.hidden_size or STATIC_SIZE
        elif not is_static(self.start):
            raise UserError(f"--kind static starts from a StaticEmbedding or a model of model2vec, not {self.init!r}")
        if given or self.objective == "cross":
            flag = f"--{given[0].replace('_', '-')}" if given else "--objective cross"
            raise UserError(f"a static surrogate is a table of token vectors; leave out {flag}")
        self.learning_rate = self.learning_rate or STATIC_RATE

    @property
    def table_settings(self) -> TableSettings:
        """How the vectors of --token-embeddings are made into a start."""
        default = STATIC_LETTERS if self.kind == STATIC else DEFAULT_TABLE.letters
        return TableSettings(self.whitening, default if self.letters is None else self.letters)

    def source(self) -> PairFolder | VectorFolder | PublicRows | LabelledFile:
        """Open the data to train on."""
        if self.vectors is not None:
            return VectorFolder.find(self.vectors)
        if self.labelled is not None:
            return LabelledFile.read(self.labelled)
        if self.pairs is not None:
            return PairFolder.find(self.pairs)
        return PublicRows.read(self.objective, self.data_root, self.fold or 0, self.folds)

    def inputs(self) -> dict[str, Any]:
        """Describe what is read apart from the data, for stage.json."""
        found: dict[str, Any] = {"tokenizer": {"xxh3_128": digest_file(tokenizer_file(str(self.tokenizer)))}}
        if self.init is not None and self.start is not None:
            found["init"] = _describe_files(self.start) | hub_id(self.init)
        if self.token_embeddings:
            found["token_embeddings"] = _describe_model(self.token_embeddings)
        return found


def tokenizer_file(tokenizer: str) -> Path:
    """Return the path of tokenizer.json in a folder or on the Hub."""
    folder = fetch_folder(tokenizer, "a folder with a fast tokenizer", allow_patterns=["tokenizer.json"])
    if not (folder / "tokenizer.json").exists():
        raise UserError(f"expected a file tokenizer.json in {tokenizer!r}, but there is none")
    return folder / "tokenizer.json"


def _describe_model(model: str) -> Any:
    """Return the digests of a local model's files, or the id of a model on the Hub."""
    place = Path(locate(model))
    if not place.exists():
        return model
    check_if_stage(place)
    return {place.name: describe_file(place)} if place.is_file() else _describe_files(place)


def _describe_files(folder: Path) -> dict[str, Any]:
    """Return the digests of the files that a start is made of."""
    patterns = ("config.json", "modules.json", SETTINGS_FILE, "*.safetensors", BIN, GGUF)
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return {path.name: describe_file(path) for path in paths}
