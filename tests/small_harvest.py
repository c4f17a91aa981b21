"""A harvest small enough to be made again and again, and what is left of it to compare."""

from pathlib import Path

# Small, since every test is about something else.
SETTINGS = ("--num-contexts", 10, "--background-size", 40, "--screen-chunks", 100)
# Four files: two of train, and one of each small split.
FILES = ("--pairs", 300, "--near", 5, "--document", 4, "--unrelated", 1, "--pairs-per-file", 150)


def harvest_words(planted: Path, output: Path, *more: object) -> list[str]:
    words = ["harvest", "--origin", planted / "origin", "--chunks", planted / "chunks", "--output", output]
    return [str(word) for word in [*words, *SETTINGS, *FILES, *more]]


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the log, which holds the time of day."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "stage.log"
    }
