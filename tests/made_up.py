"""Text for tests that nobody wrote."""

import random


def make_text(num_sentences: int, seed: int) -> str:
    """Made-up prose: that many sentences of made-up words, in paragraphs of three."""
    chooser = random.Random(seed)
    words = ["".join(chooser.choices("abdeiklmnorstu", k=chooser.randint(2, 8))) for _ in range(200)]
    # The last word is too long to be taken for an abbreviation.
    sentences = [
        " ".join([*chooser.choices(words, k=chooser.randint(3, 11)), "terminating."]) for _ in range(num_sentences)
    ]
    sentences = [sentence.capitalize() for sentence in sentences]
    return "\n\n".join(" ".join(sentences[start : start + 3]) for start in range(0, num_sentences, 3))
