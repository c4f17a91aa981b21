"""Groups drawn from an index -> blocks, the units of work: each becomes one parquet file.

The plan follows from the index and the arguments alone. Every process draws it for itself, which takes a hundredth of
the time that labelling takes, and works on its share of the blocks: so pairs and files are the same for any number of
processes and shards.
"""

from dataclasses import dataclass

from tqdm import tqdm

from ctxsim_hf.harvest.drawing import SPLITS, Drawing, Group
from ctxsim_hf.runtime.errors import UserError

LEAST_PAIRS = 100  # one for each of the small splits


@dataclass(frozen=True)
class CountedGroup:
    """A group and how many of its pairs are taken: all but in the last group of a split."""

    group: Group
    num_pairs: int


@dataclass(frozen=True)
class Block:
    name: str  # of its file
    groups: list[CountedGroup]

    @property
    def num_pairs(self) -> int:
        return sum(counted.num_pairs for counted in self.groups)


def pairs_by_split(pairs: int) -> dict[str, int]:
    """98/1/1."""
    small = pairs // LEAST_PAIRS
    return dict(zip(SPLITS, (pairs - 2 * small, small, small), strict=True))


def make_plan(
    drawing: Drawing, pairs: int, pairs_per_file: int, show_progress: bool = True, at_most: bool = False
) -> list[Block]:
    """The blocks of a harvest, the small splits last. Where the sentences do not suffice, it is refused, or with
    `at_most` made as large as they allow."""
    available = {split: drawing.num_sentences(split) for split in SPLITS}
    wanted = pairs_by_split(pairs)
    with tqdm(total=pairs, desc="draw", unit="pair", disable=None if show_progress else True) as bar:
        drawn = {split: _draw(drawing, split, number, bar) for split, number in wanted.items()}
    found = {split: sum(counted.num_pairs for counted in groups) for split, groups in drawn.items()}
    if short := {split: number for split, number in found.items() if number < wanted[split]}:
        possible = _possible(pairs, short)
        if not at_most or possible < LEAST_PAIRS:
            raise UserError(_too_few(pairs, short, available))
        drawn = {split: _first(drawn[split], number) for split, number in pairs_by_split(possible).items()}
    return [block for split, groups in drawn.items() for block in _blocks(split, groups, pairs_per_file)]


def _draw(drawing: Drawing, split: str, wanted: int, bar: tqdm) -> list[CountedGroup]:
    groups = []
    for group in drawing.groups(split):
        number = min(wanted, len(drawing.pairs(group).members))
        if number:
            groups.append(CountedGroup(group, number))
            bar.update(number)
            wanted -= number
        if not wanted:
            break
    return groups


def _first(groups: list[CountedGroup], wanted: int) -> list[CountedGroup]:
    """What would have been drawn had no more been wanted."""
    kept = []
    for counted in groups:
        number = min(wanted, counted.num_pairs)
        kept += [CountedGroup(counted.group, number)] if number else []
        wanted -= number
    return kept


def _blocks(split: str, groups: list[CountedGroup], pairs_per_file: int) -> list[Block]:
    parts: list[list[CountedGroup]] = []
    size = pairs_per_file
    for counted in groups:
        if size >= pairs_per_file:
            parts.append([])
            size = 0
        parts[-1].append(counted)
        size += counted.num_pairs
    return [Block(f"data/{split}-{i:05d}-of-{len(parts):05d}.parquet", part) for i, part in enumerate(parts)]


def _possible(pairs: int, short: dict[str, int]) -> int:
    """How many pairs there can be, by the split that falls shortest; a multiple of the least number."""
    wanted = pairs_by_split(pairs)
    return min(number * pairs // wanted[split] for split, number in short.items()) // LEAST_PAIRS * LEAST_PAIRS


def _too_few(pairs: int, short: dict[str, int], available: dict[str, int]) -> str:
    wanted = pairs_by_split(pairs)
    found = "; ".join(
        f"{split}: {available[split]} sentences give {number} of {wanted[split]} pairs"
        for split, number in short.items()
    )
    possible = _possible(pairs, short)
    if possible < LEAST_PAIRS:
        return f"too few sentences for {pairs} pairs ({found}), and even for {LEAST_PAIRS}; index more documents"
    return (
        f"too few sentences for {pairs} pairs ({found}); ask for {possible}, or for --at-most so many; "
        "index more documents, or make larger groups (--near, --document, --unrelated), which have more pairs"
    )
