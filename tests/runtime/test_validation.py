"""Every setting is checked against its own type, as a flag, from Python and from JSON."""

import importlib
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, get_type_hints

import pytest
from annotated_types import Ge, Lt
from transformers.hf_argparser import HfArg

from ctxsim_hf.cli import VERBS
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, OneOf, Positive, validate

Run = Callable[..., tuple[int, str, str]]
ARGUMENTS = {name: getattr(importlib.import_module(verb.module), verb.arguments) for name, verb in VERBS.items()}
PLAIN = {str: "x", int: 100_000, float: 0.5, list[str]: ["x"]}
NUMBERS = (float, float | None, list[float] | None)


@dataclass(kw_only=True)
class Toy:
    share: Annotated[float, Ge(0), Lt(1)] = HfArg(default=0.5, help="A flag.")
    two_words: Count | None = HfArg(default=None, help="A flag.")
    kind: Annotated[str, OneOf(("a", "b"))] = HfArg(default="a", help="A flag.")
    flag: bool = HfArg(default=False, help="A flag.")
    numbers: list[Positive] = HfArg(default_factory=lambda: [1.0], help="A flag.")
    by_name: dict[str, float] = field(default_factory=dict)
    weights: ScoreWeights = field(default_factory=ScoreWeights)

    def __post_init__(self) -> None:
        validate(self)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"share": 1.5}, "--share must be at least 0 and below 1, got 1.5"),
        ({"share": -0.1}, "--share must be at least 0 and below 1, got -0.1"),
        ({"share": math.nan}, "--share must be a finite number, got nan"),
        ({"share": "0.5"}, "--share must be a number, got '0.5'"),
        ({"share": True}, "--share must be a number, got True"),
        ({"share": None}, "--share must be a number, got None"),
        ({"two_words": 0}, "--two-words must be at least 1, got 0"),
        ({"two_words": 1.5}, "--two-words must be a whole number, got 1.5"),
        ({"two_words": True}, "--two-words must be a whole number, got True"),
        ({"kind": "c"}, "--kind must be one of a, b, got 'c'"),
        ({"kind": 1}, "--kind must be text, got 1"),
        ({"flag": 1}, "--flag must be True or False, got 1"),
        ({"numbers": 1.0}, "--numbers must be a list, got 1.0"),
        (
            {"numbers": [1, -math.inf]},
            "--numbers must be a list in which each value is a finite number, got [1, -inf]",
        ),
        ({"numbers": [1, 0]}, "--numbers must be a list in which each value is above 0, got [1, 0]"),
        ({"by_name": {"a": math.nan}}, "by_name must be a dictionary in which each value is a finite number, got "),
        ({"weights": [1, 1]}, "weights must be of the type ScoreWeights, got [1, 1]"),
    ],
)
def test_what_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        Toy(**values)
    assert str(caught.value).startswith(message)


def test_what_is_let_through() -> None:
    Toy(share=0, two_words=3, kind="b", flag=True, numbers=[1, 0.5], by_name={"a": 0.0})
    Toy(share=0.999)


def test_a_rule_that_nobody_checks_is_a_mistake() -> None:
    @dataclass
    class Misspelled:
        number: Annotated[int, "at least 1"] = 1

    with pytest.raises(TypeError, match="no rule for settings: 'at least 1'"):
        validate(Misspelled())


def required(arguments: type) -> dict[str, Any]:
    hints = get_type_hints(arguments)
    given = {
        f.name: PLAIN[hints[f.name]]
        for f in fields(arguments)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    }
    extra = {
        "SurrogateArguments": {"pairs": "x", "tokenizer": "x"},
        "GeneratorArguments": {"tokenizer": "x"},
        "IndexArguments": {"generator": ["x"], "chunks": "x", "output": "y"},
        "ChunkArguments": {"output": "y"},
        "DuplicatesArguments": {"input": "x"},
        "ClusterArguments": {"input": "x"},
        "LabelArguments": {"output": "x.tsv"},
    }
    return given | extra.get(arguments.__name__, {})


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_no_number_of_the_command_line_may_be_nan_or_infinite(verb: str) -> None:
    arguments = ARGUMENTS[verb]
    arguments(**required(arguments))
    hints = get_type_hints(arguments)
    for name in [f.name for f in fields(arguments) if f.init and hints[f.name] in NUMBERS]:
        for number in (math.nan, math.inf, -math.inf):
            value = [1.0, number] if hints[name] == list[float] | None else number
            with pytest.raises(UserError, match=f"^--{name.replace('_', '-')} must be .*finite"):
                arguments(**required(arguments) | {name: value})


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_every_number_of_the_command_line_has_a_bound(verb: str) -> None:
    """But for the weights of terms, which may count against a pair."""
    arguments = ARGUMENTS[verb]
    hints = get_type_hints(arguments)
    for name in [
        f.name for f in fields(arguments) if f.init and hints[f.name] in (int, int | None, float, float | None)
    ]:
        with pytest.raises(UserError, match=f"^--{name.replace('_', '-')} must be (at least|above) .*, got -1$"):
            arguments(**required(arguments) | {name: -1})


@pytest.mark.parametrize("setting", [f.name for f in fields(OriginSettings) if isinstance(f.default, float)])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_settings_of_an_origin_are_finite(setting: str, number: float) -> None:
    with pytest.raises(UserError, match=f"^{setting} must be a finite number, got {number}"):
        OriginSettings(**{setting: number})
    with pytest.raises(UserError, match=f"^{setting} must be a finite number"):
        OriginSettings().override(**{setting: number})


def test_weights_of_an_origin_are_finite() -> None:
    for term in fields(ScoreWeights):
        with pytest.raises(UserError, match=f"^{term.name} must be a finite number, got nan"):
            ScoreWeights(**{term.name: math.nan})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("adapt --minutes nan", "--minutes must be a finite number, got nan"),
        ("adapt --minutes inf", "--minutes must be a finite number, got inf"),
        ("ablate terms --minutes nan", "--minutes must be a finite number, got nan"),
        ("train generator --epochs nan", "--epochs must be a finite number, got nan"),
        (
            "train generator --learning-rate nan",
            "--learning-rate must be a finite number, got",
        ),
        ("train generator --learning-rate -1", "--learning-rate must be above 0, got -1.0"),
        (
            "train generator --seed -1",
            "--seed must be at least 0 and below 4294967296, got -1",
        ),
        ("train generator --dropout 2", "--dropout must be at least 0 and below 1, got 2.0"),
        ("train generator --direction all --heads 0", "--heads must be at least 1, got 0"),
        ("train generator --direction all --heads 5", "--hidden-size 192 is not a multiple of --heads 5"),
        ("train generator --direction all --closed-form", "--closed-form is for --kind light"),
        ("train discriminator --width 0", "--width must be at least 1, got 0"),
        ("train surrogate --max-train-minutes inf", "--max-train-minutes must be a finite"),
        ("similarity --background-size 1", "--background-size must be at least 2, got 1"),
        ("similarity --lexical-weight nan", "--lexical-weight must be a finite number, got nan"),
        ("similarity --weights nan 1 1 1", "--weights must be a list in which each value is a finite number, got"),
        ("similarity --strategy best", "--strategy must be one of two_step, random, no_diversity, got 'best'"),
    ],
)
def test_flags_are_refused_in_one_line(ctxsim: Run, words: str, message: str) -> None:
    needed = {
        "adapt": "--corpus x",
        "ablate": "--adapted x",
        "similarity": "a b",
        "train": "--pairs x --tokenizer x" if "surrogate" in words else "--chunks x --tokenizer x",
    }
    code, _, err = ctxsim(*words.split(), "--output", "x", *needed[words.split()[0]].split())
    assert code == 2 and message in err and err.count("\n") == 1
