"""For each kind of folder, what a reader makes of it: a function from the root and the folder to an answer."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from small_harvest import contents

from faults.children import command
from faults.command_lines import EVERY_SIGNAL, SETTINGS, commands

FIRST, SECOND = ["Nobody saw it.", "One sentence."], ["It was not seen.", "Another sentence."]


def _chunks(root: Path, folder: Path) -> object:
    from ctxsim_hf import read_chunks

    return read_chunks(folder).to_list()


def _tokenizer(root: Path, folder: Path) -> object:
    from ctxsim_hf.text.fast_tokenizer import open_tokenizer

    return open_tokenizer(folder)(FIRST)["input_ids"]


def _context_model(root: Path, folder: Path) -> object:
    from ctxsim_hf.context_models.registry import describe_context_model, load_context_model
    from ctxsim_hf.text.fast_tokenizer import open_tokenizer

    model = load_context_model(folder).model  # type: ignore[attr-defined]
    weights = {name: tensor.float().numpy().tobytes() for name, tensor in model.state_dict().items()}
    return describe_context_model(folder), weights, open_tokenizer(folder)(FIRST)["input_ids"]


def _vectors(root: Path, folder: Path) -> object:
    from ctxsim_hf.surrogate.teacher_data import VectorFolder
    from ctxsim_hf.text.fast_tokenizer import open_tokenizer

    found = VectorFolder.find(str(folder))
    found.describe()
    data = found.open(open_tokenizer(root / "tokenizer"), "as it is")
    return data.train.labels.tobytes(), data.validation.labels.tobytes(), data.tfidf.tobytes()


def _origin(root: Path, folder: Path) -> object:
    return command(("similarity", "--origin", folder, *SETTINGS, FIRST[0], SECOND[0], "--explain"))()


def _grown(root: Path, folder: Path) -> object:
    """Compare by every signal, and by the weights that were chosen."""
    words = ("similarity", "--origin", folder, *SETTINGS, FIRST[0], SECOND[0])
    return command((*words, *EVERY_SIGNAL, "--explain"))(), command((*words, "--explain"))()


def _pairs(root: Path, folder: Path) -> object:
    from ctxsim_hf.surrogate.pair_data import PairFolder
    from ctxsim_hf.text.fast_tokenizer import open_tokenizer

    data = PairFolder.find(str(folder)).open(open_tokenizer(root / "tokenizer"), "as it is")
    arrays = [value for rows in (data.train, data.validation) for value in vars(rows).values()]
    return [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]


def _surrogate(root: Path, folder: Path) -> object:
    said = command(("similarity", "--surrogate", folder, FIRST[0], SECOND[0]))()
    command(("card", folder))()
    return said, (folder / "README.md").read_text()


def _onnx(root: Path, folder: Path) -> object:
    from ctxsim_hf import SentenceEncoder

    return SentenceEncoder.from_pretrained(folder).similarity(FIRST, SECOND).tolist()


def _search(root: Path, folder: Path, added: str = "more.txt") -> object:
    """Search, and add something: no damage may be covered up."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        copied = Path(shutil.copytree(folder, Path(place, "search")))
        found = command(("search", "--index", copied, FIRST[0]))()
        more = command(("search", "--index", copied, "--add", root / added, FIRST[0]))()
        return found, more.replace(place, "")


def _documents(root: Path, folder: Path) -> object:
    return _search(root, folder, "later.jsonl")


def _by_adapt(root: Path, folder: Path) -> object:
    """The same command once more: it repeats its verdict."""
    return command(commands(root)["adapt"](folder))()


def _cache(root: Path, folder: Path) -> object:
    """The cache of context sets; whatever is in it, similarities stay the same."""
    two = (root / "lines.txt").read_text().splitlines()[:2]
    words = ("similarity", *SETTINGS, "--cache", folder, *two, "--origin")
    return command((*words, root / "origin"))(), command((*words, root / "grown", *EVERY_SIGNAL))()


def _hugging_face_cache(root: Path, folder: Path) -> object:
    """What is kept between stages, such as tokens; it is made again where it is damaged."""
    from ctxsim_hf.text.tokenized import ARRAYS, tokenize_chunks

    tokens = tokenize_chunks(root / "chunks", root / "tokenizer", "train")
    return _pairs(root, root / "pairs"), [getattr(tokens, name).tobytes() for name in ARRAYS]


def _checkpoint(root: Path, folder: Path) -> object:
    """An interrupted training; what is not refused ends with the weights of one that was not interrupted."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        shutil.copytree(folder, Path(place, folder.name))
        output = Path(place, folder.name.removesuffix(".ctxsim-partial"))
        command(commands(root)["train discriminator"](output))()
        return contents(output) == contents(root / "discriminator")


PROBES: dict[str, Callable[[Path, Path], object]] = {
    "chunks": _chunks,
    "tokenizer": _tokenizer,
    "discriminator": _context_model,
    "generator": _context_model,
    "context-model": _context_model,
    "origin": _origin,
    "grown": _grown,
    "pairs": _pairs,
    "vectors": _vectors,
    "surrogate": _surrogate,
    "static": _surrogate,
    "onnx": _onnx,
    "search": _search,
    "documents": _documents,
    "by-adapt": _by_adapt,
    "cache": _cache,
    "home/ctxsim": _hugging_face_cache,
    "resumed.ctxsim-partial": _checkpoint,
}
