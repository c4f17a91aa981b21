"""How the minutes of `ctxsim adapt` are spent, and how many sentences a language model can read in its share of them.

| share | light | encoder | language model | language model and encoder |
|---|---|---|---|---|
| `generator` | its training | its training, short: it explains scores, but no score rests on it | | |
| `background` | | | sentences that the origin compares with | likewise |
| `questions` | | | held-out sentences that weights are chosen by | likewise |
| `words` | | | tokens of the surrogate's vocabulary, which starts as their mean | |
| `vectors` | | sentences of the corpus to learn from | likewise | likewise |
| `pairs` | labelling pairs | likewise | sentences of the corpus to pair with each other | likewise |
| `surrogate` | its training | its training, long for an encoder | its training, short for a table of words | long |

The rest is for chunks, tokenizer and index, which take what the corpus needs.
"""

from dataclasses import dataclass

from ctxsim_hf.recipes.adapted_folder import MIX

SHARES = {
    "light": {"generator": 0.45, "pairs": 0.02, "surrogate": 0.2},
    "encoder": {"generator": 0.05, "vectors": 0.2, "pairs": 0.02, "surrogate": 0.5},
    "language model": {
        "background": 0.03,
        "questions": 0.06,
        "words": 0.14,
        "vectors": 0.42,
        "pairs": 0.03,
        "surrogate": 0.1,
    },
    "language model and encoder": {
        "background": 0.03,
        "questions": 0.1,
        "vectors": 0.4,
        "pairs": 0.03,
        "surrogate": 0.25,
    },
}
PAIRS_PER_MINUTE = 200_000  # that one core harvests in group mode with a light generator
ENCODER_SENTENCES_PER_MINUTE = 12_000  # that one core reads with all-MiniLM-L6-v2
FAST_VECTORS = 40_000  # sentences at most, where no language model reads them; a light generator takes seconds
FAST_QUESTIONS = 1000  # related pairs of each question, which take whatever is no language model seconds
MIN_VECTORS = 500
QUESTIONS = (60, 500)  # related pairs of each question, at least and at most
SENTENCES_PER_QUESTION = 6  # of which the questions of the yardstick have three each
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
        has_start (`bool`): Whether the surrogate starts from an encoder.
    """

    minutes: float
    speed: float | None
    has_start: bool = False

    def minutes_of(self, stage: str) -> float:
        """Return the minutes of a stage."""
        if self.speed is None:
            kind = "encoder" if self.has_start else "light"
        else:
            kind = "language model and encoder" if self.has_start else "language model"
        return round(SHARES[kind][stage] * self.minutes, 4)

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
        if self.speed is None and not self.has_start:
            return FAST_VECTORS
        if self.speed is None:
            read = round(self.minutes_of("vectors") * ENCODER_SENTENCES_PER_MINUTE)
            return min(FAST_VECTORS, max(MIN_VECTORS, read))
        return max(MIN_VECTORS, round(self._sentences("vectors")))

    @property
    def questions(self) -> int:
        """The related pairs of each question that weights are chosen by."""
        if self.speed is None:
            return FAST_QUESTIONS
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
