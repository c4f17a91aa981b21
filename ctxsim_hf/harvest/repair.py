"""Make single damaged files of a stage again, in a finished folder too."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxsim_hf.harvest.pair_files import is_sound
from ctxsim_hf.harvest.stored_plan import PLAN_FILE
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import TEMPORARY, describe_file
from ctxsim_hf.runtime.record import LOG_FILE, STAGE_FILE
from ctxsim_hf.runtime.stage import Stage, refuse_foreign_files

logger = logging.getLogger(__name__)


def damaged_files(folder: Path, record: Mapping[str, Any]) -> list[str]:
    """Return the files of a finished stage that have changed or are missing."""
    expected: dict[str, Any] = record["files"]
    return [
        name
        for name, description in expected.items()
        if not (folder / name).exists() or describe_file(folder / name) != description
    ]


class RepairedStage(Stage):
    """A stage that removes damaged files when it is entered, and is unfinished until they are made again."""

    def _check_finished(self, record: Mapping[str, Any]) -> None:
        try:
            super()._check_finished(record)
        except UserError:
            damaged = damaged_files(self.output, record)
            if not damaged:
                raise
            refuse_foreign_files(self.output)
            self.working.discard()  # what an interrupted --overwrite left
            self.output.rename(self.folder)
            self._remove(damaged)

    def _can_resume(self) -> bool:
        if resuming := super()._can_resume():
            paths = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.suffix != TEMPORARY)
            names = [path.relative_to(self.folder).as_posix() for path in paths]
            not_pairs = (STAGE_FILE, LOG_FILE, PLAN_FILE)
            self._remove([n for n in names if n not in not_pairs and not is_sound(self.folder / n)])
        return resuming

    def _remove(self, damaged: Sequence[str]) -> None:
        for name in damaged:
            (self.folder / name).unlink(missing_ok=True)
            self.log(f"{name} is damaged and will be made again")
            logger.warning(f"{str(self.output / name)!r} is damaged and will be made again")
