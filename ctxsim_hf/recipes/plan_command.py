"""Print what a corpus would cost, stage by stage: `ctxsim plan`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from ctxsim_hf.recipes.cost_model import SHIPPED, Cost, CostModel, Workload
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.presets import Preset
from ctxsim_hf.runtime.validation import Count

WORDS_PER_DOCUMENT = 500
SMOLLM2 = 134_515_008  # parameters


@dataclass(kw_only=True)
class PlanArguments(Arguments):
    """The arguments of `ctxsim plan`."""

    words: Count = HfArg(help="Words of the corpus; a token of a language model is about 3/4 of a word.")
    documents: Count | None = HfArg(
        default=None, help=f"Documents of the corpus. By default one for {WORDS_PER_DOCUMENT} words."
    )
    pairs: Count = HfArg(default=1_000_000, help="Pairs to harvest, in group mode.")
    context_model: str = HfArg(
        default="light", help="Kind of context model that was measured: light, or causal for a language model."
    )
    preset: Preset = HfArg(default="light", help="Size of a light model: tiny, light, small, base or large.")
    parameters: Count = HfArg(
        default=SMOLLM2, help="Size of a language model, in parameters; by default that of SmolLM2-135M."
    )
    machines: Count = HfArg(default=1, help="Machines that share a file system.")
    cores: Count = HfArg(default=1, help="Cores of each machine.")
    constants: str | None = HfArg(
        default=None, help="File written by python -m benchmarks.bench_costs. By default the constants of the package."
    )


def run(arguments: PlanArguments) -> str:
    """Return a table of the costs, and what it rests on."""
    model = CostModel.load(Path(arguments.constants) if arguments.constants else SHIPPED)
    workload = Workload(
        words=arguments.words,
        documents=arguments.documents or max(1, arguments.words // WORDS_PER_DOCUMENT),
        pairs=arguments.pairs,
        cores=arguments.machines * arguments.cores,
        parameters=arguments.parameters,
    )
    costs = model.estimate(workload, arguments.context_model, arguments.preset)
    origin = "your own" if arguments.constants else "shipped with the package; measure your own with make bench"
    return (
        f"{format_costs(costs)}\nconstants: measured on {model.machine} ({origin}) {model.notes}".rstrip() + "\n"
        "not included: training, which runs on one machine for as long as --max-train-minutes says; waiting in queues"
    )


def format_costs(costs: Sequence[Cost]) -> str:
    """Return the costs as a table in Markdown, with a line of totals."""
    lines = ["| part | cores | time | core hours | memory of a process | disk |", "|---|--:|--:|--:|--:|--:|"]
    for cost in costs:
        columns = [cost.part, f"{cost.cores:,}", _time(cost.seconds), f"{cost.core_hours:,.1f}"]
        lines.append(f"| {' | '.join([*columns, _bytes(cost.memory), _bytes(cost.disk)])} |")
    total = [_time(sum(c.seconds for c in costs)), f"{sum(c.core_hours for c in costs):,.1f}"]
    memory, disk = max(c.memory for c in costs), sum(c.disk for c in costs)
    lines.append(f"| all | | {' | '.join([*total, _bytes(memory), _bytes(disk)])} |")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(number: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number / 1e3:.0f} kB" if number else ""
