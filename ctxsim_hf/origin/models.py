"""The trained models of an origin folder, opened together and checked against each other."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, TokenizersBackend

from ctxsim_hf.context_models.collators import SpecialIds
from ctxsim_hf.context_models.configuration_ctxsim import LightContextGeneratorConfig
from ctxsim_hf.context_models.discriminator.modeling import ContextDiscriminatorModel
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.origin.fit_score import TermScorer
from ctxsim_hf.origin.term_scorers import DiscriminatorScorer, TokenLimits, generator_scorer
from ctxsim_hf.registration import register_auto_classes
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file, write_json
from ctxsim_hf.runtime.stage import read_stage

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
MODEL_FILES = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json")
LAYOUT_FILE = "layout.json"
FORMAT = 1  # of an origin folder


@dataclass(frozen=True)
class OriginModels:
    tokenizer: TokenizersBackend
    discriminator: ContextDiscriminatorModel
    generators: Sequence[ContextGeneratorModel | LightContextGeneratorModel]
    width: int
    max_sentence_tokens: int
    folders: dict[str, Path]  # name in an origin folder -> where the model lies

    @classmethod
    def from_training(cls, discriminator: str, generators: Sequence[str]) -> "OriginModels":
        """From the folders that `ctxsim train` made, which must agree in tokenizer and window."""
        first = Path(discriminator)
        window = _window(first)
        for folder in map(Path, generators):
            if digest_file(folder / TOKENIZER_FILES[0]) != digest_file(first / TOKENIZER_FILES[0]):
                raise UserError(f"{str(folder)!r} and {discriminator!r} were trained with different tokenizers")
            if _window(folder) != window:
                raise UserError(
                    f"{str(folder)!r} was trained with {_window(folder)}, but {discriminator!r} with {window}"
                )
        named = {_generator_name(folder): folder for folder in map(Path, generators)}
        if len(named) < len(generators):
            raise UserError(f"--generator takes one folder for each direction, got {len(generators)} of {list(named)}")
        return cls._open({"tokenizer": first, "discriminator": first} | named, window)

    @classmethod
    def from_origin(cls, folder: Path, device: str | torch.device | None = None) -> "OriginModels":
        """From an origin folder, onto a device; None takes a GPU if there is one."""
        generators = sorted(path.name for path in folder.glob("generator*"))
        return cls._from_origin(folder, generators, device or ("cuda" if torch.cuda.is_available() else "cpu"))

    @classmethod
    def for_indexing(cls, folder: Path) -> "OriginModels":
        """Of an origin folder those of which an index stores something, on the CPU: there may be many such processes,
        and what they store should be the same on every machine."""
        register_auto_classes()
        generators = [
            path.name
            for path in folder.glob("generator*")
            if AutoConfig.from_pretrained(path).model_type == LightContextGeneratorConfig.model_type
        ]
        return cls._from_origin(folder, generators, "cpu")

    @classmethod
    def _from_origin(cls, folder: Path, generators: Sequence[str], device: str | torch.device) -> "OriginModels":
        layout = json.loads((folder / LAYOUT_FILE).read_text("utf-8"))
        if (found := layout.pop("format")) != FORMAT:
            raise UserError(
                f"{str(folder)!r} has the format {found}, this version reads {FORMAT}; make it again with ctxsim index"
            )
        names = ("tokenizer", "discriminator", *generators)
        return cls._open({name: folder / name for name in names}, layout, device)

    @classmethod
    def _open(
        cls, folders: dict[str, Path], window: dict[str, Any], device: str | torch.device = "cpu"
    ) -> "OriginModels":
        register_auto_classes()
        models = {
            name: AutoModel.from_pretrained(path).to(device) for name, path in folders.items() if name != "tokenizer"
        }
        return cls(
            AutoTokenizer.from_pretrained(folders["tokenizer"]),
            models.pop("discriminator"),
            list(models.values()),
            folders=folders,
            **window,
        )

    def copy_to(self, target: Path) -> None:
        """The models without the traces of their training, and the window they read."""
        for name, folder in self.folders.items():
            (target / name).mkdir(exist_ok=True)
            for pattern in TOKENIZER_FILES if name == "tokenizer" else MODEL_FILES:
                for path in folder.glob(pattern):
                    shutil.copyfile(path, target / name / path.name)
        window = {"width": self.width, "max_sentence_tokens": self.max_sentence_tokens}
        write_json(target / LAYOUT_FILE, {"format": FORMAT} | window)

    def scorers(self) -> list[TermScorer]:
        tokenizer = self.tokenizer
        special = SpecialIds(tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id)
        limits = TokenLimits(special, self.max_sentence_tokens)
        of_generators = [generator_scorer(self.generators, limits)] if self.generators else []
        return [DiscriminatorScorer(self.discriminator, limits), *of_generators]


def _window(folder: Path) -> dict[str, Any]:
    arguments = read_stage(folder)["arguments"]
    return {name: arguments[name] for name in ("width", "max_sentence_tokens")}


def _generator_name(folder: Path) -> str:
    direction = read_stage(folder, "train generator")["arguments"]["direction"]
    return "generator" if direction in (None, "all") else f"generator-{direction}"
