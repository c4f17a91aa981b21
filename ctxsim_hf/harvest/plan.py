"""Turn groups drawn from an index into blocks, the units of work: each becomes one parquet file.

The plan depends on nothing but the index and the arguments, so pairs and files are the same for any number of
processes and shards. Drawing it takes 1 % of the time of labelling; see stored_plan.py.
"""

from dataclasses import dataclass

from tqdm import tqdm

from ctxsim_hf.harvest.drawing import PAIR_SPLITS, Drawing, Group
from ctxsim_hf.runtime.errors import UserError

MIN_PAIRS = 100  # at 1 % each, one pair for validation and one for test


@dataclass(frozen=True)
class CountedGroup:
    """A group and the number of pairs taken from it: all, except in the last group of a split."""

    group: Group
    num_pairs: int


@dataclass(frozen=True)
class Block:
    """The groups whose pairs make up one file."""

    name: str  # of its file
    groups: list[CountedGroup]

    @property
    def num_pairs(self) -> int:
        """The number of pairs in the file."""
        return sum(counted.num_pairs for counted in self.groups)


def pairs_by_split(pairs: int) -> dict[str, int]:
    """Return the number of pairs in each split: 98 % train, 1 % validation, 1 % test."""
    small = pairs // MIN_PAIRS
    return dict(zip(PAIR_SPLITS, (pairs - 2 * small, small, small), strict=True))


def make_plan(
    drawing: Drawing, pairs: int, pairs_per_file: int, show_progress: bool = True, at_most: bool = False
) -> list[Block]:
    """Return the blocks of a harvest, the small splits last.

    Args:
        drawing (`Drawing`): Draws the groups.
        pairs (`int`): Number of pairs to harvest.
        pairs_per_file (`int`): About how many pairs go into a file.
        show_progress (`bool`): Show a progress bar.
        at_most (`bool`): Make as many pairs as the sentences allow where they are too few, instead of refusing.
    """
    available = {split: drawing.num_sentences(split) for split in PAIR_SPLITS}
    wanted = pairs_by_split(pairs)
    with tqdm(total=pairs, desc="draw", unit="pair", disable=None if show_progress else True) as bar:
        drawn = {split: _draw(drawing, split, number, bar) for split, number in wanted.items()}
    found = {split: sum(counted.num_pairs for counted in groups) for split, groups in drawn.items()}
    if short := {split: number for split, number in found.items() if number < wanted[split]}:
        possible = _possible(pairs, short)
        if not at_most or possible < MIN_PAIRS:
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
    """Return what would have been drawn if only `wanted` pairs had been asked for."""
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
    """Return how many pairs are possible, by the split that is shortest of them, as a multiple of `MIN_PAIRS`."""
    wanted = pairs_by_split(pairs)
    return min(number * pairs // wanted[split] for split, number in short.items()) // MIN_PAIRS * MIN_PAIRS


def _too_few(pairs: int, short: dict[str, int], available: dict[str, int]) -> str:
    wanted = pairs_by_split(pairs)
    found = "; ".join(
        f"{split}: {available[split]} sentences give {number} of {wanted[split]} pairs"
        for split, number in short.items()
    )
    possible = _possible(pairs, short)
    if possible < MIN_PAIRS:
        return f"too few sentences for {pairs} pairs ({found}), and even for {MIN_PAIRS}; index more documents"
    return (
        f"too few sentences for {pairs} pairs ({found}); ask for {possible}, or add --at-most; "
        "index more documents, or draw larger groups (--near, --document, --unrelated), which have more pairs"
    )
