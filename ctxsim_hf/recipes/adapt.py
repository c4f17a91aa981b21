"""Turn documents into a surrogate for their domain: `ctxsim adapt`, every stage in a row.

    chunks/  tokenizer/  generator/  vectors/                   what one stage leaves for the next
    start/                                                      the surrogate before training, to compare with
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

from ctxsim_hf.evaluation.report import ALL_FIGURES, read_report
from ctxsim_hf.evaluation.weigh import describe
from ctxsim_hf.hub.cards import remove_card
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.adapt_steps import START, SURROGATE, chunk_step, plan
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.growth import add_documents, added_corpora
from ctxsim_hf.recipes.steps import Checks, run_steps
from ctxsim_hf.recipes.verdict import loses, searches, verdict
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import seal, write_json
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.working import writing_into
from ctxsim_hf.text.lines import is_pipe

if TYPE_CHECKING:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

SPEED_FILE = "speed.json"
MIN_HELD_OUT = 2  # documents


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
        if loses(read_report(Path(folder.surrogate))[0], START):
            remove_card(folder.surrogate, arguments.language)  # what it says of the surrogate is no longer true
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
    run_steps([chunk_step(arguments)], arguments.minutes, checks)
    return recorded_speed(record, name, arguments.folder.place("chunks"))


def _check_held_out(chunks: str) -> None:
    """Refuse at once what would fail after an hour: the label-free evaluation needs two held-out documents."""
    counts = read_counts(chunks, "chunk")
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
    folder, asked = arguments.folder, _asked(arguments)
    before = folder.asked() or asked
    differences = [
        f"{name} was {before.get(name)}, now {asked.get(name)}"
        for name in asked | before
        if before.get(name) != asked.get(name)
    ]
    if not differences and folder.asked_file.exists():
        return
    if (added := added_corpora(before, asked)) and Path(folder.origin).exists():
        add_documents(arguments, added)
    # A run that failed before it finished a stage, such as by a mistyped path, does not block the next one.
    elif differences and Path(folder.place("chunks")).exists():
        made = "; ".join(differences)
        raise UserError(f"{arguments.output!r} was made by another run: {made}. Choose another --output")
    write_json(folder.asked_file, seal(asked))


def _asked(arguments: AdaptArguments) -> dict[str, Any]:
    """Return what adapt.json records; a run with anything else needs another folder."""
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
    return asked | {name: _resolved(given) for name, given in models.items() if given is not None}


def _resolved(name: str) -> str:
    """Return the absolute path of what exists, and any other name as it is."""
    return str(Path(name).resolve()) if Path(name).exists() else name


def _teacher(folder: AdaptedFolder) -> str:
    """Return how good the teacher is, where it is too slow for the table."""
    chosen = ChosenWeights.load(Path(folder.origin))
    return "" if chosen is None else f"Its teacher, {folder.origin}, on other and fewer pairs:\n{describe(chosen)}"


def _report(folder: AdaptedFolder, encoder: "SentenceEncoder") -> str:
    results, tables = read_report(Path(folder.surrogate))
    table, _, _ = tables.partition(ALL_FIGURES)
    name = Path(folder.surrogate).name
    start = None if folder.start is None else START
    is_start = read_counts(folder.surrogate)["kept_step"] == 0
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
