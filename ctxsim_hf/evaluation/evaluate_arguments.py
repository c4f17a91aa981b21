"""The arguments of `ctxsim evaluate`: what to compare, and on what."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.chosen_tasks import ChosenTasks
from ctxsim_hf.evaluation.examples import Examples
from ctxsim_hf.evaluation.label_free import NUM_TRIPLETS, label_free_tasks
from ctxsim_hf.evaluation.system_folders import has_folder
from ctxsim_hf.evaluation.systems import System, describe_kinds
from ctxsim_hf.evaluation.tasks import GROUPS, TASKS, check_task, expand_tasks
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import CountOrZero


@dataclass(kw_only=True)
class EvaluateArguments(SettingsArguments):
    """The arguments of `ctxsim evaluate`."""

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
        default=None, help="Score this many pairs of each task, spread evenly; by default all."
    )
    cases: CountOrZero = HfArg(
        default=0,
        help="Show this many pairs on which the first system is closer to people, and as many for the second.",
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
        if not any(map(has_folder, systems)):
            raise UserError(
                "--save-thresholds writes into the folder of a surrogate or an origin; "
                f"got only {', '.join(system.name for system in systems)}"
            )

    def written_folders(self, systems: Sequence[System]) -> list[str]:
        """Return the folders that are written, each once."""
        saved = [system.where for system in systems if self.save_thresholds and has_folder(system)]
        names = [*([] if self.output is None else [self.output]), *saved]
        return list({Path(name).resolve(): name for name in names}.values())

    def load_tasks(self) -> list[Examples]:
        """Load the examples to score."""
        if self.label_free:
            return list(label_free_tasks(str(self.chunks), self.limit or NUM_TRIPLETS))
        return ChosenTasks(self.tasks, self.pairs, self.retrieval, self.split, self.data_root, self.limit).load()
