"""Compare two sentences, or the pairs of a file, by an origin or a surrogate: `ctxsim similarity`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.find_surrogate import find_surrogate
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN, OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.working import refuse_same_file, writing_output
from ctxsim_hf.text.lines import is_pipe, open_lines

if TYPE_CHECKING:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder


@dataclass(kw_only=True)
class SimilarityArguments(SettingsArguments):
    """The arguments of `ctxsim similarity`."""

    origin: str | None = HfArg(
        default=None, help=f"Folder made by ctxsim index, or its id on the Hub; by default {DEFAULT_ORIGIN}."
    )
    surrogate: str | None = HfArg(default=None, help="Compare by this surrogate instead: its folder or id.")
    pairs: str | None = HfArg(
        default=None, help="File of pairs, sentence TAB sentence, instead of two sentences; - is standard input."
    )
    output: str | None = HfArg(default=None, help="File for the pairs with their scores; by default they are printed.")
    explain: bool = HfArg(default=False, help="Show what the score is made of: signals, suggested words, contexts.")
    html: str | None = HfArg(default=None, help="Write the explanation to this file, as a page of HTML.")
    sentences: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("sentences", "The two sentences.")

    def check(self) -> None:
        """Refuse arguments that contradict each other."""
        if self.pairs is None and len(self.sentences) != 2:
            raise UserError(f"expected two sentences, or --pairs FILE; got {len(self.sentences)} sentences")
        if self.pairs is None and self.output is not None:
            raise UserError("--output is for the scores of --pairs; leave it out for two sentences")
        if self.pairs is not None and (self.sentences or self.explain or self.html):
            raise UserError("--pairs cannot be combined with sentences, --explain or --html")
        if self.surrogate is not None:
            of_origin = ["origin", "explain", "html", *(flag.name for flag in fields(SettingsArguments))]
            if given := [name for name in of_origin if getattr(self, name)]:
                flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
                raise UserError(f"a surrogate has no contexts: leave out {flags}, or --surrogate")


def run(arguments: SimilarityArguments) -> str:
    """Compare sentences and return what to print."""
    arguments.check()
    if arguments.pairs is None:
        return _compare_two(arguments, *arguments.sentences)
    if arguments.output is None:
        rows = list(_score_rows(arguments, list(_read_pairs(arguments.pairs))))
        return "\n".join([*rows, f"{len(rows)} pairs"])
    if not is_pipe(arguments.pairs):
        refuse_same_file(arguments.pairs, arguments.output)
    # Whether the output can be written shows before the pairs are scored, which may take hours.
    with writing_output(arguments.output) as path, path.open("w", encoding="utf-8", newline="") as file:
        pairs = list(_read_pairs(arguments.pairs))
        file.writelines(f"{row}\n" for row in _score_rows(arguments, pairs))
    what = "score" if arguments.surrogate else "score and spread"
    return f"{len(pairs)} pairs with {what} in {arguments.output}"


def _compare_two(arguments: SimilarityArguments, first: str, second: str) -> str:
    if arguments.surrogate:
        score = float(_open_surrogate(arguments.surrogate).similarity([first], [second])[0])
        thresholds = Thresholds.load(find_surrogate(arguments.surrogate))
        return f"{score:.4f}" + (f"\n{thresholds.describe(score)}" if thresholds else "")
    origin = _open_origin(arguments)
    explanation = origin.explain(first, second)
    if arguments.html is not None:
        explanation.to_html(arguments.html)
    if arguments.explain:
        return str(explanation)
    return f"{explanation.similarity:.4f}" + (f"\n{explanation.meaning}" if explanation.meaning else "")


def _score_rows(arguments: SimilarityArguments, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Yield each pair with its numbers, separated by tabs."""
    scores = _score_pairs(arguments, [first for first, _ in pairs], [second for _, second in pairs])
    for pair, numbers in zip(pairs, scores, strict=True):
        yield "\t".join([*pair, *(f"{number:.6f}" for number in numbers)])


def _score_pairs(arguments: SimilarityArguments, first: list[str], second: list[str]) -> Iterator[tuple[float, ...]]:
    """Return the score of each pair, and with an origin its spread."""
    if arguments.surrogate:
        return ((score,) for score in _open_surrogate(arguments.surrogate).similarity(first, second).tolist())
    return ((pair.similarity, pair.spread) for pair in _open_origin(arguments).compare(first, second))


def _open_surrogate(surrogate: str) -> "SentenceEncoder":
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

    return SentenceEncoder.from_pretrained(surrogate)


def _open_origin(arguments: SimilarityArguments) -> OriginSimilarity:
    return arguments.open_origin(arguments.origin or DEFAULT_ORIGIN)


def _read_pairs(name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(open_lines(name), 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(f"{name!r}, line {number}: expected sentence TAB sentence, got {len(cells)} columns")
        yield cells[0], cells[1]
