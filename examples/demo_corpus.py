"""Turns the documentation installed with Python and its packages into a corpus of English prose, offline.

A document is a topic of Python's reference manual (`pydoc_data.topics`) or the docstrings of one module, in source
order, reduced to prose by `prose.prose_paragraphs`. Source files are parsed, never imported, so nothing of them is
executed. The result depends on what is installed; on one machine it is the same in every run.

    python examples/demo_corpus.py OUTPUT.jsonl
"""

import argparse
import ast
import gc
import hashlib
import json
import re
import sysconfig
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from prose import count_sentences, prose_paragraphs
from tqdm import tqdm

from ctxsim_hf.runtime.files import writing

MIN_SENTENCES = 3  # a context needs three sentences, so a shorter document is of no use

# No single package may swamp the corpus; a larger one is thinned out to this size, whole documents at a time. Only
# Python's own library is read whole: it has what most people would look for.
MAX_PACKAGE_WORDS = 30_000
WHOLE = "python/lib"

# Tests, copies of other packages, and installers, which bring both.
_LEFT_OUT_FOLDERS = re.compile(
    r"tests?|testing|idle_test|test_.*|.*_tests?|benchmarks?|examples?|_?vendor(?:ed)?|_vendored_packages|_?externals?"
    r"|extern|third_party|array_api_compat|array_api_extra|_?multiprocess|_distutils|_distutils_hack|pip|setuptools|pkg_resources|wheel|ensurepip"
    r"|site-packages|dist-packages|__pycache__"
)
_LEFT_OUT_FILES = re.compile(r"test_.*|.*_test|tests?|conftest|.*_pb2|__main__")
_GENERATED = re.compile(
    r"^#.*\b(?:auto-?(?:matically )?[ -]?generated|generated (?:by|from)|do not edit)", re.I | re.M
)
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")  # where a syntax node keeps its statements, in order
_HEADER_CHARS = 2_000  # a note that the file is generated stands near the top


@dataclass(frozen=True)
class DemoDocument:
    """One document: `id` such as "python/lib/json.decoder", `text` with a blank line between paragraphs."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Roots:
    """Where to look: the folder of the standard library and the folders packages are installed in."""

    stdlib: Path
    packages: tuple[Path, ...]

    @classmethod
    def of_this_python(cls) -> "Roots":
        paths = sysconfig.get_paths()
        packages = sorted({Path(paths["purelib"]), Path(paths["platlib"])})
        return cls(stdlib=Path(paths["stdlib"]), packages=tuple(packages))


@dataclass
class _Build:
    """What has to be remembered across the documents of one run."""

    max_package_words: int = MAX_PACKAGE_WORDS
    seen: set[bytes] = field(default_factory=set)
    unreadable_files: int = 0

    def is_new(self, paragraph: str) -> bool:
        key = _fingerprint(paragraph)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True


def demo_documents(
    roots: Roots | None = None, *, max_package_words: int = MAX_PACKAGE_WORDS
) -> Iterator[DemoDocument]:
    """The documents under `roots` (None: those of the running Python), sorted by id and the same in every run."""
    yield from _documents(roots or Roots.of_this_python(), _Build(max_package_words))


def write_demo_corpus(path: Path, roots: Roots | None = None) -> dict[str, int]:
    """Writes the corpus to `path` as JSON lines with the keys id, title, text; returns what it counted.

    The counts are documents, paragraphs, words, and unreadable_files: sources passed over because they could not
    be decoded or parsed.
    """
    counts = Counter(documents=0, paragraphs=0, words=0)
    build = _Build()
    with writing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as lines:
        for document in _documents(roots or Roots.of_this_python(), build):
            lines.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")
            counts.update(documents=1, paragraphs=document.text.count("\n\n") + 1, words=len(document.text.split()))
    return {**counts, "unreadable_files": build.unreadable_files}


def _documents(roots: Roots, build: _Build) -> Iterator[DemoDocument]:
    packages = {WHOLE: _stdlib_modules(roots.stdlib), **_installed_modules(roots.packages)}
    parts = {prefix: _package_documents(prefix, modules, build) for prefix, modules in packages.items()}
    parts["python/topics"] = _topic_documents(roots.stdlib / "pydoc_data" / "topics.py", build)
    for prefix in tqdm(sorted(parts), desc="documentation", unit="package", disable=None):
        yield from parts[prefix]


def _topic_documents(source: Path, build: _Build) -> Iterator[DemoDocument]:
    """One document per entry of the literal `topics = {name: text}` in `source`."""
    for name, text in sorted(_topics(source).items()):
        paragraphs = prose_paragraphs(text, keep_indented=True)
        title = text.strip().partition("\n")[0] or name
        document = _document(f"python/topics/{name}", title, filter(build.is_new, paragraphs))
        if document:
            yield document


def _topics(source: Path) -> dict[str, str]:
    if not source.is_file():  # a Python without its documentation
        return {}
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            topics: dict[str, str] = ast.literal_eval(node.value)
            return topics
    raise ValueError(f"expected an assignment `topics = {{...}}` in {source.name!r}, found none")


def _stdlib_modules(root: Path) -> dict[str, Path]:
    """The source file of each module of the standard library, by dotted name."""
    return dict(_modules_under(root, ""))


def _installed_modules(roots: Iterable[Path]) -> dict[str, dict[str, Path]]:
    """The source file of each installed module, by top-level package and dotted name."""
    packages: dict[str, dict[str, Path]] = {}
    for root in roots:
        for module, source in _modules_under(root, ""):
            packages.setdefault(module.partition(".")[0], {})[module] = source
    return packages


def _modules_under(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """Dotted names and source files below `folder`, without tests and vendored copies."""
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = entry.stem if entry.suffix == ".py" else entry.name
        if not name.isidentifier():  # metadata, binary libraries, data
            continue
        if entry.is_dir() and not _LEFT_OUT_FOLDERS.fullmatch(name):
            yield from _modules_under(entry, f"{prefix}{name}.")
        elif entry.suffix == ".py" and not _LEFT_OUT_FILES.fullmatch(name):
            yield (prefix.rstrip(".") if name == "__init__" else f"{prefix}{name}"), entry


def _package_documents(prefix: str, modules: dict[str, Path], build: _Build) -> Iterator[DemoDocument]:
    """The documents of one package, sorted by id, at most `build.max_package_words` words unless it is read whole.

    Modules are read in an order that has nothing to do with their names, so that a package above the limit is
    thinned out evenly and the modules it does not need are not even parsed.
    """
    documents: list[DemoDocument] = []
    words = 0
    for module in sorted(modules, key=lambda name: hashlib.sha256(name.encode()).digest()):
        paragraphs = _module_paragraphs(modules[module], build)
        document = _document(f"{prefix}/{module}", module, filter(build.is_new, paragraphs))
        if document:
            documents.append(document)
            words += len(document.text.split())
        if prefix != WHOLE and words >= build.max_package_words:
            break
    yield from sorted(documents, key=lambda document: document.id)


def _module_paragraphs(source: Path, build: _Build) -> list[str]:
    """The prose in the docstrings of one source file; none if the file is generated or cannot be parsed."""
    try:
        with tokenize.open(source) as lines:  # honours the file's own declaration of its encoding
            code = lines.read()
        if _GENERATED.search(code, 0, _HEADER_CHARS):
            return []
        with _undisturbed():
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):  # a wrong encoding is one of the first two
        build.unreadable_files += 1
        return []
    return [paragraph for docstring in _docstrings(tree) for paragraph in prose_paragraphs(docstring)]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Parsing without warnings about invalid escapes in other people's strings, and without garbage collection.

    A syntax tree is many objects and no cycles: the collector would take a fifth of the run and find nothing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if collects:
            gc.enable()


def _docstrings(node: ast.AST) -> Iterator[str]:
    """The docstrings of a module, its classes, functions and methods, in source order."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node, clean=False)
        if docstring:
            yield docstring
    for block in _BLOCKS:  # only statements: expressions hold no docstrings and are most of the tree
        for child in getattr(node, block, ()):
            yield from _docstrings(child)


def _document(id: str, title: str, paragraphs: Iterable[str]) -> DemoDocument | None:
    """A document of `paragraphs`, or None if they are too few sentences to be of use."""
    kept = list(paragraphs)
    if sum(map(count_sentences, kept)) < MIN_SENTENCES:
        return None
    return DemoDocument(id=id, title=title, text="\n\n".join(kept))


def _fingerprint(paragraph: str) -> bytes:
    return hashlib.blake2b(paragraph.casefold().encode(), digest_size=8).digest()


def main(argv: list[str] | None = None) -> int:
    """Writes the corpus to the file named on the command line and prints the counts as one line."""
    parser = argparse.ArgumentParser(description="Write a corpus of English prose from the installed documentation.")
    parser.add_argument("output", type=Path, help="file to write, JSON lines with the keys id, title, text")
    counts = write_demo_corpus(parser.parse_args(argv).output)
    print(" ".join(f"{name}={count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
