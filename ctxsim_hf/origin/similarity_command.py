"""`ctxsim similarity`: how alike two sentences are, or many pairs from a file."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TextIO

from transformers.hf_argparser import HfArg

from ctxsim_hf.errors import UserError
from ctxsim_hf.origin.fit_score import TERMS, ScoreWeights
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN, OriginSimilarity
from ctxsim_hf.stage import writing


@dataclass(kw_only=True)
class SettingsArguments:
    """What to change of the settings of an origin folder."""

    mode: str | None = HfArg(default=None, help="Compare by cosine, centered, zscore or whitened.")
    weights: list[float] | None = HfArg(default=None, help=f"Weights of the terms {', '.join(TERMS)}.")
    num_contexts: int | None = HfArg(default=None, help="Contexts of each sentence.")
    screen_chunks: int | None = HfArg(default=None, help="Chunks that TF-IDF lets through.")
    strategy: str | None = HfArg(default=None, help="Choose contexts by two_step, random or no_diversity.")
    background_size: int | None = HfArg(default=None, help="Background sentences that count.")
    lexical_weight: float | None = HfArg(default=None, help="Weight of the TF-IDF cosine added to the similarity.")
    cache: str | None = HfArg(default=None, help="Folder to keep context sets in from run to run.")

    def open_origin(self, origin: str) -> OriginSimilarity:
        weights = self.weights
        if weights is not None and len(weights) != len(TERMS):
            raise UserError(f"--weights takes {len(TERMS)} numbers ({', '.join(TERMS)}), got {len(weights)}")
        return OriginSimilarity.from_pretrained(
            origin,
            cache_folder=self.cache,
            mode=self.mode,
            weights=None if weights is None else ScoreWeights(*weights),
            num_contexts=self.num_contexts,
            screen_chunks=self.screen_chunks,
            strategy=self.strategy,
            background_size=self.background_size,
            lexical_weight=self.lexical_weight,
        )


@dataclass(kw_only=True)
class SimilarityArguments(SettingsArguments):
    origin: str = HfArg(default=DEFAULT_ORIGIN, help="Folder made by ctxsim index, or its id on the Hub.")
    pairs: str | None = HfArg(default=None, help="File of pairs, sentence TAB sentence, instead of two sentences.")
    output: str | None = HfArg(default=None, help="File to write the pairs with their scores to; else the screen.")
    explain: bool = HfArg(default=False, help="Show the contexts that speak for and against.")
    sentences: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("sentences", "The two sentences.")

    def check(self) -> None:
        if self.pairs is None and len(self.sentences) != 2:
            raise UserError(f"expected two sentences, or --pairs FILE; got {len(self.sentences)} sentences")
        if self.pairs is not None and (self.sentences or self.explain):
            raise UserError("--pairs takes no sentences beside it and no --explain")


def run(arguments: SimilarityArguments) -> str:
    arguments.check()
    if arguments.pairs is None:
        first, second = arguments.sentences
        explanation = arguments.open_origin(arguments.origin).explain(first, second)
        return str(explanation) if arguments.explain else f"{explanation.similarity:.4f}"
    pairs = list(_read_pairs(Path(arguments.pairs)))
    found = arguments.open_origin(arguments.origin).compare(
        [first for first, _ in pairs], [second for _, second in pairs]
    )
    rows = [
        [*pair, f"{scores.similarity:.6f}", f"{scores.spread:.6f}"] for pair, scores in zip(pairs, found, strict=True)
    ]
    if arguments.output is None:
        _write_rows(rows, sys.stdout)
        return f"{len(rows)} pairs"
    with writing(Path(arguments.output)) as path, path.open("w", encoding="utf-8", newline="") as file:
        _write_rows(rows, file)
    return f"{len(rows)} pairs with score and spread in {arguments.output}"


def _read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{str(path)!r} is not UTF-8: {error}") from error
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(f"{str(path)!r}, line {number}: expected sentence TAB sentence, got {len(cells)} columns")
        yield cells[0], cells[1]


def _write_rows(rows: list[list[str]], file: TextIO) -> None:
    for row in rows:
        file.write("\t".join(row) + "\n")
