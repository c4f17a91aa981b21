"""The door for context models: one from outside the package is indexed on two processes and finds paraphrases."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import planted_oracle
import pytest
from planted import PlantedCorpus
from planted_oracle import MODEL_TYPE, PlantedOracle, save_oracle

from ctxsim_hf.context_models import registry
from ctxsim_hf.context_models.registry import context_model_class, register_context_model
from ctxsim_hf.origin import segment_build
from ctxsim_hf.origin.context_arrays import ContextArrays
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]

IN_BLOCKS = """
import sys
from functools import partial
from ctxsim_hf.cli import main
from ctxsim_hf.origin import segment_build
from ctxsim_hf.origin.context_arrays import ContextArrays
if __name__ == "__main__":
    segment_build.ContextArrays = partial(ContextArrays, chunks_per_block=100)
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def registered() -> Iterator[None]:
    register_context_model(MODEL_TYPE, PlantedOracle)
    yield
    del registry._registered[MODEL_TYPE]


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    return save_oracle(PlantedCorpus(), tmp_path / "oracle")


def index_words(planted: Path, oracle: Path, *more: object) -> list[str]:
    words = ("index", "--chunks", planted / "chunks", "--context-model", oracle, "--workers", 2, *more)
    return [str(word) for word in words]


def check_made_elsewhere(origin: OriginSimilarity) -> None:
    """What the index keeps was made by other processes than this one, for every context."""
    kept = origin.index.stored[MODEL_TYPE]
    assert len(kept["meanings"]) == len(kept["process"]) == origin.index.num_contexts
    assert os.getpid() not in kept["process"] and (kept["process"] > 0).all()


def check_paraphrases(origin: OriginSimilarity) -> None:
    probes = PlantedCorpus().probes(50)
    sentences = [probe.sentence for probe in probes]
    near = origin.similarity(sentences, [probe.paraphrase for probe in probes])
    far = origin.similarity(sentences, [probe.near_copy for probe in probes])
    assert (near > far).all()


def test_registered_in_this_process(
    ctxsim: Run, planted: Path, oracle: Path, tmp_path: Path, registered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_build, "ContextArrays", partial(ContextArrays, chunks_per_block=100))
    folder = tmp_path / "origin"
    words = index_words(planted, oracle, "--tokenizer", planted / "tokenizer", "--output", folder)
    code, _, err = ctxsim(*words)
    assert code == 0, err
    code, _, err = ctxsim(*words, "--tokenizer", planted / "generator")
    assert code == 0, "the same tokenizer from another place"
    assert [path.name for path in (folder / "context_models" / MODEL_TYPE).iterdir()] == ["config.json"]
    origin = OriginSimilarity.from_pretrained(folder, num_contexts=20)
    check_made_elsewhere(origin)
    check_paraphrases(origin)
    assert origin.settings.weights.active == {"left": 1, "right": 1}
    assert f"|context_models:{MODEL_TYPE}=" in origin.signature
    contexts = np.array([1, 2, 3, 11, 12, 500])
    texts = [context for context, _ in origin.index.context_texts(contexts)]
    sentences, scorer = origin.index.texts([4, 40]), origin.contexts.scorer
    stored = scorer.score(sentences, origin.index.contexts(contexts))
    np.testing.assert_array_equal(stored, scorer.score(sentences, texts))
    shown = origin.explain(sentences[0], sentences[0])
    assert list(shown.both[0].terms) == ["left", "right"]


def test_beside_one_of_ours(ctxsim: Run, planted: Path, oracle: Path, tmp_path: Path, registered: None) -> None:
    """Ours ranks, the other judges; the index counts by the tokenizer of ours."""
    words = index_words(planted, oracle, "--discriminator", planted / "discriminator", "--output", tmp_path / "origin")
    assert ctxsim(*words)[0] == 0
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin", num_contexts=20)
    assert list(origin.models) == ["discriminator", MODEL_TYPE] and sorted(origin.index.stored) == sorted(
        origin.models
    )
    check_paraphrases(origin)


def test_found_by_an_entry_point(planted: Path, oracle: Path, tmp_path: Path) -> None:
    """In a fresh process, which imports nothing of it, and in its two workers."""
    about = tmp_path / "site" / "planted_oracle-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-oracle\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        f"[ctxsim_hf.context_models]\n{MODEL_TYPE} = planted_oracle:{PlantedOracle.__name__}\n"
    )
    script = tmp_path / "in_blocks.py"
    script.write_text(IN_BLOCKS)
    places = [str(tmp_path / "site"), str(Path(planted_oracle.__file__).parent), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}

    def run(*words: object) -> str:
        done = subprocess.run([sys.executable, *map(str, words)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder = tmp_path / "origin"
    run(script, *index_words(planted, oracle, "--tokenizer", planted / "tokenizer", "--output", folder))
    probe = PlantedCorpus().probes(1)[0]
    near, far = (
        float(run("-m", "ctxsim_hf", "similarity", "--origin", folder, "--num-contexts", 20, probe.sentence, other))
        for other in (probe.paraphrase, probe.near_copy)
    )
    assert near > far
    with pytest.raises(UserError, match=f"no context model is known for the model type '{MODEL_TYPE}'"):
        OriginSimilarity.from_pretrained(folder)  # this process has no such entry point
    register_context_model(MODEL_TYPE, PlantedOracle)
    try:
        check_made_elsewhere(OriginSimilarity.from_pretrained(folder))
    finally:
        del registry._registered[MODEL_TYPE]


def test_refused(ctxsim: Run, planted: Path, oracle: Path, tmp_path: Path, registered: None) -> None:
    words = index_words(planted, oracle, "--output", tmp_path / "origin")
    code, _, err = ctxsim(*words)
    assert code == 2 and "none of the context models has a fast tokenizer for the index; name one with --tok" in err
    code, _, err = ctxsim(*words, "--generator", planted / "generator")
    assert code == 2 and "expected a file tokenizer.json in" in ctxsim(*words, "--tokenizer", oracle)[2]
    assert f"two context models answer the term 'left': light_generator and {MODEL_TYPE}" in err
    with pytest.raises(UserError, match="'ctxsim_generator' is already used by ctxsim_hf; choose another"):
        register_context_model("ctxsim_generator", PlantedOracle)
    with pytest.raises(UserError, match=r"no context model is known for the model type 'vit'; .*ctxsim_light"):
        context_model_class("vit")
