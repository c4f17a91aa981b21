"""Tell what a folder is on the Hub: the kind of its repository, and the only files that are ever sent there.

A model and an origin are recognised by their stage.json, the metric and the dataset by their card.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import RepoCard

from ctxsim_hf.context_models.base import MODEL_FILES
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE
from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE, Thresholds
from ctxsim_hf.origin.chosen_weights import WEIGHTS_FILE, ChosenWeights
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
        files (`tuple[str, ...]`, *optional*): Patterns of the files to send, of those that stage.json lists where
            there is one. None sends all that it lists. The card, stage.json and the thresholds of
            `ctxsim evaluate --save-thresholds` are sent in any case.
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
DATASET = PublicationKind("dataset", "dataset", ("scores.svg",), holds_text=True)  # and its parquet files
_DATA_FILE = re.compile(r"(?P<split>\w+)-\d{5}-of-(?P<total>\d{5})\.parquet")
METRIC = PublicationKind("metric", "space", ("app.py", "requirements.txt"))  # and its script


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

    def files(self, repo_id: str) -> list[str]:
        """Return the files to send, real ones inside the folder; refuse files of a stage that have changed since."""
        made = self.record.get("files", {})
        required, optional = self._listed(repo_id)
        for name in {*made, *required, *optional}:
            self._refuse_foreign(name)
        verify_files(self.folder, {"files": {name: made[name] for name in required if name in made}})
        names = required | {name for name in optional if (self.folder / name).is_file()}
        for name, kind in ((THRESHOLDS_FILE, Thresholds), (WEIGHTS_FILE, ChosenWeights)):
            if name in names:
                kind.load(self.folder)  # refuses a file of this name that is something else
        return sorted(names)

    def _listed(self, repo_id: str) -> tuple[set[str], set[str]]:
        """Return the files to send: those that must be there, and others."""
        if self.record:
            made, patterns = self.record["files"], self.kind.files
            required = {name for name in made if patterns is None or any(_matches(name, p) for p in patterns)}
            return required | {STAGE_FILE}, {CARD_FILE, THRESHOLDS_FILE, WEIGHTS_FILE}
        if self.kind is DATASET:
            return {CARD_FILE, *_data_files(self.folder)}, set(DATASET.files or ())
        # evaluate.load looks for a script of the repository's name.
        return {CARD_FILE}, {f"{repo_id.split('/')[-1]}.py", *(self.kind.files or ())}

    def _refuse_foreign(self, name: str) -> None:
        """Refuse what is not inside the folder, and links, which would send what they point to."""
        parts = Path(name).parts
        links = [place for end in range(len(parts)) if (place := self.folder.joinpath(*parts[: end + 1])).is_symlink()]
        if Path(name).is_absolute() or ".." in parts or links:
            what = "is a link" if links else "lies outside the folder"
            raise UserError(f"{str(self.folder / name)!r} {what}; only real files inside the folder are published")


def _matches(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)


def _data_files(folder: Path) -> list[str]:
    """Return the parquet files of a dataset, `data/train-00000-of-00002.parquet` and so on; none may be missing."""
    found = [match for path in (folder / "data").glob("*.parquet") if (match := _DATA_FILE.fullmatch(path.name))]
    for split, total in {(match["split"], match["total"]) for match in found}:
        for number in range(int(total)):
            name = f"data/{split}-{number:05d}-of-{total}.parquet"
            if not (folder / name).is_file():
                raise UserError(f"{str(folder / name)!r} is missing; make the dataset again")
    return [f"data/{match[0]}" for match in found]


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
