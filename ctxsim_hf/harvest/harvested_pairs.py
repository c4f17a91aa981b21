"""A harvest -> a `datasets` data set.

    HarvestedPairs(harvest="pairs").download_and_prepare()                                    # a finished harvest
    HarvestedPairs(harvest="pairs", origin="origin", chunks="chunks", pairs=20_000, arguments={"mode": "group"})

The second runs the stage `ctxsim harvest` into the folder `pairs` first, which goes on where it was interrupted and
does nothing where it is finished. Then `as_dataset()` and `as_streaming_dataset()` give it as any builder does.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import xxhash
from datasets.builder import Key

from ctxsim_hf.harvest.drawing import SPLITS
from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.harvesting import COMMAND, run
from ctxsim_hf.harvest.pair_files import SCHEMA
from ctxsim_hf.harvest.plan import LEAST_PAIRS
from ctxsim_hf.harvest.repair import damaged_files
from ctxsim_hf.origin.similarity import origin_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.stage import STAGE_FILE, read_stage

VERSION = "1.0.0"
TRAINING_COLUMNS = ("sentence1", "sentence2", "score")  # what sentence-transformers takes, and no column more
ROWS_PER_BATCH = 1000


@dataclass
class HarvestedPairsConfig(datasets.BuilderConfig):
    """
    Args:
        harvest (`str`): Folder of the harvest.
        origin (`str`, *optional*): Where this is given, the harvest is made from this origin first, if need be.
        chunks (`str`, *optional*): The chunks that the origin was made from: a check.
        pairs (`int`, *optional*): How many to harvest.
        arguments (`dict`, *optional*): What else [`HarvestArguments`] takes, by name.
        columns (`tuple[str, ...]`): Set by the name of the configuration.
    """

    harvest: str | None = None
    origin: str | None = None
    chunks: str | None = None
    pairs: int | None = None
    arguments: dict[str, Any] | None = None
    columns: tuple[str, ...] = TRAINING_COLUMNS


class HarvestedPairs(datasets.GeneratorBasedBuilder):
    BUILDER_CONFIG_CLASS = HarvestedPairsConfig
    BUILDER_CONFIGS = [
        HarvestedPairsConfig(name="default", version=VERSION, description="Two sentences and their score."),
        HarvestedPairsConfig(
            name="full",
            version=VERSION,
            columns=tuple(SCHEMA.names),
            description="Also the score's spread, how the pair was drawn, and the chunks of the sentences.",
        ),
    ]
    DEFAULT_CONFIG_NAME = "default"

    def __init__(self, *, harvest: str | Path, hash: str | None = None, **kwargs: Any) -> None:
        kwargs = {name: str(value) if isinstance(value, Path) else value for name, value in kwargs.items()}
        folder = origin_folder(kwargs["origin"]) if kwargs.get("origin") else Path(harvest)
        read_stage(folder)  # refuses what is no finished folder
        super().__init__(harvest=str(harvest), hash=hash or _fingerprint(folder / STAGE_FILE), **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        features = datasets.Features.from_arrow_schema(SCHEMA)
        return datasets.DatasetInfo(
            description="Pairs of sentences, labelled with how far they fit the same contexts.",
            features=datasets.Features({name: features[name] for name in self.config.columns}),
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        config = self.config
        if config.origin is not None:
            if config.pairs is None:
                raise UserError("say how many pairs to harvest: pairs=...")
            run(
                HarvestArguments(
                    output=config.harvest,
                    origin=config.origin,
                    chunks=config.chunks,
                    pairs=config.pairs,
                    **config.arguments or {},
                )
            )
        folder = Path(config.harvest)
        record = read_stage(folder, COMMAND)
        if damaged := damaged_files(folder, record):
            raise UserError(
                f"{str(folder / damaged[0])!r} is damaged ({len(damaged)} of {len(record['files'])} files are); "
                "run the same ctxsim harvest again, which makes only these files anew"
            )
        files = {
            split: sorted(str(folder / name) for name in record["files"] if name.startswith(f"data/{split}-"))
            for split in SPLITS
        }
        if empty := [split for split, names in files.items() if not names]:
            raise UserError(
                f"{str(folder)!r} has no pairs for {' and '.join(empty)}; "
                f"three splits need {LEAST_PAIRS} pairs or more"
            )
        return [datasets.SplitGenerator(name=split, gen_kwargs={"files": names}) for split, names in files.items()]

    def _generate_examples(self, files: list[str]) -> Iterator[tuple[Key, dict[str, Any]]]:
        columns = list(self.config.columns)
        for file_number, path in enumerate(files):
            row = 0
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_PER_BATCH, columns=columns):
                    for example in batch.to_pylist():
                        yield Key(file_number, row), example
                        row += 1


def _fingerprint(read: Path) -> str:
    """What a cached data set was made of: the code of this package, and what it read."""
    package = Path(__file__).parents[1]
    sources = [digest_file(path) for path in sorted(package.rglob("*.py"))]
    return xxhash.xxh3_128_hexdigest(json.dumps([*sources, digest_file(read)]).encode())
