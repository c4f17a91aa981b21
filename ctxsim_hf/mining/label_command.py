"""An origin -> a table of the pairs whose labels would teach most, for people to fill in: `ctxsim label`.

The filled table is what `ctxsim train surrogate --objective sts --labelled FILE` reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.encoder.find_surrogate import find_surrogate
from ctxsim_hf.harvest.drawing import Drawing, Mix
from ctxsim_hf.mining.pairs_to_label import JudgedPairs, choose_pairs
from ctxsim_hf.origin.group_scoring import score_group
from ctxsim_hf.origin.segments import WORDS
from ctxsim_hf.origin.signals import CONTEXTS, mix, open_signal
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN, OriginSimilarity
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, Seed
from ctxsim_hf.runtime.working import writing_output
from ctxsim_hf.text.signal import Signal

COLUMNS = ("sentence1", "sentence2", "label", "similarity", "spread", "disagreement")
MIX = Mix(near=12, document=4, unrelated=1, farthest=64, random_share=0.1)  # mostly pairs that share words
TOKENS = (5, 40)
GUIDE = "0 unrelated, 1 same topic, 2 share details, 3 roughly the same, 4 the same but for details, 5 the same"


@dataclass(kw_only=True)
class LabelArguments(Arguments):
    """The arguments of `ctxsim label`."""

    origin: str = HfArg(default=DEFAULT_ORIGIN, help="Folder made by ctxsim index, or its id on the Hub.")
    surrogate: str | None = HfArg(
        default=None, help="A surrogate or SentenceTransformer whose similarity is compared too."
    )
    output: str = HfArg(help="The .tsv file to write, with an empty column `label`.")
    number: Count = HfArg(default=100, help="Number of pairs to label.")
    candidates: Count = HfArg(default=5000, help="Number of pairs to choose from.")
    seed: Seed = HfArg(default=0, help="Seed of the candidates.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not str(self.output).endswith(".tsv"):
            raise UserError(f"--output must end in .tsv, got {str(self.output)!r}")


def run(arguments: LabelArguments) -> str:
    """Write the table and return what to do with it."""
    with writing_output(arguments.output) as path:
        if Path(arguments.output).exists():
            raise UserError(f"{str(arguments.output)!r} exists and may hold labels; choose another --output")
        return _write_table(arguments, path)


def _write_table(arguments: LabelArguments, path: Path) -> str:
    origin = OriginSimilarity.from_pretrained(arguments.origin)
    signals = _signals(origin, arguments.surrogate)
    drawing = Drawing(origin.index, MIX, TOKENS, arguments.seed)
    judged = _judge(origin, signals, drawing, arguments.candidates)
    chosen = choose_pairs(judged, arguments.number)
    path.write_text("".join(_lines(origin, judged, chosen)), "utf-8")
    return (
        f"{len(chosen)} of {len(judged.members)} pairs, those about which {', '.join(signals)} disagree most\n"
        f"Fill in the column label of {arguments.output}: {GUIDE}; leave it empty where you cannot tell. Then:\n"
        f"ctxsim train surrogate --objective sts --labelled {arguments.output} --init SURROGATE --output FOLDER"
    )


def _signals(origin: OriginSimilarity, surrogate: str | None) -> dict[str, Signal]:
    """Return the signals of an origin, the words, and a surrogate if there is one."""
    words: dict[str, Signal] = {"words": open_signal("words", origin.version.folder / WORDS)}
    other = {} if surrogate is None else {"surrogate": EncoderSignal.open(find_surrogate(surrogate))}
    return words | origin.signals | other


def _judge(origin: OriginSimilarity, signals: dict[str, Signal], drawing: Drawing, number: int) -> JudgedPairs:
    """Draw pairs group by group, and ask every signal about them."""
    groups = list(_draw(drawing, number))
    if not groups:
        raise UserError(f"the origin has no sentences of {TOKENS[0]} to {TOKENS[1]} tokens to pair")
    members = np.concatenate([sentences[pairs] for sentences, pairs in groups])
    first, second = (origin.index.texts(side) for side in members.T)
    answers = {name: signal.similarity(first, second) for name, signal in signals.items() if name != CONTEXTS}
    spreads = np.zeros(len(members))
    if CONTEXTS in signals:
        with tqdm(groups, desc="contexts", unit="group", disable=None) as bar:
            scored = [score_group(origin.contexts, origin.index.texts(found), pairs) for found, pairs in bar]
        answers[CONTEXTS], spreads = (np.concatenate(parts) for parts in zip(*scored, strict=True))
    similarities = mix({name: answers[name] for name in origin.signals}, origin.shares)
    return JudgedPairs(members, np.asarray(similarities), spreads, answers)


def _draw(drawing: Drawing, number: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the sentences of groups, and pairs of places in each, until there are enough pairs."""
    for group in drawing.groups("train"):
        pairs = drawing.pairs(group).members[:number]
        number -= len(pairs)
        if len(pairs):
            yield group.sentences, pairs
        if not number:
            return


def _lines(origin: OriginSimilarity, judged: JudgedPairs, chosen: np.ndarray) -> Iterator[str]:
    yield "\t".join(COLUMNS) + "\n"
    disagreements = judged.disagreements
    for place in chosen.tolist():
        texts = (" ".join(text.split()) for text in origin.index.texts(judged.members[place]))
        figures = (judged.similarities[place], judged.spreads[place], disagreements[place])
        yield "\t".join([*texts, "", *(f"{figure:.4f}" for figure in figures)]) + "\n"
