"""Make single damaged files of a stage again, in a finished folder too."""

import logging
import shutil
from pathlib import Path
from typing import Any, Self

from ctxsim_hf.harvest.pair_files import is_sound
from ctxsim_hf.harvest.stored_plan import PLAN_FILE
from ctxsim_hf.runtime.files import describe_file
from ctxsim_hf.runtime.stage import LOG_FILE, STAGE_FILE, Stage, read_stage

logger = logging.getLogger(__name__)


def damaged_files(folder: Path, record: dict[str, Any]) -> list[str]:
    """Return the files of a finished stage that have changed or are missing."""
    expected: dict[str, Any] = record["files"]
    return [
        name
        for name, description in expected.items()
        if not (folder / name).exists() or describe_file(folder / name) != description
    ]


class RepairedStage(Stage):
    """A stage that removes damaged files when it is entered, and is unfinished until they are made again."""

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._remove_damaged()
        except BaseException:
            self._release_lock()
            raise
        return self

    def _remove_damaged(self) -> None:
        if self.finished:
            damaged = damaged_files(self.output, read_stage(self.output))
            if not damaged:
                return
            shutil.rmtree(self.folder, ignore_errors=True)  # left by an interrupted --overwrite
            self.output.rename(self.folder)
            self.finished = False
        else:
            paths = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".tmp")
            names = [path.relative_to(self.folder).as_posix() for path in paths]
            not_pairs = (STAGE_FILE, LOG_FILE, PLAN_FILE)
            damaged = [n for n in names if n not in not_pairs and not is_sound(self.folder / n)]
        for name in damaged:
            (self.folder / name).unlink(missing_ok=True)
            self.log(f"{name} is damaged and will be made again")
            logger.warning(f"{str(self.output / name)!r} is damaged and will be made again")
