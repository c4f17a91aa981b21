"""Run the command line `ctxsim`: parse the flags of a verb, run it, and print its result."""

import argparse
import difflib
import io
import os
import select
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

from ctxsim_hf import __version__
from ctxsim_hf.runtime.checks import verify_always
from ctxsim_hf.runtime.counts import describe_result
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.verbs import VERBS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 for what the user can fix, 130 after an interruption."""
    if argv is None:  # the command itself, not somebody's program
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded; see runtime/threads.py
    for stream in (sys.stdout, sys.stderr):  # names of files may hold bytes that are not UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not _output_is_closed():
            raise
        return 128 + signal.SIGPIPE


def _main(words: list[str]) -> int:
    debug = "--debug" in words
    verify_always("--verify" in words)
    words = [word for word in words if word not in ("--debug", "--verify")]
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0
    if words[0] == "--version":
        print(f"ctxsim {__version__}")
        return 0
    length = 2 if " ".join(words[:2]) in VERBS else 1
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run_verb(" ".join(words[:length]), words[length:], debug)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def run_verb(name: str, flags: list[str], debug: bool) -> int:
    """Run a verb, print its result or what went wrong, and return the exit code."""
    is_main_process = os.environ.get("RANK", "0") == "0"  # under a launcher, every process raises the same error
    try:
        if name not in VERBS:
            raise UserError(f"unknown command; expected one of {', '.join(VERBS)} (ctxsim --help)")
        arguments = parse_flags(name, flags)
        result = VERBS[name].run(arguments)
        release_process_group()
        if is_main_process:
            print(describe_result(result, arguments.output) if isinstance(result, dict) else result)
        return 0
    except UserError as error:
        if debug:
            raise
        if is_main_process:
            print(f"ctxsim {name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if is_main_process:
            print(f"ctxsim {name}: interrupted; run the same command again to resume", file=sys.stderr)
        return 130


def parse_flags(name: str, flags: list[str]) -> Any:
    """Parse the flags of a verb into its dataclass."""
    from transformers import HfArgumentParser
    from transformers.utils.logging import disable_progress_bar

    if not sys.stderr.isatty():
        disable_progress_bar()  # transformers' own, when it reads weights
    verb = VERBS[name]

    class FlagParser(HfArgumentParser):
        """Raises an error of one line instead of printing the usage."""

        def error(self, message: str) -> NoReturn:
            raise UserError(f"{message}; `{self.prog} --help` lists the flags")

    parser = FlagParser(
        verb.arguments_class, prog=f"ctxsim {name}", description=verb.help, formatter_class=HelpFormatter
    )
    for action in parser._actions:  # flags with underscores work too, but are not shown
        action.option_strings = [flag for flag in action.option_strings if "_" not in flag]
    if positional := getattr(verb.arguments_class, "positional", None):
        parser.add_argument(positional[0], nargs="*", help=positional[1])
    arguments, *words, unknown = parser.parse_args_into_dataclasses(
        flags, return_remaining_strings=True, look_for_args_file=False
    )
    if unknown:
        known = [flag for flag in parser._option_string_actions if "_" not in flag]
        near = difflib.get_close_matches(unknown[0].split("=")[0], known, 1)
        hint = f"did you mean {near[0]}?" if near else f"`ctxsim {name} --help` lists the flags"
        raise UserError(f"unknown argument {unknown[0]!r}; {hint}")
    if positional:
        setattr(arguments, positional[0], getattr(words[0], positional[0]))
    return arguments


def _output_is_closed() -> bool:
    """Return whether nobody reads the output any more, as after `| head`, and let Python flush it nowhere at exit."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    closed = any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return closed


def release_process_group() -> None:
    """Destroy the process group of a launcher. Called once at the end, since the stages of a command share it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Show a default only where there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, []) else super()._get_help_string(action)


def overview() -> str:
    """Return the help that lists all verbs."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {verb.help}" for name, verb in VERBS.items())
    return (
        f"usage: ctxsim COMMAND [flags]\n\n{verbs}\n\n"
        "ctxsim COMMAND --help lists the flags of a command; --version prints the version; --debug shows a traceback; "
        "--verify checks every byte of what is read, also of files that passed before."
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
