"""The weights of signals that `ctxsim weigh` chose for a corpus, kept in the origin's folder as weights.json.

They take the place of the default in origin.json; `--signals` still overrides both.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_sealed, seal, write_json
from ctxsim_hf.runtime.validation import Count, NonNegative, validate

WEIGHTS_FILE = "weights.json"
REMEDY = "choose again with ctxsim weigh"


@dataclass(frozen=True)
class ChosenWeights:
    """What was chosen, and by which figures."""

    signals: dict[str, NonNegative]  # name -> weight; those left out have none
    yardstick: NonNegative  # of these weights, from 0 to 1
    alone: dict[str, NonNegative]  # the yardstick of each signal by itself
    pairs: Count  # that the yardstick was computed from

    def __post_init__(self) -> None:
        validate(self)

    def save(self, folder: Path) -> None:
        """Write weights.json into an origin."""
        write_json(folder / WEIGHTS_FILE, seal(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> "ChosenWeights | None":
        """Return the weights in an origin, or None if none were chosen."""
        about = read_sealed(folder / WEIGHTS_FILE, REMEDY)
        try:
            return cls(**about) if about else None
        except (TypeError, UserError) as error:
            raise UserError(f"{str(folder / WEIGHTS_FILE)!r} is damaged: {error}; {REMEDY}") from error
