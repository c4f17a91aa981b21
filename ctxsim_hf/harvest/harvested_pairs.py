"""Turn a harvest into a dataset of the `datasets` library.

    HarvestedPairs(harvest="pairs").download_and_prepare()                                    # a finished harvest
    HarvestedPairs(harvest="pairs", origin="origin", chunks="chunks", pairs=20_000, arguments={"mode": "group"})

The second form runs `ctxsim harvest` into the folder `pairs` first, which resumes an interrupted harvest and leaves a
finished one alone. `as_dataset()` and `as_streaming_dataset()` work as those of any builder.
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

from ctxsim_hf.harvest.drawing import PAIR_SPLITS
from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.harvesting import COMMAND, run
from ctxsim_hf.harvest.pair_files import SCHEMA
from ctxsim_hf.harvest.plan import MIN_PAIRS
from ctxsim_hf.harvest.repair import damaged_files
from ctxsim_hf.origin.similarity import origin_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import STAGE_FILE, read_stage

VERSION = "1.0.0"
TRAINING_COLUMNS = ("sentence1", "sentence2", "score")  # exactly what sentence-transformers trains on
ROWS_PER_BATCH = 1000


@dataclass
class HarvestedPairsConfig(datasets.BuilderConfig):
    """Configure [`HarvestedPairs`].

    Args:
        harvest (`str`): Folder of the harvest.
        origin (`str`, *optional*): Origin to make the harvest from if it is not finished. None reads a finished one.
        chunks (`str`, *optional*): Check that the origin was made from these chunks. None skips the check.
        pairs (`int`, *optional*): Number of pairs to harvest; needed with `origin`.
        arguments (`dict`, *optional*): Other fields of [`HarvestArguments`] by name. None leaves their defaults.
        columns (`tuple[str, ...]`): Columns to read; the name of the configuration sets them.
    """

    harvest: str | None = None
    origin: str | None = None
    chunks: str | None = None
    pairs: int | None = None
    arguments: dict[str, Any] | None = None
    columns: tuple[str, ...] = TRAINING_COLUMNS


class HarvestedPairs(datasets.GeneratorBasedBuilder):
    """Build a dataset from a harvest: `default` has what training needs, `full` all columns."""

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
        read_stage(folder)  # refuses a folder that is not finished
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
                raise UserError("expected a number of pairs to harvest; set pairs=...")
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
                "run the same ctxsim harvest again, which makes only these files again"
            )
        files = {
            split: sorted(str(folder / name) for name in record["files"] if name.startswith(f"data/{split}-"))
            for split in PAIR_SPLITS
        }
        if empty := [split for split, names in files.items() if not names]:
            raise UserError(
                f"{str(folder)!r} has no pairs for {' and '.join(empty)}; three splits need {MIN_PAIRS} pairs or more"
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
    """Return a digest of what a cached dataset was made from: the code of this package and the file it read."""
    package = Path(__file__).parents[1]
    sources = [digest_file(path) for path in sorted(package.rglob("*.py"))]
    return xxhash.xxh3_128_hexdigest(json.dumps([*sources, digest_file(read)]).encode())
