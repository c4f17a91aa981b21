"""`ctxsim`: verbs in a table, one stage behind each."""

import argparse
import difflib
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from ctxsim_hf import __version__
from ctxsim_hf.runtime.errors import UserError


class Verb(NamedTuple):
    module: str  # imported only when its verb is used, so that --help is quick
    arguments: str  # the dataclass of its flags
    help: str


VERBS = {
    "adapt": Verb(
        "ctxsim_hf.recipes.adapt", "AdaptArguments", "Documents to a surrogate of their domain: all in a row."
    ),
    "chunk": Verb("ctxsim_hf.text.chunking", "ChunkArguments", "Documents to chunks of consecutive sentences."),
    "sample": Verb("ctxsim_hf.text.sampling", "SampleArguments", "The chunks of a share of the documents."),
    "contexts": Verb("ctxsim_hf.text.display", "ContextsArguments", "Show some contexts of a folder of chunks."),
    "train-tokenizer": Verb("ctxsim_hf.text.tokenizer", "TokenizerArguments", "Chunks to a fast tokenizer."),
    "train discriminator": Verb(
        "ctxsim_hf.context_models.discriminator.training",
        "DiscriminatorArguments",
        "Chunks to a judge of which sentence fits a context.",
    ),
    "train generator": Verb(
        "ctxsim_hf.context_models.generator_command",
        "GeneratorArguments",
        "Chunks to a model of sentences given contexts, and back.",
    ),
    "train surrogate": Verb(
        "ctxsim_hf.surrogate.training", "SurrogateArguments", "Labelled pairs to a fast encoder of sentences."
    ),
    "index": Verb("ctxsim_hf.origin.indexing", "IndexArguments", "Chunks and trained models to an origin folder."),
    "similarity": Verb(
        "ctxsim_hf.origin.similarity_command", "SimilarityArguments", "How alike two sentences are, and why."
    ),
    "harvest": Verb(
        "ctxsim_hf.harvest.harvesting", "HarvestArguments", "Any number of pairs of sentences, labelled by an origin."
    ),
    "encode": Verb("ctxsim_hf.encoder.encode_command", "EncodeArguments", "Sentences to vectors, with a surrogate."),
    "search": Verb(
        "ctxsim_hf.surrogate.search_command", "SearchArguments", "Indexed sentences that are most like a query."
    ),
    "export": Verb(
        "ctxsim_hf.surrogate.export_command", "ExportArguments", "A surrogate to ONNX, to run without torch."
    ),
    "evaluate": Verb(
        "ctxsim_hf.evaluation.evaluate", "EvaluateArguments", "Agreement of a similarity with people, on public tasks."
    ),
    "ablate": Verb(
        "ctxsim_hf.recipes.ablate", "AblateArguments", "What each part of the method is worth, beside the paper."
    ),
    "card": Verb(
        "ctxsim_hf.hub.cards", "CardArguments", "What the Hub shows of a folder: how it was made, its limits."
    ),
    "publish": Verb(
        "ctxsim_hf.hub.publish", "PublishArguments", "A folder with its card to the Hub, private at first."
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        print(f"ctxsim {__version__}")
        return 0
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run_and_speak(words, debug)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _run_and_speak(words: list[str], debug: bool) -> int:
    """Run a verb; print its result or what went wrong, and return the exit code."""
    length = 2 if " ".join(words[:2]) in VERBS else 1
    name, flags = " ".join(words[:length]), words[length:]
    # Under a launcher every process meets the same error; one of them says so.
    speaks = os.environ.get("RANK", "0") == "0"
    try:
        result = run_verb(name, flags)
        _leave_the_others()
        if speaks:
            print(result)
        return 0
    except UserError as error:
        if debug:
            raise
        if speaks:
            print(f"ctxsim {name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if speaks:
            print(f"ctxsim {name}: interrupted; run the same command again to go on", file=sys.stderr)
        return 130


def run_verb(name: str, flags: list[str]) -> str:
    """Run a verb; returns what there is to say at its end."""
    if name not in VERBS:
        raise UserError(f"unknown command; expected one of {', '.join(VERBS)} (ctxsim --help)")
    verb = VERBS[name]
    from transformers import HfArgumentParser
    from transformers.utils.logging import disable_progress_bar

    if not sys.stderr.isatty():
        disable_progress_bar()  # transformers' own, when it reads weights
    module = importlib.import_module(verb.module)
    dataclass = getattr(module, verb.arguments)
    parser = HfArgumentParser(
        dataclass, prog=f"ctxsim {name}", description=verb.help, formatter_class=_DefaultsThatSaySomething
    )
    for action in parser._actions:  # --with_underscores is understood too, but not shown
        action.option_strings = [flag for flag in action.option_strings if "_" not in flag]
    if positional := getattr(dataclass, "positional", None):
        parser.add_argument(positional[0], nargs="*", help=positional[1])
    arguments, *words, unknown = parser.parse_args_into_dataclasses(
        flags, return_remaining_strings=True, look_for_args_file=False
    )
    if unknown:
        raise UserError(
            _not_known(unknown[0], name, [flag for flag in parser._option_string_actions if "_" not in flag])
        )
    if positional:
        setattr(arguments, positional[0], getattr(words[0], positional[0]))
    result = module.run(arguments)
    if isinstance(result, dict):  # a stage's counts
        return "\n".join([*_lines(result), f"{arguments.output} is finished"])
    return str(result)


def _leave_the_others() -> None:
    """The processes that a launcher started with this one. Not where a stage ends: others may follow."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


class _DefaultsThatSaySomething(argparse.ArgumentDefaultsHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, []) else super()._get_help_string(action)


def _not_known(word: str, verb: str, flags: list[str]) -> str:
    near = difflib.get_close_matches(word.split("=")[0], flags, 1)
    hint = f"did you mean {near[0]}?" if near else f"`ctxsim {verb} --help` lists the flags"
    return f"{word!r} is not known; {hint}"


def _overview() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {verb.help}" for name, verb in VERBS.items())
    return (
        f"usage: ctxsim COMMAND [flags]\n\n{verbs}\n\n"
        "ctxsim COMMAND --help lists the flags of a command; --version prints the version; --debug shows a traceback."
    )


def _lines(counts: dict[str, Any]) -> list[str]:
    """Counts as a table, nested ones on one line."""
    width = max(map(len, counts))
    return [f"{name.replace('_', ' '):<{width}}  {_plain(value)}" for name, value in counts.items()]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_plain(number)} {name}" for name, number in value.items()) or "0"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return json.dumps(value, ensure_ascii=False).strip('"')


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
