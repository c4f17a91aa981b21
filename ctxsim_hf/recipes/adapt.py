"""Turn documents into a surrogate for their domain: `ctxsim adapt`, every stage in a row.

    chunks/  tokenizer/  generator/  vectors/                   what one stage leaves for the next
    ctxsim/origin-<preset>/                                     similarity with reasons, its signals weighed
    ctxsim/surrogate-<preset>/                                  the fast encoder, and results.md, which has others too
    pairs/                                                      sentences of the corpus, labelled by the origin
    adapt.json                                                  what was asked for
    speed.json                                                  with --context-model: how fast it reads

The origin is the teacher: the contexts of words (`cloze`), the words themselves, and an encoder, if one is named, with
weights that the yardstick chooses on held-out documents. The surrogate learns from its vectors. With `--context-model`
no generator is trained: a language model knows the contexts, for as many sentences as it reads in its share of the
minutes. With `--start` the surrogate starts from an encoder, with that encoder's tokenizer; otherwise it is a table of
word vectors.

Each step is a verb that could be run alone, and is shown as its command line. All are stages, so the same command
resumes an interrupted run and repeats no finished stage. With further corpora after those of before, the folder grows:
see growth.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.report import ALL_FIGURES, read_report
from ctxsim_hf.evaluation.weigh import describe
from ctxsim_hf.origin.chosen_weights import WEIGHTS_FILE, ChosenWeights
from ctxsim_hf.origin.layout import SIGNALS
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.budget import FAST_QUESTIONS, Budget
from ctxsim_hf.recipes.growth import add_documents, added_corpora, is_outdated
from ctxsim_hf.recipes.steps import Checks, Step, run_steps
from ctxsim_hf.recipes.verdict import BASELINES, loses, searches, verdict
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import seal, write_json
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.presets import PRESETS, Preset
from ctxsim_hf.runtime.record import read_stage
from ctxsim_hf.runtime.validation import Count, Positive, Share
from ctxsim_hf.runtime.working import writing_into
from ctxsim_hf.text.lines import is_pipe

if TYPE_CHECKING:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

SPEED_FILE = "speed.json"
MIN_HELD_OUT = 2  # documents
MAX_EPOCHS = 10  # a small corpus is soon overfitted
SURROGATE, START = "surrogate", "start"  # names in the last table


@dataclass(kw_only=True)
class AdaptArguments(Arguments):
    """The arguments of `ctxsim adapt`."""

    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of datasets."
    )
    output: str = HfArg(help="Folder to write. Run the same command again to resume after an interruption.")
    preset: Preset = HfArg(default="light", help=f"Sizes of all models: {', '.join(PRESETS)}.")
    context_model: str | None = HfArg(
        default=None,
        help="Causal language model that labels the pairs: its folder, a GGUF file, package:NAME/PATH or its id on "
        "the Hub; by default a generator is trained.",
    )
    start: str | None = HfArg(
        default=None, help="Encoder that the surrogate starts from, folder or id; by default vectors of words."
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
    folder, checks = arguments.folder, {"chunk": _check_held_out, "index": _complete_origin}
    if arguments.start is not None:
        fetch_folder(arguments.start, "a sentence encoder")  # refuses a mistyped name at once
    with writing_into(arguments.output):
        speed = None if arguments.context_model is None else _reading_speed(arguments, checks)
        _remember(arguments)
        run_steps(plan(arguments, speed), arguments.minutes, checks)
        if arguments.start is not None and loses(read_report(Path(folder.surrogate))[0], START):
            run_steps(plan(arguments, speed, leave_start=True), arguments.minutes)
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder  # and with it torch, which takes seconds

    report = _report(folder, SentenceEncoder.from_pretrained(folder.surrogate))
    return Adapted(Path(folder.surrogate), Path(folder.origin), report)


def _reading_speed(arguments: AdaptArguments, checks: Checks) -> float:
    """Make the chunks, and measure on them how fast the language model reads: the other steps depend on it."""
    from ctxsim_hf.recipes.reading_speed import check_language_model, recorded_speed  # and with it torch

    name, record = str(arguments.context_model), Path(arguments.folder.place(SPEED_FILE))
    if not record.exists():
        check_language_model(name)
    _remember(arguments)
    run_steps([_chunk(arguments)], arguments.minutes, checks)
    return recorded_speed(record, name, arguments.folder.place("chunks"))


def plan(arguments: AdaptArguments, speed: float | None = None, leave_start: bool = False) -> list[Step]:
    """Return the steps.

    Args:
        arguments (`AdaptArguments`): All that the steps depend on otherwise, so that a resumed run has the same ones.
        speed (`float`, *optional*): Sentences a second that the language model reads. None if there is none.
        leave_start (`bool`): Whether the start takes the place of a surrogate that the yardstick finds worse.
    """
    folder, workers = arguments.folder, arguments.workers
    budget = Budget(arguments.minutes, speed, arguments.start is not None)
    chunks, vectors = folder.place("chunks"), folder.place("vectors")
    trained = {
        **folder.teacher_values(vectors),
        "epochs": MAX_EPOCHS,
        "max_train_minutes": budget.minutes_of("surrogate"),
        "keep": "start" if leave_start else None,
    }
    indexed = {"encoder": arguments.start, "workers": workers}
    # A run that is killed does not have to read the questions again.
    cache = folder.place("cache") if arguments.context_model else None
    weights = {"origin": folder.origin, "chunks": chunks, "cache": cache, "pairs": budget.questions}
    judged = {"label_free": True, "save_thresholds": True, "chunks": chunks, "limit": FAST_QUESTIONS}
    pairs = folder.place("pairs")
    new_vectors = is_outdated(vectors, "origin", folder.origin)
    new_surrogate = leave_start or new_vectors or is_outdated(folder.surrogate, "data", vectors)
    new_pairs = is_outdated(pairs, "origin", folder.origin)
    drawn = {"origin": folder.origin, "sentences": budget.vectors, "workers": workers}
    return [
        _chunk(arguments),
        *_models(arguments, budget),
        Step.stage("index", folder.origin, chunks=chunks, **_context_models(arguments, budget), **indexed),
        Step("weigh", weights | _weighed(arguments), str(Path(folder.origin, WEIGHTS_FILE))),
        Step.stage("harvest-vectors", vectors, **drawn, overwrite=new_vectors),
        Step.stage("train surrogate", folder.surrogate, **trained, overwrite=new_surrogate),
        Step.evaluation(_systems(arguments), folder.surrogate, **judged),
        Step.stage("harvest", pairs, **folder.harvest_values(budget.pairs), overwrite=new_pairs),
        *(Step("card", {"folders": [model]}, f"{model}/README.md") for model in (folder.surrogate, folder.origin)),
    ]


def _weighed(arguments: AdaptArguments) -> dict[str, Any]:
    """Return the arguments of `ctxsim weigh` that say what is expected. A generator has learned to tell neighbours, so
    that the yardstick praises it too much: beside words, which keep their weight, and beside an encoder, where people
    find the mixture worse on health questions, so that it is left out (docs/experiments.md)."""
    if arguments.context_model is not None:
        return {}
    if arguments.start is not None:
        return {"signals": ["words=0", "encoder=1"]}
    return {"signals": ["cloze=1", "words=1"], "least_words": 1.0}


def _systems(arguments: AdaptArguments) -> list[str]:
    """Return what the last table compares, the surrogate first. A language model is too slow to be asked so much; how
    good the teacher is with one is known from choosing its weights."""
    folder = arguments.folder
    start = [f"{START}=surrogate:{Path(folder.origin, SIGNALS, 'encoder')}"] if arguments.start is not None else []
    teacher = [f"teacher=origin:{folder.origin}"] if arguments.context_model is None else []
    return [f"{SURROGATE}=surrogate:{folder.surrogate}", *start, *teacher, *BASELINES, *arguments.compare]


def _chunk(arguments: AdaptArguments) -> Step:
    return Step.stage("chunk", arguments.folder.place("chunks"), **arguments.reading(), workers=arguments.workers)


def _models(arguments: AdaptArguments, budget: Budget) -> list[Step]:
    """Return the steps that make a tokenizer and a generator, where they are needed."""
    if arguments.context_model is not None and arguments.start is not None:  # each has a tokenizer
        return []
    place, sizes = arguments.folder.place, PRESETS[arguments.preset]
    vocab_size = sizes["vocab_size"]
    if arguments.context_model is not None:  # which reads every token once
        vocab_size = min(vocab_size, budget.words)
    vocabulary = {"vocab_size": vocab_size, "lowercase": sizes["lowercase"]}
    tokenizer = Step.stage("train-tokenizer", place("tokenizer"), chunks=place("chunks"), **vocabulary)
    if arguments.context_model is not None:
        return [tokenizer]
    kind = {} if "light_generator" in sizes else {"kind": "seq2seq", "direction": "all"}
    learned = {"chunks": place("chunks"), "tokenizer": place("tokenizer"), "preset": arguments.preset}
    limits = {"epochs": MAX_EPOCHS, "max_train_minutes": budget.minutes_of("generator")}
    return [tokenizer, Step.stage("train generator", place("generator"), **learned, **kind, **limits)]


def _context_models(arguments: AdaptArguments, budget: Budget) -> dict[str, Any]:
    """Return the arguments of `ctxsim index` that name its context model."""
    if arguments.context_model is None:
        return {"generator": [arguments.folder.place("generator")]}
    return {"context_model": [arguments.context_model], "background": budget.background}


def _check_held_out(chunks: str) -> None:
    """Refuse at once what would fail after an hour: the label-free evaluation needs two held-out documents."""
    counts = read_stage(chunks, "chunk")["counts"]
    if (number := counts["documents_held_out"]) < MIN_HELD_OUT:
        raise UserError(
            f"{number} of {counts['documents_kept']} documents are held out, but the evaluation needs {MIN_HELD_OUT}; "
            "hold out more of them, such as --held-out 0.1, in another --output"
        )


def _complete_origin(origin: str) -> None:
    """Measure what similarities mean, which `ctxsim index` does last, if a run was killed before it could."""
    from ctxsim_hf.origin.background_thresholds import write_background_thresholds  # and with it torch

    write_background_thresholds(origin)


def _remember(arguments: AdaptArguments) -> None:
    """Record the arguments; refuse a folder made with other ones, whose stages would be taken for finished."""
    asked = {
        "corpus": [name if is_pipe(name) else _resolved(name) for name in arguments.corpus],
        "preset": arguments.preset,
        "minutes": arguments.minutes,
        "text_column": arguments.text_column,
        "config_name": arguments.config_name,
        "language": arguments.language,
        "held_out": arguments.held_out,
    }
    models = {"context_model": arguments.context_model, "start": arguments.start}
    asked |= {name: _resolved(given) for name, given in models.items() if given is not None}
    path, before = arguments.folder.asked_file, arguments.folder.asked() or asked
    differences = [
        f"{name} was {before.get(name)}, now {asked.get(name)}"
        for name in asked | before
        if before.get(name) != asked.get(name)
    ]
    if (added := added_corpora(before, asked)) and Path(arguments.folder.origin).exists():
        add_documents(arguments.folder, added, arguments.workers, arguments.minutes)
    # A run that failed before it finished a stage, such as by a mistyped path, does not block the next one.
    elif differences and Path(arguments.folder.place("chunks")).exists():
        made = "; ".join(differences)
        raise UserError(f"{arguments.output!r} was made by another run: {made}. Choose another --output")
    if differences or not path.exists():
        write_json(path, seal(asked))


def _resolved(name: str) -> str:
    """Return the absolute path of what exists, and any other name as it is."""
    return str(Path(name).resolve()) if Path(name).exists() else name


def _teacher(folder: AdaptedFolder) -> str:
    """Return how good the teacher is, where it is too slow for the table."""
    chosen = ChosenWeights.load(Path(folder.origin))
    return "" if chosen is None else f"Its teacher, {folder.origin}, on fewer pairs:\n{describe(chosen)}"


def _report(folder: AdaptedFolder, encoder: "SentenceEncoder") -> str:
    results, tables = read_report(Path(folder.surrogate))
    table, _, _ = tables.partition(ALL_FIGURES)
    name = Path(folder.surrogate).name
    start = None if folder.start is None else START
    is_start = read_stage(folder.surrogate)["counts"]["kept_step"] == 0
    return "\n".join(
        [
            f"made {folder.surrogate} (fast) and {folder.origin} (with reasons)",
            "",
            table.strip(),
            "",
            *([] if folder.context_model is None else [_teacher(folder), ""]),
            searches(encoder, folder.place("chunks")),
            "",
            verdict(results, SURROGATE, start, is_start),
            "",
            f"In {folder.path}:",
            "    from ctxsim_hf import SentenceEncoder",
            f'    encoder = SentenceEncoder.from_pretrained("ctxsim/{name}")',
            '    encoder.similarity(["One sentence."], ["Another sentence."])',
        ]
    )
