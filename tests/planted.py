"""A corpus with a planted truth: every meaning has two sets of words, which never occur in one document but always in
like surroundings. Around them, words that mean nothing occur everywhere."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

MEANINGS = 12
DOCUMENTS = 480
CHARACTERS = [chr(0x4E00 + 50 * number) for number in range(100)]  # few, so that most stand in several words


@dataclass(frozen=True)
class Probe:
    sentence: str
    paraphrase: str  # the same meaning, not a word in common
    near_copy: str  # all its words but those that carry the meaning


class PlantedCorpus:
    between_sentences = "\n\n"
    known_fillers = ("cat", "sat", "there")

    def __init__(self, seed: int = 0) -> None:
        self.chooser = random.Random(seed)
        self._words: set[str] = set()
        self.names = [[self._new_words(3), self._new_words(3)] for _ in range(MEANINGS)]  # the two sets
        self.surroundings = [self._new_words(6) for _ in range(MEANINGS)]
        self.fillers = [*self.known_fillers, *self._new_words(40 - len(self.known_fillers))]

    def write(self, path: Path, documents: int = DOCUMENTS) -> None:
        with path.open("w") as file:
            for number in range(documents):
                meaning, which = number % MEANINGS, number // MEANINGS % 2
                text = self.between_sentences.join(self._document(meaning, which))
                file.write(json.dumps({"id": number, "text": text}) + "\n")

    def probes(self, number: int) -> list[Probe]:
        return [self._probe() for _ in range(number)]

    def _document(self, meaning: int, which: int) -> list[str]:
        """Sentences that name the meaning between sentences that only surround it."""
        sentences = [self._say(self.surroundings[meaning], self._pick_fillers(2))]
        for _ in range(4):
            sentences.append(self._say(self.names[meaning][which], self._pick_fillers(4)))
            sentences.append(self._say(self.surroundings[meaning], self._pick_fillers(2)))
        return sentences

    def _probe(self) -> Probe:
        meaning, other = self.chooser.sample(range(MEANINGS), 2)
        fillers = self._pick_fillers(8)
        which = self.chooser.randrange(2)
        return Probe(
            self._say(self.names[meaning][which], fillers[:4]),
            self._say(self.names[meaning][1 - which], fillers[4:]),
            self._say(self.names[other][self.chooser.randrange(2)], fillers[:4]),
        )

    def _pick_fillers(self, number: int) -> list[str]:
        return self.chooser.sample(self.fillers, number)

    def _say(self, words: list[str], fillers: list[str]) -> str:
        said = [*self.chooser.sample(words, 2), *fillers]
        self.chooser.shuffle(said)
        return self._write_sentence(said)

    def _new_words(self, number: int) -> list[str]:
        words: list[str] = []
        while len(words) < number:
            word = self._make_up_word()
            if word not in self._words:
                self._words.add(word)
                words.append(word)
        return words

    def _make_up_word(self) -> str:
        return "".join(self.chooser.choice("bdfgklmnprstvz") + self.chooser.choice("aeiou") for _ in range(3))

    def _write_sentence(self, words: list[str]) -> str:
        return " ".join(words).capitalize() + "."


class ChinesePlantedCorpus(PlantedCorpus):
    """The same in Chinese characters: a word is two of them, and nothing stands between words or sentences."""

    between_sentences = ""
    known_fillers = ()

    def _make_up_word(self) -> str:
        return "".join(self.chooser.choices(CHARACTERS, k=2))

    def _write_sentence(self, words: list[str]) -> str:
        return "".join(words) + "。"
