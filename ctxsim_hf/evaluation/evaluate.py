"""Systems and tasks, public or a user's own -> agreement with people: `ctxsim evaluate`."""

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf import __version__
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.evaluation.chosen_tasks import ChosenTasks
from ctxsim_hf.evaluation.examples import Examples, Similarity
from ctxsim_hf.evaluation.kept_answers import KeptAnswers, is_under_way
from ctxsim_hf.evaluation.label_free import ADJACENT, NUM_TRIPLETS, label_free_tasks
from ctxsim_hf.evaluation.report import Report, refuse_foreign_results
from ctxsim_hf.evaluation.results import Answers, SystemResult, TaskResult, answer, judge, judge_answers
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.evaluation.systems import System, SystemResources, describe_kinds
from ctxsim_hf.evaluation.tasks import GROUPS, STS, TASKS, check_task, expand_tasks
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import STAGE_FILE, read_stage
from ctxsim_hf.runtime.validation import CountOrZero
from ctxsim_hf.runtime.working import writing_into

SOURCES_OF_STSB = {"sts12", "sts13", "sts14", "sts15", "sts16"}


@dataclass(kw_only=True)
class EvaluateArguments(SettingsArguments):
    tasks: list[str] = HfArg(
        default_factory=list,
        help=f"Of {', '.join([*TASKS, *GROUPS])}. If left out, sts, or only what --pairs and --retrieval name.",
    )
    pairs: list[str] = HfArg(
        default_factory=list,
        help="Judged pairs of your own, each FILE or NAME=FILE: jsonl, tsv, csv or parquet, or a folder or dataset. "
        "Columns sentence1, sentence2 and score (Spearman), or label 0 or 1 (average precision).",
    )
    retrieval: list[str] = HfArg(
        default_factory=list,
        help="Folders of your own, each DIR or NAME=DIR, with corpus (id, text, maybe title) and queries (id, query, "
        "relevant: {document id: grade}), or in the layout of BEIR; judged by nDCG@10.",
    )
    split: str = HfArg(default="test", help="Split of the tasks; choose settings on validation, report on test.")
    data_root: str | None = HfArg(
        default=None, help="Folder of datasets named by their ids, such as mteb/stsbenchmark-sts; by default the Hub."
    )
    chunks: str | None = HfArg(
        default=None,
        help="Folder made by ctxsim chunk, to count words in; by default documents in DATA_ROOT/corpora.",
    )
    label_free: bool = HfArg(
        default=False,
        help="Instead of tasks, tell neighbours from unrelated sentences in the held-out documents of --chunks.",
    )
    save_thresholds: bool = HfArg(
        default=False, help="With --label-free, save the scores of random and adjacent sentences with each model."
    )
    limit: Annotated[int, Ge(2)] | None = HfArg(
        default=None, help="Score so many pairs of each task, spread evenly; by default all."
    )
    cases: CountOrZero = HfArg(
        default=0, help="Show so many pairs on which the first system is closer to people, and as many for the second."
    )
    output: str | None = HfArg(
        default=None,
        help="Folder for results.json, results.md and results.png; it also keeps what is done if the run is killed.",
    )
    baseline: list[str] = HfArg(default_factory=list, help="More systems, listed below the others.")
    systems: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = (
        "systems",
        f"Each as kind:where, or name=kind:where; those of one name are seeds of one system. {describe_kinds()}. "
        "Where may be package:NAME/PATH, inside an installed package.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.tasks or self.pairs or self.retrieval):
            self.tasks = ["sts"]

    def check(self) -> list[System]:
        """Check everything that can be checked without opening a system, and return the systems."""
        spellings = [*self.systems, *self.baseline]
        systems = [System.parse(spelling) for spelling in spellings]
        if not systems:
            raise UserError("expected a system, such as tfidf or surrogate:DIR (ctxsim evaluate --help lists them)")
        if self.cases and len({system.name for system in systems}) < 2:
            raise UserError(f"--cases compares two systems, got only {', '.join(spellings)}")
        if self.label_free and self.chunks is None:
            raise UserError("--label-free needs the held-out documents of a folder made by ctxsim chunk: --chunks DIR")
        if self.label_free and (self.pairs or self.retrieval):
            raise UserError("--label-free judges without people's judgements; leave out --pairs and --retrieval")
        if self.save_thresholds:
            self._check_thresholds(systems)
        if not self.label_free:
            for task in expand_tasks(self.tasks):
                check_task(task, self.split)
        return systems

    def _check_thresholds(self, systems: Sequence[System]) -> None:
        if not self.label_free:
            raise UserError("--save-thresholds needs the scores of --label-free; add that too")
        if not any(map(_has_folder, systems)):
            raise UserError(
                "--save-thresholds writes into the folder of a surrogate or an origin; "
                f"got only {', '.join(system.name for system in systems)}"
            )

    def written_folders(self, systems: Sequence[System]) -> list[str]:
        """Return the folders that are written, each once."""
        saved = [system.where for system in systems if self.save_thresholds and _has_folder(system)]
        names = [*([] if self.output is None else [self.output]), *saved]
        return list({Path(name).resolve(): name for name in names}.values())

    def load_tasks(self) -> list[Examples]:
        """Load the examples to score."""
        if self.label_free:
            return list(label_free_tasks(str(self.chunks), self.limit or NUM_TRIPLETS))
        return ChosenTasks(self.tasks, self.pairs, self.retrieval, self.split, self.data_root, self.limit).load()


def evaluate_similarity(
    system: Similarity,
    tasks: Sequence[str] | None = None,
    split: str = "test",
    data_root: str | Path | None = None,
    limit: int | None = None,
    pairs: str | Path | Sequence[str | Path] = (),
    retrieval: str | Path | Sequence[str | Path] = (),
) -> list[TaskResult]:
    """Hold a system's scores against the judgements of people, on public tasks or on data of your own.

    `evaluate_similarity(system, pairs="pairs.tsv")` gives one result, whose `main.value` is Spearman's correlation for
    pairs with scores and average precision for pairs with labels.

    The folder of a surrogate is a model of sentence-transformers too, so mteb can evaluate it:
    `mteb.evaluate(SentenceTransformer(folder), mteb.get_tasks(tasks=["STSBenchmark"]))`.

    Args:
        system (`Similarity`): Anything whose `similarity(sentences1, sentences2)` returns one number for each pair.
        tasks (`Sequence[str]`): Names in `ctxsim_hf.evaluation.tasks.TASKS`, or of a group of them, such as `sts`.
            None means `sts`, or no such task where `pairs` or `retrieval` are given.
        split (`str`): Split of the tasks.
        data_root (`str` or `Path`, *optional*): Folder of datasets named by their ids; None reads them from the Hub.
        limit (`int`, *optional*): Score so many pairs of each task, spread evenly; None means all.
        pairs: Files with columns sentence1, sentence2 and score or label; or folders or ids that `load_dataset` opens.
        retrieval: Folders with a corpus and queries, see `ctxsim_hf.evaluation.retrieval_data`.
    """
    own_pairs, own_retrieval = _spellings(pairs), _spellings(retrieval)
    if tasks is None:
        tasks = [] if own_pairs or own_retrieval else STS
    chosen = ChosenTasks(tasks, own_pairs, own_retrieval, split, data_root, limit)
    return list(judge(type(system).__name__, [system], chosen.load()).tasks)


def run(arguments: EvaluateArguments) -> str:
    """Evaluate the systems and return tables; with `--output` write files that hold more."""
    systems = arguments.check()
    with ExitStack() as stack:
        for folder in arguments.written_folders(systems):
            stack.enter_context(writing_into(folder))
        if arguments.output is not None and not is_under_way(arguments.output):
            refuse_foreign_results(Path(arguments.output))
        return _evaluate(arguments, systems)


def _evaluate(arguments: EvaluateArguments, systems: Sequence[System]) -> str:
    # Loaded first, since opening systems may take minutes, and a missing dataset should fail before.
    tasks = arguments.load_tasks()
    documents = [text for task in tasks if isinstance(task, Retrieval) for text in task.documents]
    resources = SystemResources(arguments, arguments.chunks, arguments.data_root, documents)
    for system in systems:
        system.check(resources)
    kept = KeptAnswers(arguments.output, resources, tasks)
    results, signatures = [], {}
    for name in tqdm(dict.fromkeys(system.name for system in systems), "evaluate", unit="system", disable=None):
        group = [system for system in systems if system.name == name]
        answers = [kept.get(system, partial(_ask, system, resources, tasks)) for system in group]
        signatures[name] = [seed.signature for seed in answers]
        results.append(judge_answers(name, answers, tasks))
        if arguments.save_thresholds:
            _save_thresholds(group, answers, results[-1])
    remarks = [remark for task in tasks for remark in task.remarks]
    remarks += [remark for system in results for task in system.tasks for remark in task.remarks]
    report = Report(tasks, results, arguments.cases, [*_seen_in_training(systems, tasks), *remarks])
    if arguments.output is None:
        return report.to_text()
    summary = report.write(Path(arguments.output), _about(arguments, systems, signatures))
    kept.clear()
    return "\n\n".join([report.to_text(), summary])


def _ask(system: System, resources: SystemResources, tasks: Sequence[Examples]) -> Answers:
    return answer(system.name, system.open(resources), tasks)


def _spellings(given: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else list(map(str, given))


def _seen_in_training(systems: Sequence[System], tasks: Sequence[Examples]) -> list[str]:
    """Warn of systems trained on STSb, whose training split has a third of the test pairs of STS12 to STS16."""
    measured = {examples.task for examples in tasks} & SOURCES_OF_STSB
    return [
        f"{system.name} was trained on stsb, whose training split has many test pairs of sts12 to sts16: its figures "
        "there, and averages that include them, are on data it has seen"
        for system in systems
        if measured and _stage(system).get("inputs", {}).get("data", {}).get("name") == TASKS["stsb"].hub_id
    ]


def _save_thresholds(seeds: Sequence[System], answers: Sequence[Answers], result: SystemResult) -> None:
    (adjacent,) = (task for task in result.tasks if task.task == ADJACENT)
    for seed, answered, scores in zip(seeds, answers, adjacent.scores, strict=True):
        if _has_folder(seed):
            near, far = np.split(scores, 2)
            Thresholds.from_scores(far, near, answered.settings).save(seed.where)


def _has_folder(system: System) -> bool:
    """Return whether a system has a folder to write into: one that is no part of another, such as an origin's copy."""
    if system.kind not in ("surrogate", "origin") or not Path(system.where).is_dir():
        return False
    return not any((place / STAGE_FILE).exists() for place in Path(system.where).resolve().parents)


def _stage(system: System) -> dict[str, Any]:
    """Return the stage.json of a system's folder; empty where there is none."""
    path = Path(system.where) / STAGE_FILE
    return read_stage(system.where) if system.where and path.exists() else {}


def _stage_digest(system: System) -> str | None:
    """Return the digest by which a folder finds its own figures wherever it is moved; None without stage.json."""
    path = Path(system.where) / STAGE_FILE
    return digest_file(path) if system.where and path.exists() else None


def _about(
    arguments: EvaluateArguments, systems: Sequence[System], signatures: dict[str, list[str | None]]
) -> dict[str, Any]:
    """Describe how the figures were made, for results.json."""
    packages = ("datasets", "numpy", "scipy")
    return {
        "arguments": {flag: value for flag, value in asdict(arguments).items() if flag != "output"},
        "signatures": {name: found for name, found in signatures.items() if any(found)},
        "stages": {name: [_stage_digest(system) for system in systems if system.name == name] for name in signatures},
        "versions": {"ctxsim_hf": __version__, "python": platform.python_version()}
        | {package: version(package) for package in packages},
    }
