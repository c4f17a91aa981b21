"""Damage and attacks on folders that came later: origins that grew, weights, documents, adapted folders."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_harvest import contents

from faults.attempts.attempt import AS_NOW, LATER, TRACEBACK, Place, attempt, flip
from faults.command_lines import SETTINGS, commands


def reseal(path: Path, **changes: Any) -> None:
    """Change a JSON file as somebody would who knows how it is sealed."""
    from ctxsim_hf.runtime.files import seal, write_json

    about = {name: value for name, value in json.loads(path.read_text()).items() if name != "xxh3_128"}
    write_json(path, seal(about | changes))


def _grow(place: Place, change: Callable[[Path], None], *flags: object) -> str:
    """Change an origin that grew, and then let it grow; where that is refused, nothing may be touched."""
    origin = place.copy("grown")
    change(origin)
    before = contents(origin)
    words = flags or ("--add", "--corpus", place.root / "later-long.jsonl")
    try:
        said = place.run("index", "--origin", origin, *words)
    except Exception:
        if contents(origin) != before:
            raise RuntimeError("the origin was changed") from None
        raise
    kept = (path.relative_to(origin).as_posix() for path in origin.rglob("*") if path.is_file())
    mine = sorted(name for name in kept if "mine" in name)
    return f"{said.splitlines()[-1]}; there: {' '.join(mine)}"


def _put(name: str) -> Callable[[Path], None]:
    def change(origin: Path) -> None:
        (origin / name).parent.mkdir(exist_ok=True)
        (origin / name).write_text("mine")

    return change


def _link(origin: Path) -> None:
    (origin.parent / "thesis").mkdir()
    (origin.parent / "thesis/chapter.txt").write_text("mine")
    (origin / "segments/0123456789abcdef").symlink_to(origin.parent / "thesis")


for name, before in (("segments/mine/thesis.txt", "deleted it"), ("versions/mine.txt", TRACEBACK)):
    for flags in ((), ("--compact",)):
        verb = flags[0] if flags else "--add"
        attempt(LATER, f"`index {verb}` with a `{name}` of the user", before, answer=f"finished; there: .*{name}")(
            lambda place, name=name, flags=flags: _grow(place, _put(name), *flags)
        )


@attempt(LATER, "`index --compact` with a link in `segments/` to a folder of the user", TRACEBACK, answer="^mine")
def _linked(place: Place) -> str:
    _grow(place, _link, "--compact")
    return (place.here / "thesis/chapter.txt").read_text()


def _segment(origin: Path) -> None:
    flip(min(origin.glob("segments/*/tokens/tokens.npy")))


def _version(origin: Path, segments: list[str]) -> None:
    from ctxsim_hf.runtime.files import describe_file

    record = json.loads((origin / "stage.json").read_text())
    name = f"versions/{record['version']}/version.json"
    (origin / name).write_text(json.dumps({"segments": segments}))
    reseal(origin / "stage.json", files=record["files"] | {name: describe_file(origin / name)})


for what, change, refusal in (
    ("with one flipped bit in a segment", _segment, "tokens.npy' is damaged: its content changed"),
    (
        "whose stage.json names the version `../../thesis`",
        lambda origin: reseal(origin / "stage.json", version="../../thesis"),
        "version.json' is damaged",
    ),
    ("whose stage.json names the version 5", lambda origin: reseal(origin / "stage.json", version=5), "is damaged"),
    (
        "whose version names the segment `../../thesis`",
        lambda origin: _version(origin, ["../../thesis"]),
        "version.json' is damaged .*thesis",
    ),
    (
        "whose version names no segment",
        lambda origin: _version(origin, []),
        "version.json' is damaged",
    ),
):
    before = AS_NOW if change is _segment else TRACEBACK
    attempt(LATER, f"`index --add` to an origin {what}", before, refused=refusal)(
        lambda place, change=change: _grow(place, change)
    )


def _weights(place: Place, content: Callable[[Path], None]) -> str:
    origin = place.copy("grown")
    content(origin / "weights.json")
    return place.run("similarity", "Nobody saw it.", "It was not seen.", "--origin", origin, *SETTINGS)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DEEP = "[" * 100_000 + "]" * 100_000
for what, content, refusal, before in (
    ("a flipped bit", flip, "is damaged", AS_NOW),
    ("deeply nested lists", lambda path: path.write_text(DEEP), "is damaged", TRACEBACK),
    ("`{}`", lambda path: path.write_text("{}"), "is damaged: it has no digest", AS_NOW),
    ("a folder", _as_folder, "is damaged", TRACEBACK),
    ("weights of NaN", lambda path: reseal(path, signals={"words": float("nan")}), "finite number", AS_NOW),
    ("weights of nothing", lambda path: reseal(path, signals={}), "at least one must count", AS_NOW),
    ("a signal `../../thesis`", lambda path: reseal(path, signals={"../../thesis": 1}), "thesis", AS_NOW),
):
    attempt(LATER, f"`similarity --origin` with {what} in weights.json", before, refused=refusal)(
        lambda place, content=content: _weights(place, content)
    )


def _documents(place: Place, change: Callable[[Path], None], *flags: object) -> str:
    index = place.copy("documents")
    for name in ("thesis/000000", "thesis/000002"):
        (place.here / name).mkdir(parents=True)
        (place.here / name / "chapter.txt").write_text("mine")
    change(index / "index.json")
    try:
        return place.run("search", "--index", index, *(flags or ("--add", place.root / "later.jsonl")))
    finally:
        if len(list(place.here.glob("thesis/*/chapter.txt"))) != 2:
            raise RuntimeError("a folder of the user was removed")


for what, change, before in (
    ('`{"kind": "documents"}`', lambda path: path.write_text('{"kind": "documents"}'), TRACEBACK),
    ("data in `../thesis`", lambda path: reseal(path, data="../thesis", added=[]), "looked there"),
    ("the addition `../../thesis`", lambda path: reseal(path, added=["../../thesis"]), "looked there"),
    ("the number 999999 among what is deleted", lambda path: reseal(path, deleted=[999999]), TRACEBACK),
    ("the number -1 among what is deleted", lambda path: reseal(path, deleted=[-1]), "left out the last document"),
    ("what is deleted as text", lambda path: reseal(path, deleted="all"), TRACEBACK),
    ("a number in place of a list of additions", lambda path: reseal(path, added=5), TRACEBACK),
):
    for flags in ((), ("Nobody saw it.",)):
        shown = "`search --add`" if not flags else "`search`"
        attempt(LATER, f"{shown} with {what} in index.json of documents", before, refused="index.json' is damaged")(
            lambda place, change=change, flags=flags: _documents(place, change, *flags)
        )


@attempt(
    LATER,
    "`search --add docs.jsonl` in a folder of the user that has `data-0/000000/thesis.txt`",
    "deleted it",
    refused="has data-0 but no index.json",
)
def _data_of_the_user(place: Place) -> str:
    path = place.here / "mine/data-0/000000/thesis.txt"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    words = ("search", "--index", place.here / "mine", "--surrogate", place.root / "surrogate")
    try:
        return place.run(*words, "--add", place.root / "later.jsonl")
    finally:
        if path.read_text() != "mine":
            raise RuntimeError("it was changed")


@attempt(
    LATER, "`search --compact` after one that was killed before it removed the old data", "kept them", answer="same"
)
def _old_data(place: Place) -> str:
    compact = commands(place.root)["search --compact documents"]
    place.run(*compact(place.copy("documents", "index")))
    before = contents(place.here / "index")
    shutil.copytree(place.root / "documents/data-0", place.here / "index/data-0")
    place.run(*compact(place.here / "index"))
    return "same" if contents(place.here / "index") == before else "another"


def _nan(place: Place, line: str, kind: str) -> str:
    """Let the weights of a folder without stage.json be no numbers."""
    from safetensors.numpy import load_file, save_file

    folder = place.copy(kind)
    (folder / "stage.json").unlink(missing_ok=True)
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: array * float("nan") for name, array in weights.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    return place.run(*(word.replace("MODEL", str(folder)) for word in place.words(line)))


for line in (
    "similarity --surrogate MODEL a b",
    "encode --surrogate MODEL --input $R/lines.txt --output $H/out.npy",
    "search --surrogate MODEL --index $H/out --add $R/lines.txt",
    "duplicates --surrogate MODEL --input $R/lines.txt",
    "cluster --surrogate MODEL --input $R/lines.txt",
    "evaluate surrogate:MODEL --label-free --chunks $R/chunks --limit 20",
    "index --chunks $R/chunks --output $H/out --context-model MODEL",
):
    kind = "language-model" if "context-model" in line else "surrogate"
    attempt(
        LATER,
        f"`{line.replace('$R/', '').replace('$H/', '')}`, a {kind} whose weights are NaN",
        "nan, or nothing found",
        refused="gives vectors that are no numbers",
    )(lambda place, line=line, kind=kind: _nan(place, line, kind))


def _again(place: Place, change: Callable[[Path], None]) -> str:
    """Change a folder made by adapt, and run the same command again."""
    out = place.copy("by-adapt")
    change(out)
    said = place.run(*commands(place.root)["adapt"](out))
    return re.sub(r"\s+", " ", said)[-60:]


SURROGATE = "ctxsim/surrogate-tiny"
for what, change, refusal, before in (
    ("a list in adapt.json", lambda out: (out / "adapt.json").write_text("[1]"), "adapt.json' is damaged", AS_NOW),
    (
        '`{"x": 1}` in adapt.json',
        lambda out: (out / "adapt.json").write_text('{"x": 1}'),
        "adapt.json' is damaged",
        TRACEBACK,
    ),
    (
        "a flipped bit in results.md",
        lambda out: flip(out / SURROGATE / "results.md"),
        "results.md' is damaged",
        "printed it",
    ),
    (
        "a flipped bit in results.json",
        lambda out: flip(out / SURROGATE / "results.json"),
        "results.json' is damaged",
        AS_NOW,
    ),
    (
        "a flipped bit in the chunks",
        lambda out: flip(min(out.glob("chunks/data/*.parquet"))),
        "is damaged: its content",
        AS_NOW,
    ),
    (
        "a flipped bit in the surrogate",
        lambda out: flip(out / SURROGATE / "model.safetensors"),
        "is damaged: its content",
        AS_NOW,
    ),
):
    attempt(LATER, f"`adapt` once more with {what}", before, refused=refusal)(
        lambda place, change=change: _again(place, change)
    )


@attempt(
    LATER,
    "`adapt` with one more corpus, after somebody edited the origin's card",
    "removed it",
    refused="README.md' says something else than `ctxsim card` does; move it away",
)
def _edited_card(place: Place) -> str:
    out = place.copy("by-adapt")
    card = out / "ctxsim/origin-tiny/README.md"
    card.write_text(card.read_text() + "Written by hand.\n")
    words = list(commands(place.root)["adapt"](out))
    # adapt.json holds absolute paths, so the corpus is the one of before.
    words.insert(words.index("--corpus") + 2, place.root / "more.jsonl")
    try:
        return place.run(*words)
    finally:
        if "Written by hand." not in card.read_text():
            raise RuntimeError("the card was removed")


@attempt(LATER, "the page's search with an index of other sentences", TRACEBACK, refused="other sentences")
def _page_of_others(place: Place) -> str:
    from ctxsim_hf.page.content import open_documents

    found = open_documents(str(place.root / "chunks"), str(place.root / "surrogate"), place.copy("search"))
    return found.search("Nobody saw it.")
