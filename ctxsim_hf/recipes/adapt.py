"""Turn documents into a surrogate for their domain: `ctxsim adapt`, every stage in a row.

    chunks/  tokenizer/  generator/  pairs/                     what one stage leaves for the next
    ctxsim/origin-<preset>/                                     similarity with reasons
    ctxsim/surrogate-<preset>/                                  the fast encoder, and results.md, which has TF-IDF too
    adapt.json                                                  what was asked for

Each step is a verb that could be run alone, and is shown as its command line. All are stages, so the same command
resumes an interrupted run and repeats no finished stage.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.report import ALL_FIGURES
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.steps import Step, run_steps
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json, write_json
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.presets import PRESETS, Preset
from ctxsim_hf.runtime.stage import read_stage
from ctxsim_hf.runtime.validation import Count, Positive, Share
from ctxsim_hf.text.lines import is_pipe

if TYPE_CHECKING:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

# Shares of the minutes. The rest is for chunks, tokenizer, index and evaluation, which take what the corpus needs.
SHARES = {"generator": 0.4, "harvest": 0.08, "surrogate": 0.17}
PAIRS_PER_MINUTE = 200_000  # that one core harvests in group mode
MIN_HELD_OUT = 2  # documents
MAX_EPOCHS = 10  # a small corpus is soon overfitted


@dataclass(kw_only=True)
class AdaptArguments(Arguments):
    """The arguments of `ctxsim adapt`."""

    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of datasets."
    )
    output: str = HfArg(help="Folder to write. Run the same command again to resume after an interruption.")
    preset: Preset = HfArg(default="light", help=f"Sizes of all models: {', '.join(PRESETS)}.")
    minutes: Positive = HfArg(default=30, help="About how long the whole run may take; more gives better models.")
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, datasets).")
    config_name: str | None = HfArg(default=None, help="Configuration, where a corpus is the id of a dataset.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    held_out: Share | None = HfArg(default=None, help="Share of documents to hold out; by default ctxsim chunk's.")
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
        return AdaptedFolder(self.output, self.preset)


@dataclass(frozen=True)
class Adapted:
    """What `adapt` made. As a string it says how good the surrogate is and how to use it."""

    surrogate: Path  # the fast encoder
    origin: Path  # similarity with reasons
    report: str

    def __str__(self) -> str:
        return self.report

    def encoder(self) -> "SentenceEncoder":
        """Open the surrogate."""
        from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder  # and with it torch, which takes seconds

        return SentenceEncoder.from_pretrained(self.surrogate)


def run(arguments: AdaptArguments) -> Adapted:
    """Run the steps that are not finished yet."""
    folder = arguments.folder
    _remember(arguments)
    run_steps(plan(arguments), arguments.minutes, {"chunk": _check_held_out})
    return Adapted(Path(folder.surrogate), Path(folder.origin), _report(folder))


def plan(arguments: AdaptArguments) -> list[Step]:
    """Return the steps. They depend on the arguments alone, so that a resumed run has the same ones."""
    folder, place, workers = arguments.folder, arguments.folder.place, arguments.workers
    chunks, tokenizer, pairs = place("chunks"), place("tokenizer"), place("pairs")
    generator = place("generator")
    sizes = PRESETS[arguments.preset]
    vocabulary = {"vocab_size": sizes["vocab_size"], "lowercase": sizes["lowercase"]}
    learned = {"chunks": chunks, "tokenizer": tokenizer, "preset": arguments.preset}
    kind = {} if "light_generator" in sizes else {"kind": "seq2seq", "direction": "all"}
    num_pairs = max(1000, round(SHARES["harvest"] * arguments.minutes * PAIRS_PER_MINUTE))
    systems = [f"surrogate-{arguments.preset}=surrogate:{folder.surrogate}", "tfidf"]

    def limits(stage: str) -> dict[str, Any]:
        return {"epochs": MAX_EPOCHS, "max_train_minutes": round(SHARES[stage] * arguments.minutes, 4)}

    return [
        Step.stage("chunk", chunks, **arguments.reading(), workers=workers),
        Step.stage("train-tokenizer", tokenizer, chunks=chunks, **vocabulary),
        Step.stage("train generator", generator, **learned, **kind, **limits("generator")),
        Step.stage("index", folder.origin, chunks=chunks, generator=[generator], workers=workers),
        Step.stage("harvest", pairs, **folder.harvest_values(num_pairs)),
        Step.stage("train surrogate", folder.surrogate, **folder.surrogate_values(pairs), **limits("surrogate")),
        Step.evaluation(systems, folder.surrogate, label_free=True, save_thresholds=True, chunks=chunks),
        *(Step("card", {"folders": [model]}, f"{model}/README.md") for model in (folder.surrogate, folder.origin)),
    ]


def _check_held_out(chunks: str) -> None:
    """Refuse at once what would fail after an hour: the label-free evaluation needs two held-out documents."""
    counts = read_stage(chunks, "chunk")["counts"]
    if (number := counts["documents_held_out"]) < MIN_HELD_OUT:
        raise UserError(
            f"{number} of {counts['documents_kept']} documents are held out, but the evaluation needs {MIN_HELD_OUT}; "
            "hold out more of them, such as --held-out 0.1, in another --output"
        )


def _remember(arguments: AdaptArguments) -> None:
    """Record the arguments; refuse a folder made with other ones, whose stages would be taken for finished."""
    asked = {
        "corpus": [
            name if is_pipe(name) or not Path(name).exists() else str(Path(name).resolve())
            for name in arguments.corpus
        ],
        "preset": arguments.preset,
        "minutes": arguments.minutes,
        "text_column": arguments.text_column,
        "config_name": arguments.config_name,
        "language": arguments.language,
        "held_out": arguments.held_out,
    }
    path = Path(arguments.folder.place("adapt.json"))
    before = read_json(path) or asked
    differences = [
        f"{name} was {before.get(name)}, now {now}" for name, now in asked.items() if before.get(name) != now
    ]
    # A run that failed before it finished a stage, such as by a mistyped path, does not block the next one.
    if differences and Path(arguments.folder.place("chunks")).exists():
        made = "; ".join(differences)
        raise UserError(f"{arguments.output!r} was made by another run: {made}. Choose another --output")
    if differences or not path.exists():
        write_json(path, asked)


def _report(folder: AdaptedFolder) -> str:
    table, _, _ = Path(folder.surrogate, "results.md").read_text("utf-8").partition(ALL_FIGURES)
    name = Path(folder.surrogate).name
    return "\n".join(
        [
            f"made {folder.surrogate} (fast) and {folder.origin} (with reasons)",
            "",
            table.strip(),
            "",
            f"In {folder.path}:",
            "    from ctxsim_hf import SentenceEncoder",
            f'    encoder = SentenceEncoder.from_pretrained("ctxsim/{name}")',
            '    encoder.similarity(["One sentence."], ["Another sentence."])',
        ]
    )
