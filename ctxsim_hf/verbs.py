"""The table of verbs: for each, the module that runs it and the dataclass of its arguments.

The command line, the functions of api.py and the recipes all look up stages here and pass them the same dataclass,
which alone holds defaults and validates. A module is imported when its verb is used, so that help is fast.
"""

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from numbers import Integral, Real
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ctxsim_hf.runtime.errors import UserError


class Verb(NamedTuple):
    """Where the code of a verb is, and its line of help."""

    module: str  # defines a function `run` that takes the arguments
    arguments: str  # the dataclass of its arguments
    help: str

    @property
    def run(self) -> Callable[..., Any]:
        """Import and return the function that runs the verb, given an instance of its dataclass."""
        function: Callable[..., Any] = importlib.import_module(self.module).run
        return function

    @property
    def arguments_class(self) -> Any:
        """Import and return the dataclass of the verb's arguments."""
        return getattr(importlib.import_module(self.module), self.arguments)


VERBS = {
    "adapt": Verb(
        "ctxsim_hf.recipes.adapt", "AdaptArguments", "Make an origin and a surrogate from your documents, in one run."
    ),
    "chunk": Verb("ctxsim_hf.text.chunking", "ChunkArguments", "Cut documents into chunks of consecutive sentences."),
    "sample": Verb("ctxsim_hf.text.sampling", "SampleArguments", "Keep the chunks of a share of the documents."),
    "contexts": Verb("ctxsim_hf.text.display", "ContextsArguments", "Show some contexts of a folder of chunks."),
    "train-tokenizer": Verb("ctxsim_hf.text.tokenizer", "TokenizerArguments", "Train a fast tokenizer on chunks."),
    "train discriminator": Verb(
        "ctxsim_hf.context_models.discriminator.training",
        "DiscriminatorArguments",
        "Train a classifier that says whether a sentence fits a context.",
    ),
    "train generator": Verb(
        "ctxsim_hf.context_models.generator_command",
        "GeneratorArguments",
        "Train a model of sentences given their contexts, and the reverse.",
    ),
    "train context-model": Verb(
        "ctxsim_hf.context_models.causal.training",
        "ContextModelArguments",
        "Train a pretrained language model further on chunks.",
    ),
    "train surrogate": Verb(
        "ctxsim_hf.surrogate.training",
        "SurrogateArguments",
        "Train a fast sentence encoder on labelled pairs or on vectors.",
    ),
    "index": Verb(
        "ctxsim_hf.origin.indexing", "IndexArguments", "Build an origin from chunks and context models, or change one."
    ),
    "weigh": Verb(
        "ctxsim_hf.evaluation.weigh",
        "WeighArguments",
        "Choose the weights of an origin's signals on held-out documents.",
    ),
    "similarity": Verb(
        "ctxsim_hf.origin.similarity_command", "SimilarityArguments", "Say how similar two sentences are, and why."
    ),
    "harvest": Verb("ctxsim_hf.harvest.harvesting", "HarvestArguments", "Label pairs of an origin's sentences."),
    "harvest-vectors": Verb(
        "ctxsim_hf.harvest.vectors_command",
        "VectorArguments",
        "Compute vectors of an origin's sentences, for a surrogate to learn from.",
    ),
    "encode": Verb(
        "ctxsim_hf.encoder.encode_command", "EncodeArguments", "Turn sentences into vectors with a surrogate."
    ),
    "search": Verb(
        "ctxsim_hf.surrogate.search_command",
        "SearchArguments",
        "Index sentences or documents, and find those most similar to a query.",
    ),
    "duplicates": Verb(
        "ctxsim_hf.mining.duplicates", "DuplicatesArguments", "Find pairs of sentences that say the same."
    ),
    "cluster": Verb("ctxsim_hf.mining.cluster", "ClusterArguments", "Group similar sentences."),
    "label": Verb(
        "ctxsim_hf.mining.label_command", "LabelArguments", "Choose the pairs that people should label first."
    ),
    "export": Verb(
        "ctxsim_hf.surrogate.export_command", "ExportArguments", "Export a surrogate to ONNX, to run without torch."
    ),
    "app": Verb("ctxsim_hf.page.app_command", "AppArguments", "Compare, search and find duplicates in a browser."),
    "evaluate": Verb(
        "ctxsim_hf.evaluation.evaluate",
        "EvaluateArguments",
        "Measure a similarity on public tasks, your judgements or held-out documents.",
    ),
    "ablate": Verb(
        "ctxsim_hf.recipes.ablate",
        "AblateArguments",
        "Measure what each part of the method contributes, beside the paper's figures.",
    ),
    "plan": Verb(
        "ctxsim_hf.recipes.plan_command", "PlanArguments", "Estimate the time, memory and disk that a corpus takes."
    ),
    "card": Verb("ctxsim_hf.hub.cards", "CardArguments", "Write the card of a folder: how it was made, its limits."),
    "publish": Verb(
        "ctxsim_hf.hub.publish", "PublishArguments", "Upload a folder with its card to the Hub, private at first."
    ),
}


def build_arguments(arguments_class: Any, values: Mapping[str, Any]) -> Any:
    """Build a verb's arguments from Python values as the command line would, so that equal runs leave equal bytes.

    Args:
        arguments_class: The verb's dataclass.
        values: Field -> value. None stands for the field's default. A path may be a `Path`, a single value may stand
            for a list of one, and an int for a float.

    Raises:
        UserError: If a name is not a field of the dataclass, a value is not of the field's type, or a field without a
            default has no value.
    """
    known = {field.name: field for field in fields(arguments_class)}
    given = {name: value for name, value in values.items() if value is not None}
    if unknown := [name for name in values if name not in known]:
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(known)}"
        raise UserError(f"{unknown[0]!r} is not an option; {hint}")
    for name, field in known.items():
        if name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"expected a value for {name!r}, got none")
    hints = get_type_hints(arguments_class)
    given = {name: _plain(name, value, hints[name]) for name, value in given.items()}
    arguments = arguments_class(**{name: value for name, value in given.items() if known[name].init})
    for name, value in given.items():
        if not known[name].init:  # positional on the command line
            setattr(arguments, name, value)
    return arguments


def _plain(name: str, value: Any, hint: Any) -> Any:
    """Return the value as the command line would parse it."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind in kinds:
        if get_origin(kind) is list:
            items = value if isinstance(value, list | tuple) else [value]
            return [_plain(name, item, get_args(kind)[0]) for item in items]
    if isinstance(value, PathLike):
        value = fspath(value)
    elif isinstance(value, Integral) and not isinstance(value, bool) and int in kinds:
        value = int(value)
    elif isinstance(value, Real) and not isinstance(value, bool) and float in kinds:
        value = float(value)
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
        raise UserError(f"{name!r} must be of type {expected}, got {value!r}")
    return value
