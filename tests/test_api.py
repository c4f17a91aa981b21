"""The stages as functions: the folders of the commands, their defaults, and plain errors."""

import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from planted import PlantedCorpus

import ctxsim_hf
from ctxsim_hf import api
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.verbs import VERBS

Run = Callable[..., tuple[int, str, str]]
VERBS_OF = {
    "chunk": ["chunk"],
    "train_tokenizer": ["train-tokenizer"],
    "train_context_model": ["train discriminator", "train generator", "train context-model"],
    "build_index": ["index"],
    "grow_index": ["index"],
    "harvest": ["harvest"],
    "harvest_vectors": ["harvest-vectors"],
    "train_surrogate": ["train surrogate"],
    "find_duplicates": ["duplicates"],
    "cluster": ["cluster"],
    "adapt": ["adapt"],
}


@pytest.mark.parametrize("name", VERBS_OF)
def test_named_options_are_fields_and_documented(name: str) -> None:
    function = getattr(ctxsim_hf, name)
    assert function is getattr(api, name)
    parameters = inspect.signature(function).parameters
    named = set(parameters) - {"options", "kind", "executor"}
    assert named <= {field.name for verb in VERBS_OF[name] for field in fields(VERBS[verb].arguments_class)}
    for parameter in parameters.values():
        assert f"        {'**' * (parameter.name == 'options')}{parameter.name}: " in function.__doc__
        assert parameter.default in (inspect.Parameter.empty, None), "the dataclass alone has defaults"


def test_chunks_by_function_and_by_command_are_the_same_bytes(ctxsim: Run, tmp_path: Path) -> None:
    PlantedCorpus().write(tmp_path / "texts.jsonl", documents=40)
    (tmp_path / "more.txt").write_text("One sentence is here. Another one follows it. A third one ends it.")
    corpora = [tmp_path / "texts.jsonl", tmp_path / "more.txt"]
    counts = ctxsim_hf.chunk(corpora, output=tmp_path / "by_function", held_out=0, workers=None)
    assert ctxsim("chunk", "--corpus", *corpora, "--held-out", 0, "--output", tmp_path / "by_command")[0] == 0
    for name in ("stage.json", "data/chunks-00000.parquet"):
        assert (tmp_path / "by_function" / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    assert counts == json.loads((tmp_path / "by_command/stage.json").read_text())["counts"]
    assert counts["documents_read"] == 41
    assert ctxsim_hf.chunk(str(corpora[1]), output=tmp_path / "one")["documents_read"] == 1


def test_from_chunks_to_a_surrogate(planted: Path, tmp_path: Path) -> None:
    chunks, tokenizer, origin, pairs = (tmp_path / name for name in ("chunks", "tokenizer", "origin", "pairs"))
    chunks.symlink_to(planted / "chunks")
    counts = ctxsim_hf.train_tokenizer(chunks, output=tokenizer, vocab_size=800, lowercase=True)
    assert counts == json.loads((planted / "tokenizer/stage.json").read_text())["counts"]
    learned: dict[str, Any] = {"chunks": chunks, "tokenizer": tokenizer, "preset": "tiny"}
    for kind, options in (
        ("discriminator", {"max_steps": 2}),
        ("light", {"closed_form": True}),
        ("seq2seq", {"direction": "all", "max_steps": 1}),
    ):
        counts = ctxsim_hf.train_context_model(kind, **learned, output=tmp_path / kind, **options)
        assert counts["steps"] == options.get("max_steps", 0)
    models = {"discriminator": tmp_path / "discriminator", "generator": tmp_path / "light"}
    counts = ctxsim_hf.build_index(chunks, **models, output=origin)
    assert counts["contexts"] > 0
    ctxsim_hf.harvest(origin, pairs=1000, mode="group", at_most=True, num_contexts=8, screen_chunks=40, output=pairs)
    trained = ctxsim_hf.train_surrogate(
        pairs, tokenizer=tokenizer, preset="tiny", max_steps=3, output=tmp_path / "surrogate"
    )
    assert trained["steps"] == 3
    assert ctxsim_hf.SentenceEncoder.from_pretrained(tmp_path / "surrogate").encode(["Nosidi ranusi."]).shape[0] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: api.chunk("a", output=out, held_owt=0.1), "'held_owt' is not an option; did you mean held_out?"),
        (lambda out: api.chunk("a", output=out, zzz=1), "'zzz' is not an option; expected one of output, "),
        (lambda out: api.chunk("a", output=out, held_out=2), "must be at least 0 and below 1, got 2.0"),
        (lambda out: api.chunk("a", output=out, workers="2"), "'workers' must be of type int, got '2'"),
        (lambda out: api.chunk("a", output=out, workers=1.5), "'workers' must be of type int, got 1.5"),
        (lambda out: api.train_context_model("lite", chunks="a", tokenizer="b", output=out), "unknown kind 'lite'"),
        (lambda out: api.train_context_model("light", chunks="a", output=out), "--tokenizer is needed"),
        (lambda out: api.train_context_model("causal", chunks="a", output=out), "expected a value for 'init'"),
        (
            lambda out: api.train_context_model("causal", chunks="a", init="b", tokenizer="c", output=out),
            "'tokenizer' is not an option",
        ),
        (lambda out: api.build_index(None, output=out), "expected --chunks, a folder made by ctxsim chunk"),  # type: ignore
        (lambda out: api.adapt("a", output=out, minutes=0), "--minutes must be above 0"),
    ],
)
def test_what_is_refused(tmp_path: Path, call: Callable[[Path], object], message: str) -> None:
    with pytest.raises(UserError, match=None) as raised:
        call(tmp_path / "out")
    assert message in str(raised.value)


def test_harvest_stays_a_function_when_its_room_is_imported() -> None:
    import ctxsim_hf.harvest.harvesting

    assert inspect.isfunction(ctxsim_hf.harvest)
