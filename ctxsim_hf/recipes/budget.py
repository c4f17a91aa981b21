"""How the minutes of `ctxsim adapt` are spent, and how many sentences a language model can read in its share of them.

| share | light | language model |
|---|---|---|
| `generator` | its training | |
| `background` | | sentences that the origin compares with |
| `questions` | | held-out sentences that weights are chosen by, and that the end is judged by |
| `words` | | tokens of the surrogate's vocabulary, which starts as their mean; none with --start |
| `vectors` | | sentences of the corpus to learn from |
| `pairs` | labelling pairs | sentences of the corpus to pair with each other |
| `surrogate` | its training | its training |

The rest is for chunks, tokenizer and index, which take what the corpus needs.
"""

from dataclasses import dataclass

from ctxsim_hf.recipes.adapted_folder import MIX

SHARES = {
    "light": {"generator": 0.45, "pairs": 0.02, "surrogate": 0.2},
    "language model": {
        **{"background": 0.03, "questions": 0.08, "words": 0.14},
        **{"vectors": 0.3, "pairs": 0.05, "surrogate": 0.2},
    },
}
PAIRS_PER_MINUTE = 200_000  # that one core harvests in group mode with a light generator
LIGHT_VECTORS, LIGHT_QUESTIONS = (
    40_000,
    1000,
)  # sentences, and pairs of a question, which take a light generator seconds
MIN_VECTORS = 500
QUESTIONS = (60, 500)  # related pairs of each question, at least and at most
SENTENCES_PER_QUESTION = 12  # of which the questions of the yardstick, and those below it, have three each
MIN_PAIRS = 1000
BACKGROUND = (100, 1000)  # sentences, at least and at most
MIN_WORDS = 1000  # a vocabulary has 256 bytes and the letters of its script besides
WORDS_PER_SENTENCE = 2  # words that a model reads in the time of a sentence; most of it goes to the bridge


@dataclass(frozen=True)
class Budget:
    """
    Args:
        minutes (`float`): About how long the whole run may take.
        speed (`float`, *optional*): Sentences a second that the language model reads. None if there is none.
    """

    minutes: float
    speed: float | None

    def minutes_of(self, stage: str) -> float:
        """Return the minutes of a stage."""
        shares = SHARES["light" if self.speed is None else "language model"]
        return round(shares[stage] * self.minutes, 4)

    @property
    def pairs(self) -> int:
        """The pairs to harvest."""
        if self.speed is None:
            return max(MIN_PAIRS, round(self.minutes_of("pairs") * PAIRS_PER_MINUTE))
        near, document = MIX["near"], MIX["document"]
        related = near * (near - 1) / 2 + document * (document - 1) / 2
        pairs_per_sentence = related / (1 - MIX["random_share"]) / (near + document + MIX["unrelated"])
        return max(MIN_PAIRS, round(self._sentences("pairs") * pairs_per_sentence))

    @property
    def vectors(self) -> int:
        """The sentences whose vectors a surrogate learns from."""
        return LIGHT_VECTORS if self.speed is None else max(MIN_VECTORS, round(self._sentences("vectors")))

    @property
    def questions(self) -> int:
        """The related pairs of each label-free question."""
        if self.speed is None:
            return LIGHT_QUESTIONS
        least, most = QUESTIONS
        return min(most, max(least, round(self._sentences("questions") / SENTENCES_PER_QUESTION)))

    @property
    def background(self) -> int:
        """The background sentences of an origin with a language model."""
        least, most = BACKGROUND
        return min(most, max(least, round(self._sentences("background"))))

    @property
    def words(self) -> int:
        """The tokens that the language model can read one by one."""
        return max(MIN_WORDS, round(WORDS_PER_SENTENCE * self._sentences("words")))

    def _sentences(self, stage: str) -> float:
        return 60 * self.minutes_of(stage) * (self.speed or 0)
