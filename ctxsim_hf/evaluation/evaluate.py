"""Systems and tasks, public or a user's own -> agreement with people: `ctxsim evaluate`."""

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ctxsim_hf import __version__
from ctxsim_hf.evaluation.chosen_tasks import ChosenTasks
from ctxsim_hf.evaluation.evaluate_arguments import EvaluateArguments
from ctxsim_hf.evaluation.examples import Examples, Similarity
from ctxsim_hf.evaluation.kept_answers import KeptAnswers, is_under_way
from ctxsim_hf.evaluation.report import Report, refuse_foreign_results
from ctxsim_hf.evaluation.results import Answers, TaskResult, answer, judge, judge_answers
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.evaluation.system_folders import save_thresholds, stage_digest, stage_record
from ctxsim_hf.evaluation.systems import System, SystemResources
from ctxsim_hf.evaluation.tasks import STS, TASKS
from ctxsim_hf.runtime.working import writing_into

SOURCES_OF_STSB = {"sts12", "sts13", "sts14", "sts15", "sts16"}


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
        limit (`int`, *optional*): Score this many pairs of each task, spread evenly; None means all.
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
            save_thresholds(group, answers, results[-1])
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
        if measured and stage_record(system).get("inputs", {}).get("data", {}).get("name") == TASKS["stsb"].hub_id
    ]


def _about(
    arguments: EvaluateArguments, systems: Sequence[System], signatures: dict[str, list[str | None]]
) -> dict[str, Any]:
    """Describe how the figures were made, for results.json."""
    packages = ("datasets", "numpy", "scipy")
    return {
        "arguments": {flag: value for flag, value in asdict(arguments).items() if flag != "output"},
        "signatures": {name: found for name, found in signatures.items() if any(found)},
        "stages": {name: [stage_digest(system) for system in systems if system.name == name] for name in signatures},
        "versions": {"ctxsim_hf": __version__, "python": platform.python_version()}
        | {package: version(package) for package in packages},
    }
