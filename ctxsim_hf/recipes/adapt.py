"""Documents -> a surrogate for their domain: `ctxsim adapt`, every stage in a row.

    chunks/  tokenizer/  discriminator/  generator/  pairs/     what one stage leaves for the next
    ctxsim/origin-<preset>/                                     similarity with reasons
    ctxsim/surrogate-<preset>/                                  the fast encoder; results.md in it, with TF-IDF beside
    adapt.json                                                  what was asked for

Each step is a command that could be typed as well, and is shown as such. All are stages: whatever ended a run, the
same command goes on where it was and does no finished stage again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.report import ALL_FIGURES
from ctxsim_hf.recipes.steps import Step, run_steps
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json, write_json
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.stage import describe_stage, read_stage

# Of the minutes. What is left goes to stages whose length depends on the corpus: chunks, tokens, index, evaluation.
SHARES = {"discriminator": 0.12, "generator": 0.35, "harvest": 0.08, "surrogate": 0.1}
PAIRS_A_MINUTE = 200_000  # harvested in groups, by one core
# Most pairs are of sentences that share words: there contexts and words say different things.
MIX = ["--near", "48", "--farthest", "64", "--document", "8", "--random-share", "0.3"]
LEXICAL_WEIGHT = 1.0  # in the pairs' labels: contexts and common words err differently, and together less
LEAST_HELD_OUT = 2  # documents
MOST_EPOCHS = 10  # few documents are soon learned by heart
MADE_BY = {
    "chunks": "chunk",
    "tokenizer": "train-tokenizer",
    "discriminator": "train discriminator",
    "generator": "train generator",
    "pairs": "harvest",
}


@dataclass(kw_only=True)
class AdaptArguments:
    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of data sets."
    )
    output: str = HfArg(help="Folder to write. Run the same command again to go on after an interruption.")
    preset: str = HfArg(default="light", help=f"Sizes of all models: {', '.join(PRESETS)}.")
    minutes: float = HfArg(default=30, help="About how long all of it may take; with more, better models.")
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, data sets).")
    config_name: str | None = HfArg(default=None, help="Configuration, where a corpus is the id of a data set.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    held_out: float | None = HfArg(default=None, help="Share of documents to hold out; that of ctxsim chunk if unset.")
    workers: int | None = HfArg(default=None, help="Processes, where a stage can use several; by default all cores.")

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise UserError(f"unknown preset {self.preset!r}; expected one of {', '.join(PRESETS)}")
        if self.minutes <= 0:
            raise UserError(f"--minutes must be above 0, got {self.minutes}")
        self.workers = self.workers or available_cores()

    @property
    def folder(self) -> "AdaptedFolder":
        return AdaptedFolder(self.output, self.preset)


@dataclass(frozen=True)
class AdaptedFolder:
    """Where things are in the folder that `ctxsim adapt` makes."""

    path: str
    preset: str

    @classmethod
    def find(cls, path: str) -> "AdaptedFolder":
        """In a folder that is there; refuses one that `ctxsim adapt` did not make, or did not finish."""
        if not any(Path(path).glob("chunks*")):
            raise UserError(f"expected a folder made by `ctxsim adapt`, but {path!r} has no chunks")
        origins = [f"origin-{preset}" for preset in PRESETS if Path(path, f"ctxsim/origin-{preset}").exists()]
        if len(origins) > 1:
            raise UserError(f"expected one origin in {path + '/ctxsim'!r}, found {', '.join(origins)}")
        if not origins:
            raise UserError(f"{path!r} is not finished: it has no ctxsim/origin-*; run `ctxsim adapt` again, to go on")
        return cls(path, origins[0].removeprefix("origin-"))

    def describe(self) -> dict[str, Any]:
        """How a stage that reads the folder records it; refuses what is not finished."""
        found = {name: describe_stage(self.place(name), command) for name, command in MADE_BY.items()}
        return found | {"origin": describe_stage(self.origin, "index")}

    def place(self, name: str) -> str:
        return str(Path(self.path) / name)

    @property
    def origin(self) -> str:
        return self.place(f"ctxsim/origin-{self.preset}")

    @property
    def surrogate(self) -> str:
        return self.place(f"ctxsim/surrogate-{self.preset}")

    def harvest_flags(self, pairs: int) -> list[str]:
        lexical = ["--lexical-weight", str(LEXICAL_WEIGHT)]
        number = ["--pairs", str(pairs), "--at-most"]  # few documents have few sentences to pair
        return ["--origin", self.origin, *number, "--mode", "group", *MIX, *lexical]

    def surrogate_flags(self, pairs: str, objective: str = "pairs") -> list[str]:
        """How a surrogate is trained on pairs, but for how long."""
        start = ["--token-embeddings", self.place("generator")] if "light_generator" in PRESETS[self.preset] else []
        # Asked for the proportions of the scores, it came nearer to these themselves than when asked for them.
        loss = ["--loss", "pearson"] if objective == "pairs" else []
        learned = ["--objective", objective, "--pairs", pairs, "--tokenizer", self.place("tokenizer")]
        return [*learned, "--preset", self.preset, *start, *loss]


def run(arguments: AdaptArguments) -> str:
    """Do what is not done yet; returns what was made, how good it is, and how to use it."""
    _remember(arguments)
    run_steps(plan(arguments), arguments.minutes, {"chunk": _check_held_out})
    return _closing(arguments.folder)


def plan(arguments: AdaptArguments) -> list[Step]:
    """The steps. They follow from the arguments alone, so that an interrupted run is met by the same ones."""
    folder, place, preset = arguments.folder, arguments.folder.place, ["--preset", arguments.preset]
    sizes, workers = PRESETS[arguments.preset], ["--workers", str(arguments.workers)]
    chunks, learned = ["--chunks", place("chunks")], ["--chunks", place("chunks"), "--tokenizer", place("tokenizer")]
    pairs = max(1000, round(SHARES["harvest"] * arguments.minutes * PAIRS_A_MINUTE))

    def limits(stage: str) -> list[str]:
        return ["--epochs", str(MOST_EPOCHS), "--max-train-minutes", f"{SHARES[stage] * arguments.minutes:g}"]

    reading = ["--corpus", *arguments.corpus, "--text-column", arguments.text_column, "--language", arguments.language]
    for flag, value in (("--config-name", arguments.config_name), ("--held-out", arguments.held_out)):
        reading += [] if value is None else [flag, str(value)]
    models = ["--discriminator", place("discriminator"), "--generator", place("generator")]
    vocabulary = ["--vocab-size", str(sizes["vocab_size"]), *(["--lowercase"] if sizes["lowercase"] else [])]
    kind = [] if "light_generator" in sizes else ["--kind", "seq2seq", "--direction", "all"]
    systems = [f"surrogate-{arguments.preset}=surrogate:{folder.surrogate}", "tfidf"]
    return [
        Step.stage("chunk", [*reading, *workers], place("chunks")),
        Step.stage("train-tokenizer", [*chunks, *vocabulary], place("tokenizer")),
        Step.stage("train discriminator", [*learned, *preset, *limits("discriminator")], place("discriminator")),
        Step.stage("train generator", [*learned, *preset, *kind, *limits("generator")], place("generator")),
        Step.stage("index", [*chunks, *models, *workers], folder.origin),
        Step.stage("harvest", folder.harvest_flags(pairs), place("pairs")),
        Step.stage(
            "train surrogate", [*folder.surrogate_flags(place("pairs")), *limits("surrogate")], folder.surrogate
        ),
        Step.evaluation([*systems, "--label-free", "--save-thresholds", *chunks], folder.surrogate),
        *(Step("card", [model], f"{model}/README.md") for model in (folder.surrogate, folder.origin)),
    ]


def _check_held_out(chunks: str) -> None:
    """Not after an hour: every figure is one of held-out documents, and the last ones need two of them."""
    counts = read_stage(chunks, "chunk")["counts"]
    if (number := counts["documents_held_out"]) < LEAST_HELD_OUT:
        raise UserError(
            f"{number} of {counts['documents_kept']} documents are held out, and figures need {LEAST_HELD_OUT}; "
            "hold out more of them, such as --held-out 0.1, in another --output"
        )


def _remember(arguments: AdaptArguments) -> None:
    """Keep what was asked for; refuse a folder that was made for something else, whose stages would pass for ours."""
    asked = {
        "corpus": [str(Path(name).resolve()) if Path(name).exists() else name for name in arguments.corpus],
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
    # A run that failed before it finished anything (a mistyped path) does not stand in the way of the next.
    if differences and Path(arguments.folder.place("chunks")).exists():
        made = "; ".join(differences)
        raise UserError(f"{arguments.output!r} was made by another run: {made}. Choose another --output")
    if differences or not path.exists():
        write_json(path, asked)


def _closing(folder: AdaptedFolder) -> str:
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
