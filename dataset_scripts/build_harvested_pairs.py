"""Turn a harvest into the dataset `ctxsim/harvested-pairs`: parquet files and a card, to be loaded or published.

    python dataset_scripts/build_harvested_pairs.py --harvest pairs --output ctxsim/harvested-pairs
    python dataset_scripts/build_harvested_pairs.py --harvest pairs --origin origin --chunks chunks --pairs 20000

The second command makes the harvest first. In the folder above `ctxsim`, `load_dataset("ctxsim/harvested-pairs")` then
loads the dataset.
"""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import DatasetInfo, Features
from datasets.info import DatasetInfosDict
from datasets.splits import SplitDict, SplitInfo
from huggingface_hub import DatasetCard, DatasetCardData
from score_histograms import svg_histograms
from transformers import HfArgumentParser
from transformers.hf_argparser import HfArg

from ctxsim_hf import HarvestedPairs
from ctxsim_hf.harvest.drawing import PAIR_SPLITS
from ctxsim_hf.hub.cards import as_plain_text, corpora, same_documents
from ctxsim_hf.runtime.checks import other_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import open_stage
from ctxsim_hf.runtime.working import WorkingFolder

CARD, PICTURE, DATA_FILE = "README.md", "scores.svg", re.compile(r"data/\w+-\d{5}-of-\d{5}\.parquet")
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
SIZE_NAMES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
UNKNOWN_LICENCE = "The sentences are quoted from the corpora above, whose licences apply to them."


@dataclass(kw_only=True)
class BuildArguments:
    """The arguments of this script."""

    harvest: str = HfArg(help="Folder made by ctxsim harvest, or to be made.")
    output: str = HfArg(default="ctxsim/harvested-pairs", help="Folder to write the dataset to.")
    repo_id: str = HfArg(default="ctxsim/harvested-pairs", help="Name on the Hub that the card's examples load.")
    origin: str | None = HfArg(default=None, help="Make the harvest from this origin first.")
    chunks: str | None = HfArg(default=None, help="Chunks that the origin was made from.")
    pairs: int | None = HfArg(default=None, help="Number of pairs to harvest.")
    mode: str = HfArg(default="pair", help="Mode of a harvest that is made: pair or group.")
    license: str = HfArg(default="other", help="Licence of the sentences, as the Hub names it.")
    language: str = HfArg(default="en", help="Language of the sentences.")
    num_proc: int | None = HfArg(default=None, help="Processes that write files.")
    overwrite: bool = HfArg(default=False, help="Replace a dataset that this script made.")


def main(words: Sequence[str]) -> str | None:
    """Build the dataset; return an error message, or None."""
    (arguments,) = HfArgumentParser(BuildArguments, description=__doc__).parse_args_into_dataclasses(list(words))
    try:
        build(arguments)
    except UserError as error:
        return f"build_harvested_pairs: {error}"
    return None


def build(arguments: BuildArguments) -> None:
    """Write the dataset and its card."""
    output = Path(arguments.output)
    if output.exists() and not (arguments.overwrite and (output / PICTURE).exists()):
        raise UserError(f"{arguments.output!r} exists; choose another --output, or replace a dataset with --overwrite")
    if foreign := [name for name in other_files(output, (CARD, PICTURE)) if not DATA_FILE.fullmatch(name)]:
        raise UserError(
            f"{arguments.output!r} holds files that this script did not write: {foreign[0]}; move them away"
        )
    making = {} if arguments.origin is None else {"arguments": {"mode": arguments.mode}}
    builder = HarvestedPairs(
        config_name="full",
        harvest=arguments.harvest,
        origin=arguments.origin,
        chunks=arguments.chunks,
        pairs=arguments.pairs,
        **making,
    )
    with WorkingFolder(output) as working:
        working.discard()  # what a killed run left
        # A folder within a folder, since datasets leaves its locks beside what it prepares.
        prepared, data = working.partial / "prepared/full", working.partial / "data"
        builder.download_and_prepare(str(prepared), file_format="parquet", num_proc=arguments.num_proc)
        data.mkdir()
        for split in builder.info.splits:
            found = sorted(prepared.glob(f"{builder.name}-{split}*.parquet"))
            for number, path in enumerate(found):
                path.rename(data / f"{split}-{number:05d}-of-{len(found):05d}.parquet")
        shutil.rmtree(prepared.parent)
        _write_card(working.partial, arguments, builder)
        working.finish()


def _write_card(folder: Path, arguments: BuildArguments, builder: HarvestedPairs) -> None:
    files = sorted(folder.glob("data/*.parquet"))
    record = open_stage(arguments.harvest)
    template = Path(__file__).with_name("harvested_pairs_card.md")
    card_data = _card_data(arguments, builder, files)
    card = DatasetCard.from_template(card_data, str(template), **_card_text(arguments, record))
    (folder / CARD).write_text(str(card), "utf-8")
    (folder / PICTURE).write_text(_picture(files, _ways(record)), "utf-8")


def _card_data(arguments: BuildArguments, builder: HarvestedPairs, files: Sequence[Path]) -> DatasetCardData:
    """Return the metadata that load_dataset reads. Both configurations read the same files."""
    configs, infos = [], DatasetInfosDict()
    splits = list(builder.info.splits)
    for config in builder.BUILDER_CONFIGS:
        data_files = [{"split": split, "path": f"data/{split}-*"} for split in splits]
        default = {"default": True} if config.name == builder.DEFAULT_CONFIG_NAME else {}
        configs.append(
            {"config_name": config.name, "data_files": data_files, "columns": list(config.columns)} | default
        )
        sizes = {split: _split_info(split, files, list(config.columns)) for split in splits}
        infos[config.name] = DatasetInfo(
            features=Features({name: builder.info.features[name] for name in config.columns}),
            splits=SplitDict(sizes),
            download_size=sum(path.stat().st_size for path in files),
            dataset_size=sum(size.num_bytes for size in sizes.values()),
        )
    card_data = DatasetCardData(
        pretty_name="Harvested pairs",
        language=[arguments.language],
        license=arguments.license,
        task_categories=["sentence-similarity"],
        tags=["sentence-transformers", "ctxsim"],
        size_categories=[_size_category(sum(info.num_examples for info in builder.info.splits.values()))],
        configs=configs,
    )
    infos.to_dataset_card_data(card_data)
    return card_data


def _split_info(split: str, files: Sequence[Path], columns: list[str]) -> SplitInfo:
    sizes = [0, 0]
    for path in files:
        if path.name.startswith(f"{split}-"):
            table = pq.read_table(path, columns=columns)  # one at a time: all may be more than memory holds
            sizes = [sizes[0] + table.nbytes, sizes[1] + table.num_rows]
    return SplitInfo(split, *sizes)


def _size_category(number: int) -> str:
    place = sum(number >= size for size in SIZES)
    if place == 0:
        return "n<1K"
    return f"{SIZE_NAMES[place - 1]}<n<{SIZE_NAMES[place]}" if place < len(SIZES) else "n>1B"


def _card_text(arguments: BuildArguments, record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the template."""
    made, origin, settings = record["arguments"], record["inputs"]["origin"], record["inputs"]["settings"]
    share, signals = made["random_share"], {name: w for name, w in settings["signals"].items() if w}
    return {
        **record["counts"],
        "repo_id": arguments.repo_id,
        "same_documents": same_documents(origin["inputs"]),
        "splits": PAIR_SPLITS,
        "ways": _ways(record),
        "num_pairs": f"{sum(record['counts']['pairs'].values()):,}",
        "arguments": made,
        "settings": settings,
        "signals": signals,
        "share": "all were kept" if share == 1 else f"at most {share:.0%} are random",
        "corpora": ", ".join(corpus["name"] for corpus in corpora(as_plain_text(origin["inputs"]["chunks"]))),
        "recipe": json.dumps({"origin": origin["xxh3_128"], "settings": settings, "arguments": made}, indent=2),
        "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "licence_text": UNKNOWN_LICENCE if arguments.license == "other" else f"{arguments.license}.",
    }


def _ways(record: dict[str, Any]) -> list[str]:
    """Return the ways of drawing, the highest mean score first."""
    means = record["counts"]["mean_score"]
    return sorted(means, key=means.__getitem__, reverse=True)


def _picture(files: Sequence[Path], ways: Sequence[str]) -> str:
    scores: dict[str, list[np.ndarray]] = {way: [] for way in ways}
    for path in files:
        table = pq.read_table(path, columns=["score", "drawn"])
        for way in ways:
            scores[way].append(table.filter(pc.equal(table["drawn"], way))["score"].to_numpy())
    return svg_histograms({way: np.concatenate(found) for way, found in scores.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
