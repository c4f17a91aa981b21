"""The arguments of `ctxsim adapt`."""

from dataclasses import dataclass
from typing import Any

from transformers.hf_argparser import HfArg

from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.presets import PRESETS, Preset
from ctxsim_hf.runtime.validation import Count, Positive, Share


@dataclass(kw_only=True)
class AdaptArguments(Arguments):
    """The arguments of `ctxsim adapt`."""

    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of datasets."
    )
    output: str = HfArg(help="Folder to write. Run the same command again to resume after an interruption.")
    preset: Preset = HfArg(
        default="light",
        help=f"Sizes of what is trained from nothing, and part of the folders' names: {', '.join(PRESETS)}.",
    )
    context_model: str | None = HfArg(
        default=None,
        help="Causal language model that the origin compares sentences by, instead of a generator trained on the "
        "documents: its folder, a GGUF file, package:NAME/PATH or its id on the Hub.",
    )
    start: str | None = HfArg(
        default=None,
        help="Encoder that the surrogate starts from and the origin compares by, folder or id; by default the "
        "surrogate is a table of word vectors.",
    )
    minutes: Positive = HfArg(default=30, help="About how long the whole run may take; more gives better models.")
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, datasets).")
    config_name: str | None = HfArg(default=None, help="Configuration, where a corpus is the id of a dataset.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    held_out: Share = HfArg(default=0.05, help="Share of documents to hold out, which judge what was learned.")
    compare: list[str] = HfArg(
        default_factory=list,
        help="More systems for the last table, as in ctxsim evaluate, such as st:all-MiniLM-L6-v2.",
    )
    workers: Count | None = HfArg(default=None, help="Processes, where a stage can use several; by default all cores.")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workers = self.workers or available_cores()

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `ctxsim chunk` that describe the corpus."""
        names = ("corpus", "text_column", "language", "config_name", "held_out")
        return {name: getattr(self, name) for name in names}

    @property
    def folder(self) -> AdaptedFolder:
        """The folder to write."""
        return AdaptedFolder(self.output, self.preset, self.context_model, self.start)
