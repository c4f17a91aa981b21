"""Tell what a folder is on the Hub: the kind of its repository, and the only files that are ever sent there.

A model and an origin are recognised by their stage.json, the metric and the dataset by their card.
"""

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import RepoCard

from ctxsim_hf.context_models.base import MODEL_FILES
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE
from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE
from ctxsim_hf.runtime.checks import verify_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import STAGE_FILE, read_stage
from ctxsim_hf.text.fast_tokenizer import TOKENIZER_FILES

CARD_FILE = "README.md"
SENTENCE_TRANSFORMERS_FILES = (
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("[0-9]_*/config.json", "[0-9]_*/*.safetensors"),  # modules, such as 1_Pooling
)
EXPECTED = (
    "a folder made by ctxsim train discriminator, generator, context-model or surrogate, or by ctxsim index; a "
    "dataset made by dataset_scripts/build_harvested_pairs.py; or the folder of a metric"
)


@dataclass(frozen=True)
class PublicationKind:
    """What is published of one kind of folder.

    Args:
        name (`str`): Name of the kind, and of its card template.
        repo_type (`str`): Type of the repository on the Hub.
        files (`tuple[str, ...]`, *optional*): Patterns of files to send. None sends all that stage.json lists. The
            card, stage.json and the thresholds of `ctxsim evaluate --save-thresholds` are sent in any case.
        holds_text (`bool`): Whether the files hold sentences of the documents verbatim.
    """

    name: str
    repo_type: str
    files: tuple[str, ...] | None
    holds_text: bool = False


_MODEL = (*MODEL_FILES, *TOKENIZER_FILES)
STAGE_KINDS = {  # by the command of stage.json
    "train discriminator": PublicationKind("discriminator", "model", _MODEL),
    "train generator": PublicationKind("generator", "model", _MODEL),
    "train context-model": PublicationKind("context-model", "model", (*_MODEL, SETTINGS_FILE)),
    "train surrogate": PublicationKind("surrogate", "model", (*_MODEL, *SENTENCE_TRANSFORMERS_FILES)),
    "index": PublicationKind("origin", "model", None, holds_text=True),
}
DATASET = PublicationKind("dataset", "dataset", ("data/*.parquet", "scores.svg"), holds_text=True)
METRIC = PublicationKind("metric", "space", ("*.py", "requirements.txt"))


@dataclass(frozen=True)
class Publication:
    """A folder that can be published."""

    folder: Path
    kind: PublicationKind
    record: dict[str, Any]  # stage.json; empty where there is none

    @classmethod
    def open(cls, folder: str | Path) -> "Publication":
        """Recognise a folder; refuse one that cannot be published."""
        folder = Path(folder)
        if (folder / STAGE_FILE).exists():
            record = read_stage(folder)
            if record["command"] == "harvest":
                raise UserError(
                    f"{str(folder)!r} is a harvest; make a dataset with a card of it first: "
                    f"python dataset_scripts/build_harvested_pairs.py --harvest {folder}"
                )
            if record["command"] not in STAGE_KINDS:
                raise UserError(f"expected {EXPECTED}; {str(folder)!r} was made by ctxsim {record['command']}")
            kind = STAGE_KINDS[record["command"]]
            if kind.files is not None and not any(name.endswith(".safetensors") for name in record["files"]):
                raise UserError(f"{str(folder)!r} holds figures but no model, as a cross-validation keeps none")
            return cls(folder, kind, record)
        return cls(folder, _kind_by_card(folder), {})

    def files(self) -> list[str]:
        """Return the files to send; refuse files of a stage that have changed since."""
        made = self.record.get("files", {})
        always = (CARD_FILE, STAGE_FILE, THRESHOLDS_FILE) if self.record else (CARD_FILE,)
        patterns = (*always, *(made if self.kind.files is None else self.kind.files))
        found = {path for pattern in patterns for path in self.folder.glob(pattern) if path.is_file()}
        names = sorted(path.relative_to(self.folder).as_posix() for path in found)
        wanted = {name: made[name] for name in made if any(fnmatch(name, pattern) for pattern in patterns)}
        verify_files(self.folder, {"files": wanted})
        return names


def _kind_by_card(folder: Path) -> PublicationKind:
    card = folder / CARD_FILE
    if not card.exists():
        what = "has neither stage.json nor README.md" if folder.exists() else "does not exist"
        raise UserError(f"expected {EXPECTED}; {str(folder)!r} {what}")
    data = read_card(card).data
    tags = data.get("tags") or []
    if "metric" in tags and data.get("sdk"):
        return METRIC
    if "ctxsim" in tags and data.get("configs"):
        return DATASET
    raise UserError(f"expected {EXPECTED}; the card in {str(folder)!r} says that it is something else")


def read_card(path: Path) -> RepoCard:
    """Read a card; refuse one whose metadata is not YAML."""
    try:
        return RepoCard.load(path)
    except ValueError as error:  # not YAML, or not a mapping
        raise UserError(f"the metadata of {str(path)!r} is not valid YAML: {error}") from error
