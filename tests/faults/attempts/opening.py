"""Damaged folders without digests, such as those of other people, and damaged records: one line each."""

import json

from faults.attempts.attempt import LINE, NOT_TRIED, TRACEBACK, Place, attempt, cut, without_places
from faults.command_lines import commands


def _partial(place: Place, *more: object) -> str:
    """Go on with a run whose unfinished stage.json is damaged."""
    partial = place.copy("resumed.ctxsim-partial")
    (partial / "output/stage.json").write_text('{"command": [')
    return place.run(*commands(place.root)["train discriminator"](place.here / "resumed"), *more)


attempt(LINE, "an unfinished folder whose stage.json is damaged", TRACEBACK, refused="its stage.json is damaged")(
    _partial
)
attempt(LINE, "the same with `--overwrite`", TRACEBACK, answer="is finished")(
    lambda place: _partial(place, "--overwrite")
)


@attempt(LINE, "`adapt` into a folder whose adapt.json is damaged", TRACEBACK, refused="adapt.json' is damaged")
def _adapt_json(place: Place) -> str:
    out = place.here / "out"
    out.mkdir()
    (out / "adapt.json").write_text('{"corpus": ')
    return place.run("adapt", "--corpus", place.root / "texts.jsonl", "--minutes", 0.02, "--output", out)


def _without_record(place: Place, kind: str, name: str, content: bytes | None) -> str:
    """Damage a file of a folder that has no stage.json, such as one of somebody else."""
    folder = place.copy(kind)
    (folder / "stage.json").unlink(missing_ok=True)
    cut(folder / name) if content is None else (folder / name).write_bytes(content)
    flag = "--surrogate" if kind in ("surrogate", "onnx") else "--index"
    verb = ("similarity", flag, folder, "a", "b") if flag == "--surrogate" else ("search", flag, folder, "a")
    return place.run(*verb)


for kind, name, content in (
    ("surrogate", "config.json", None),
    ("surrogate", "config.json", b'{"model_type": 5}'),
    ("surrogate", "config.json", b"[]"),
    ("surrogate", "tokenizer.json", None),
    ("surrogate", "tokenizer_config.json", b"[1]"),
    ("surrogate", "model.safetensors", None),
    ("surrogate", "modules.json", b'{"type": 1}'),
    ("surrogate", "sentence_bert_config.json", b"[]"),
    ("surrogate", "1_Pooling/config.json", b"5"),
    ("onnx", "model.onnx", None),
    ("onnx", "tokenizer.json", None),
    ("onnx", "onnx_surrogate.json", b"[]"),
    ("search", "index.json", b"[]"),
    ("search", "index.json", b'{"rows": "x"}'),
):
    what = "cut" if content is None else f"`{content.decode()}`"
    attempt(LINE, f"{kind} without stage.json, `{name}` {what}", TRACEBACK, refused=".")(
        lambda place, kind=kind, name=name, content=content: _without_record(place, kind, name, content)
    )


def _cut_weights(place: Place, kind: str, line: str) -> str:
    """Name a folder without stage.json, whose weights are cut in half, where a command opens a model."""
    folder = place.copy(kind)
    (folder / "stage.json").unlink(missing_ok=True)
    cut(folder / "model.safetensors")
    return place.run(*(word.replace("MODEL", str(folder)) for word in place.words(line)))


INDEX = "index --chunks $R/chunks --output $H/out"
PAIRS = "train surrogate --pairs $R/pairs --tokenizer $R/tokenizer --output $H/out"
FREE = "--label-free --chunks $R/chunks --limit 20"
for kind, line in (
    ("surrogate", f"{PAIRS} --init MODEL --max-steps 1"),
    ("generator", f"{PAIRS} --token-embeddings MODEL --preset tiny --max-steps 1"),
    ("generator", f"{INDEX} --generator MODEL"),
    ("discriminator", f"{INDEX} --generator $R/generator --discriminator MODEL"),
    ("language-model", f"{INDEX} --context-model MODEL"),
    ("surrogate", f"{INDEX} --generator $R/generator --encoder MODEL"),
    ("surrogate", f"evaluate surrogate:MODEL {FREE}"),
    ("surrogate", f"evaluate st:MODEL {FREE}"),
    ("surrogate", f"evaluate bertscore:MODEL {FREE}"),
    ("surrogate", "duplicates --surrogate MODEL --input $R/lines.txt"),
):
    shown = without_places(line.replace(f" {FREE}", " ..."))
    attempt(
        LINE,
        f"`{shown}`, a {kind} without stage.json whose weights are cut",
        NOT_TRIED,
        refused="^ctxsim .*expected a",
    )(lambda place, kind=kind, line=line: _cut_weights(place, kind, line))


def _wrong_types(place: Place, **values: object) -> str:
    folder = place.copy("chunks")
    record = {k: v for k, v in json.loads((folder / "stage.json").read_text()).items() if k != "xxh3_128"}
    (folder / "stage.json").write_text(json.dumps(record | values))
    return place.run("contexts", "--chunks", folder)


for values in ({"files": []}, {"files": {"a": 5}}, {"arguments": 3}, {"command": None}, {"counts": 7}):
    attempt(LINE, f"stage.json with `{json.dumps(values)}`", TRACEBACK, refused="stage.json' is damaged|made by")(
        lambda place, values=values: _wrong_types(place, **values)
    )


@attempt(LINE, "a cached `.npy` that is cut", TRACEBACK, answer="the same")
def _cached(place: Place) -> str:
    from faults.probes import _hugging_face_cache

    before = _hugging_face_cache(place.root, place.root)
    kept = {path: path.read_bytes() for path in (place.root / "home/ctxsim").rglob("*.npy")}
    try:
        for path in kept:
            cut(path)
        return "the same" if _hugging_face_cache(place.root, place.root) == before else "another"
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
