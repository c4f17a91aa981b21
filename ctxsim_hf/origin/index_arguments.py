"""The arguments of `ctxsim index`."""

from dataclasses import MISSING, dataclass, fields
from typing import Annotated, ClassVar

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, OneOf, Seed
from ctxsim_hf.text.word_ngrams import NGRAMS


@dataclass(kw_only=True)
class IndexArguments(StageArguments):
    """The arguments of `ctxsim index`."""

    output: str = HfArg(
        default="", help="Folder to write. Run the same command again to resume after an interruption."
    )
    chunks: str | None = HfArg(default=None, help="Folder made by ctxsim chunk.")
    discriminator: str | None = HfArg(
        default=None, help="Folder made by ctxsim train discriminator, which ranks candidate contexts; optional."
    )
    generator: list[str] = HfArg(
        default_factory=list, help="Folder made by ctxsim train generator, or one for each direction."
    )
    context_model: list[str] = HfArg(
        default_factory=list,
        help="Any other context model: its folder, a GGUF file, package:NAME/PATH or its id on the Hub.",
    )
    cloze_only: bool = HfArg(
        default=False,
        help="Let a causal language model of --context-model give the signal `cloze` alone, so that a generator may "
        "answer the terms of the fit score.",
    )
    bridges: list[str] | None = HfArg(
        default=None,
        help="Texts that take a sentence at {} and end where a causal language model is to say it in one word; by "
        "default those of its own settings.",
    )
    encoder: str | None = HfArg(
        default=None, help="A surrogate or SentenceTransformer, folder or id, for the signal `encoder`."
    )
    tokenizer: str | None = HfArg(
        default=None, help="Folder with the tokenizer that the index counts by; by default that of the first model."
    )
    ngrams: Annotated[str, OneOf(NGRAMS)] = HfArg(
        default="uni+bigrams", help="Terms of TF-IDF: uni+bigrams, words, or bigrams as in the paper."
    )
    background: Annotated[int, Ge(2)] = HfArg(default=1000, help="Number of background sentences to keep.")
    seed: Seed = HfArg(default=0, help="Random seed of the background.")
    workers: Count = HfArg(default=1, help="Processes of one thread each; the output is the same for any number.")

    origin: str | None = HfArg(default=None, help="Folder made by this command, to change with one of the next three.")
    add: bool = HfArg(default=False, help="Add the documents of --corpus or --chunks to --origin.")
    delete: list[str] = HfArg(default_factory=list, help="Delete the documents with these ids from --origin.")
    compact: bool = HfArg(default=False, help="Merge the segments of --origin, without what was deleted.")
    corpus: list[str] = HfArg(
        default_factory=list, help="With --add: what to read, cut into chunks as the documents before."
    )

    unrecorded: ClassVar[tuple[str, ...]] = (
        *(*StageArguments.unrecorded, "chunks", "discriminator", "generator", "context_model", "encoder"),
        *("cloze_only", "bridges", "tokenizer", "workers", "origin", "add", "delete", "compact", "corpus"),
    )
    with_origin: ClassVar[tuple[str, ...]] = ("origin", "add", "delete", "compact", "corpus", "chunks", "workers")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.origin is not None:
            self._check_change()
            self.output = self.origin
        elif self.add or self.delete or self.compact or self.corpus:
            raise UserError("--add, --delete, --compact and --corpus change an index: name it with --origin")
        elif not self.chunks or not self.output:
            raise UserError("expected --chunks, a folder made by ctxsim chunk, and --output, the folder to write")
        elif not self.models:
            raise UserError("an index needs a context model: name one with --generator or --context-model")

    def _check_change(self) -> None:
        """Refuse anything but one change of an index."""
        if self.add + bool(self.delete) + self.compact != 1:
            raise UserError("expected one of --add, --delete and --compact with --origin")
        if self.add and bool(self.chunks) == bool(self.corpus):
            raise UserError("expected one of --corpus and --chunks with --add")
        if not self.add and (self.chunks or self.corpus):
            raise UserError("--corpus and --chunks are what --add adds; leave them out otherwise")
        for field in fields(self):
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if field.name not in self.with_origin and getattr(self, field.name) != default:
                raise UserError(f"--{field.name.replace('_', '-')} cannot be changed in an index; leave it out")

    @property
    def models(self) -> list[str]:
        """The context models, the discriminator first."""
        return [*([self.discriminator] if self.discriminator else []), *self.generator, *self.context_model]
