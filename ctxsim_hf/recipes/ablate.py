"""Measure what a part of the method is worth, next to the paper's figures where it has some: `ctxsim ablate`.

    contexts  strategy  terms  signals    the origin of an adapted folder with other settings
    corpus-size                           origins of fewer documents
    bridges                               origins whose language model is asked by other texts
    pairs  structure                      surrogates of fewer pairs, or of another structure

The arms are made by other verbs, which are shown as command lines, each arm in a folder of its own. An arm is finished
once it is evaluated, and is not run again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation import paper_figures
from ctxsim_hf.evaluation.ablation_report import AblationReport
from ctxsim_hf.evaluation.evaluate import EvaluateArguments
from ctxsim_hf.evaluation.examples import Examples
from ctxsim_hf.evaluation.report import SCORES_FILE, read_report
from ctxsim_hf.evaluation.results import judge
from ctxsim_hf.evaluation.systems import PairScorer
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.recipes.ablations import ABLATIONS
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.arms import Ablation, Arm, Place, folder_name, title
from ctxsim_hf.recipes.signal_ablations import spell
from ctxsim_hf.recipes.steps import Step, run_steps
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.validation import Count, Positive


@dataclass(kw_only=True)
class AblateArguments(StageArguments, SettingsArguments):
    """The arguments of `ctxsim ablate`."""

    adapted: str = HfArg(help="Folder made by ctxsim adapt.")
    tasks: list[str] = HfArg(default_factory=lambda: ["stsb"], help="Tasks of ctxsim evaluate.")
    split: str = HfArg(default="validation", help="Split of the tasks.")
    data_root: str | None = HfArg(default=None, help="Folder of datasets named by their ids; else the Hub.")
    limit: Annotated[int, Ge(2)] | None = HfArg(
        default=None,
        help="Score this many pairs of each task, spread evenly; by default 500 for arms that are origins, else all.",
    )
    minutes: Positive = HfArg(default=20, help="About how long the whole run may take, where arms are trained.")
    workers: Count | None = HfArg(default=None, help="Processes, where a stage can use several; by default all cores.")
    ablation: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("ablation", f"One of {', '.join(ABLATIONS)}.")
    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "adapted", "data_root", "workers", "cache")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workers = self.workers or available_cores()

    def check(self) -> Ablation:
        """Check the arguments and return the ablation that they name."""
        if len(self.ablation) != 1 or self.ablation[0] not in ABLATIONS:
            raise UserError(f"expected one of {', '.join(ABLATIONS)}, got {' '.join(self.ablation) or 'none'}")
        ablation = ABLATIONS[self.ablation[0]]
        names = [f.name for f in fields(SettingsArguments) if not ablation.asks_origin or f.name in ablation.varies]
        if given := [name for name in names if getattr(self, name) is not None]:
            why = (
                "is what the arms differ by" if ablation.asks_origin else "is for origins, and the arms are surrogates"
            )
            raise UserError(f"--{given[0].replace('_', '-')} {why}; leave it out")
        if self.limit is None:
            self.limit = ablation.limit
        return ablation

    def weigh(self, ablation: Ablation, adapted: AdaptedFolder) -> None:
        """Fill in the weights of signals, which stage.json records: those that `ctxsim weigh` chose may change."""
        if ablation.asks_origin and self.signals is None and self.lexical_weight is None:
            self.signals = spell(adapted.signals) if ablation.signals is None else list(ablation.signals)

    def evaluation_values(self) -> dict[str, Any]:
        """Return the arguments of `ctxsim evaluate` that all arms have in common."""
        names = ("tasks", "split", "data_root", "limit", *(f.name for f in fields(SettingsArguments)))
        return {name: getattr(self, name) for name in names}

    def load_tasks(self, arms: Sequence[Arm]) -> list[Examples]:
        """Load the examples that the arms are evaluated on."""
        evaluation = EvaluateArguments(tasks=self.tasks, split=self.split, data_root=self.data_root, limit=self.limit)
        evaluation.systems = [arm.system for arm in arms]
        evaluation.check()
        return evaluation.load_tasks()


def run(arguments: AblateArguments) -> str:
    """Run the steps that are not finished yet and return the tables."""
    ablation = arguments.check()
    adapted = AdaptedFolder.find(arguments.adapted)
    if ablation.expects is not None:
        ablation.expects(adapted)
    inputs = adapted.describe()
    arguments.weigh(ablation, adapted)
    with Stage("ablate", arguments, inputs, packages=("numpy", "scipy", "torch", "transformers")) as stage:
        if not stage.finished:
            arms = ablation.arms(Place(adapted, stage.folder, arguments.minutes, arguments.workers or 1))
            tasks = arguments.load_tasks(arms)  # before anything is trained
            run_steps(plan(arguments, arms, stage.folder), arguments.minutes)
            report = AblationReport(
                tasks,
                [judge(title(arm, adapted), [_scores(arm, stage.folder)], tasks) for arm in arms],
                remarks=[f"{arm.name}: {arm.note}" for arm in arms if arm.note],
                about=ablation.about,
                paper=paper_figures.ABLATIONS.get(arguments.ablation[0], {}),
            )
            report.write(stage.folder, {"ablation": arguments.ablation[0]})
            stage.finish({"arms": len(arms)})
        _, table = read_report(stage.output)
    return f"{table}\n{arguments.output} is finished"


def plan(arguments: AblateArguments, arms: Sequence[Arm], folder: Path) -> list[Step]:
    """Return the steps of all arms; they depend on the arguments and the adapted folder alone."""
    steps: list[Step] = []
    for arm in arms:
        values = {**arguments.evaluation_values(), **arm.settings}
        steps += [*arm.steps, Step.evaluation([f"{arm.name}={arm.system}"], _evaluation(arm, folder), **values)]
    return steps


def _scores(arm: Arm, folder: Path) -> PairScorer:
    """Return the scores that an arm's evaluation wrote, as a system. Judged together, arms have paired intervals."""
    read_report(_evaluation(arm, folder))  # refuses damaged scores
    (scores,) = np.load(_evaluation(arm, folder) / SCORES_FILE, allow_pickle=False)
    return PairScorer(lambda first, second: scores)


def _evaluation(arm: Arm, folder: Path) -> Path:
    return folder / folder_name(arm.name) / "evaluation"
