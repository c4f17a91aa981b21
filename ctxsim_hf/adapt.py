"""Documents -> a surrogate for their domain: `ctxsim adapt`, every stage in a row.

    chunks/  tokenizer/  discriminator/  generator/  pairs/     what one stage leaves for the next
    ctxsim/origin-<preset>/                                     similarity with reasons
    ctxsim/surrogate-<preset>/                                  the fast encoder
    label-free/                                                 it, and TF-IDF, on held-out documents

Each step is a command that could be typed as well, and is shown as such. All are stages: whatever ended a run, the
same command goes on where it was and does no finished stage again.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transformers.hf_argparser import HfArg

from ctxsim_hf.cli import run_verb
from ctxsim_hf.errors import UserError
from ctxsim_hf.presets import PRESETS

# Of the minutes. What is left goes to stages whose length depends on the corpus: chunks, tokens, index, evaluation.
SHARES = {"discriminator": 0.12, "generator": 0.35, "harvest": 0.1, "surrogate": 0.25}
PAIRS_A_MINUTE = 200_000  # harvested in groups, by one core
MOST_EPOCHS = 10  # few documents are soon learned by heart


@dataclass(kw_only=True)
class AdaptArguments:
    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of data sets."
    )
    output: str = HfArg(help="Folder to write. Run the same command again to go on after an interruption.")
    preset: str = HfArg(default="light", help=f"Sizes of all models: {', '.join(PRESETS)}.")
    minutes: float = HfArg(default=30, help="About how long all of it may take; with more, better models.")
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, data sets).")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    workers: int | None = HfArg(default=None, help="Processes, where a stage can use several; by default all cores.")

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise UserError(f"unknown preset {self.preset!r}; expected one of {', '.join(PRESETS)}")
        if self.minutes <= 0:
            raise UserError(f"--minutes must be above 0, got {self.minutes}")
        self.workers = self.workers or len(os.sched_getaffinity(0))

    def place(self, name: str) -> str:
        return str(Path(self.output) / name)

    @property
    def origin(self) -> str:
        return self.place(f"ctxsim/origin-{self.preset}")

    @property
    def surrogate(self) -> str:
        return self.place(f"ctxsim/surrogate-{self.preset}")


class Step(NamedTuple):
    verb: str
    flags: list[str]
    leaves: str  # what is there once the step is done

    def __str__(self) -> str:
        return f"ctxsim {self.verb} {' '.join(self.flags)}"


def run(arguments: AdaptArguments) -> str:
    """Do what is not done yet; returns what was made, how good it is, and how to use it."""
    steps, start = plan(arguments), time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}]"
        if Path(step.leaves).exists():
            _say(f"{place} {step.leaves} is there already")
            continue
        spent = (time.monotonic() - start) / 60
        _say(f"{place} {spent:.0f} of about {arguments.minutes:.0f} minutes\n{step}")
        run_verb(step.verb, step.flags)
    return _closing(arguments)


def plan(arguments: AdaptArguments) -> list[Step]:
    """The steps. They follow from the arguments alone, so that an interrupted run is met by the same ones."""
    place, preset = arguments.place, ["--preset", arguments.preset]
    sizes, workers = PRESETS[arguments.preset], ["--workers", str(arguments.workers)]
    chunks, learned = ["--chunks", place("chunks")], ["--chunks", place("chunks"), "--tokenizer", place("tokenizer")]
    pairs = max(1000, round(SHARES["harvest"] * arguments.minutes * PAIRS_A_MINUTE))

    def limits(stage: str) -> list[str]:
        return ["--epochs", str(MOST_EPOCHS), "--max-train-minutes", f"{SHARES[stage] * arguments.minutes:g}"]

    def stage(verb: str, flags: list[str], output: str) -> Step:
        return Step(verb, [*flags, "--output", output], output)

    reading = ["--corpus", *arguments.corpus, "--text-column", arguments.text_column, "--language", arguments.language]
    models = ["--discriminator", place("discriminator"), "--generator", place("generator")]
    vocabulary = ["--vocab-size", str(sizes["vocab_size"]), *(["--lowercase"] if sizes["lowercase"] else [])]
    light = sizes.get("light_generator", {"hidden_size": 0})
    kind = [] if light["hidden_size"] else ["--kind", "seq2seq", "--direction", "all"]
    wide_enough = light["hidden_size"] >= sizes["surrogate"]["hidden_size"]
    start = ["--token-embeddings", place("generator")] if wide_enough else []
    systems = [f"surrogate-{arguments.preset}=surrogate:{arguments.surrogate}", "tfidf"]
    return [
        stage("chunk", [*reading, *workers], place("chunks")),
        stage("train-tokenizer", [*chunks, *vocabulary], place("tokenizer")),
        stage("train discriminator", [*learned, *preset, *limits("discriminator")], place("discriminator")),
        stage("train generator", [*learned, *preset, *kind, *limits("generator")], place("generator")),
        stage("index", [*chunks, *models, *workers], arguments.origin),
        stage("harvest", ["--origin", arguments.origin, "--pairs", str(pairs), "--mode", "group"], place("pairs")),
        stage(
            "train surrogate",
            ["--pairs", place("pairs"), *learned[2:], *preset, *start, *limits("surrogate")],
            arguments.surrogate,
        ),
        stage("evaluate", [*systems, "--label-free", "--save-thresholds", *chunks], place("label-free")),
        *(Step("card", [folder], f"{folder}/README.md") for folder in (arguments.surrogate, arguments.origin)),
    ]


def _closing(arguments: AdaptArguments) -> str:
    table = Path(arguments.place("label-free"), "results.md").read_text("utf-8")
    name = Path(arguments.surrogate).name
    return "\n".join(
        [
            f"made {arguments.surrogate} (fast) and {arguments.origin} (with reasons)",
            "",
            table.strip(),
            "",
            f"In {arguments.output}:",
            "    from ctxsim_hf import SentenceEncoder",
            f'    encoder = SentenceEncoder.from_pretrained("ctxsim/{name}")',
            '    encoder.similarity(["One sentence."], ["Another sentence."])',
        ]
    )


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
