"""`ctxsim harvest-vectors` and `train surrogate --objective teacher`: vectors give the origin's scores, a surrogate
learns them, and both end with the same bytes whatever stopped them."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from small_harvest import contents
from terminal import Terminal
from tiny_language_model import index_tiny_llama

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.harvest import vector_blocks
from ctxsim_hf.harvest.nearest import nearest
from ctxsim_hf.harvest.teacher_vectors import TeacherVectors
from ctxsim_hf.harvest.vector_blocks import vector_split_of
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.surrogate.labels import LabelMap
from ctxsim_hf.surrogate.teacher_data import TeacherCollator, VectorFolder
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.marks import Marks
from ctxsim_hf.train import loop

Run = Callable[..., tuple[int, str, str]]
STEPS = ("--max-steps", 60, "--learning-rate", 3e-3, "--log-every", 5, "--checkpoint-every", 20, "--eval-every", 20)


@pytest.fixture(scope="module")
def origin(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An origin of a language model, whose signals are cloze and words."""
    return index_tiny_llama(planted / "chunks", tmp_path_factory.mktemp("teacher"))


def vector_words(origin: Path, output: Path) -> list[str]:
    sizes = ["--sentences", 200, "--sentences-per-file", 60, "--max-tokens", 200]
    return [str(word) for word in ["harvest-vectors", "--origin", origin, "--output", output, *sizes]]


@pytest.fixture(scope="module")
def vectors(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ctxsim_hf.cli import main

    output = tmp_path_factory.mktemp("vectors") / "vectors"
    assert main(vector_words(origin, output)) == 0
    return output


def test_no_block_computes_sparse_vectors(
    ctxsim: Run, origin: Path, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed once for each split, when the blocks are merged."""
    asked, compute = [], LetterCosine.vectors

    def vectors_of(signal: LetterCosine, sentences: Sequence[str]) -> csr_array:
        asked.append(len(sentences))
        return compute(signal, sentences)

    monkeypatch.setattr(LetterCosine, "vectors", vectors_of)
    assert ctxsim(*vector_words(origin, tmp_path / "out"))[0] == 0
    assert asked[-2:] == list(read_counts(tmp_path / "out")["sentences"].values()) == [200, 20]
    assert 60 not in asked, "the sentences of a block"
    assert contents(tmp_path / "out") == contents(vectors)


def test_what_takes_long_shows_a_bar_from_the_beginning(
    origin: Path, vectors: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxsim_hf.cli import main

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(vector_words(origin, tmp_path / "vectors")) == 0
    assert main(train_words(vectors, tmp_path / "out", "--init", folder, "--max-sentence-tokens", 38)) == 0
    shown = list(dict.fromkeys(line.split(":")[0] for line in terminal.lines if "%|" in line))
    assert [name for name in shown if name in ("vectors", "merge", "neighbours", "evaluate", "train")] == [
        *("vectors", "merge", "neighbours"),
        *("evaluate", "train"),  # the start is evaluated first
    ]


def train_words(vectors: Path, output: Path, *flags: object) -> list[str]:
    fixed = ["train", "surrogate", "--objective", "teacher", "--vectors", vectors, "--output", output]
    return [str(word) for word in [*fixed, "--tokens-per-batch", 800, "--keep", "last", *STEPS, *flags]]


@pytest.fixture(scope="module")
def trained(vectors: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ctxsim_hf.cli import main

    output = tmp_path_factory.mktemp("trained") / "surrogate"
    assert main(train_words(vectors, output, "--init", folder, "--max-sentence-tokens", 38)) == 0
    return output


def test_dot_products_are_the_origins_similarities(origin: Path, vectors: Path) -> None:
    teacher = OriginSimilarity.from_pretrained(origin, cloze_neighbours=0)
    assert set(teacher.signals) == {"cloze", "words"}
    found = TeacherVectors.load(vectors, "train")
    assert len(found.sentences) == 200 == len(set(found.sentences))
    rows = np.arange(6)
    first, second = (side.ravel() for side in np.meshgrid(rows, rows))
    expected = teacher.similarity(*([found.sentences[row] for row in side] for side in (first, second)))
    np.testing.assert_allclose(found.similarity(rows)[first, second], expected, atol=1e-4)
    np.testing.assert_allclose(found.pair_similarity(np.stack([first, second], axis=1)), expected, atol=1e-4)


def test_neighbours_are_the_nearest(vectors: Path) -> None:
    found = TeacherVectors.load(vectors, "train")
    similarity = found.similarity(np.arange(200))
    np.fill_diagonal(similarity, -2)
    best = np.sort(similarity, axis=1)[:, ::-1][:, :8]
    chosen = np.take_along_axis(similarity, found.neighbours, axis=1)
    assert (np.abs(chosen - best) < 1e-5).mean() > 0.95 and (np.diff(chosen, axis=1) <= 1e-6).all()


def test_neighbours_without_a_dense_or_a_sparse_part() -> None:
    points = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0].astype(np.float32)
    points[1] = points[0]
    nothing = np.zeros((30, 0), np.float32)
    assert nearest(points, csr_array(nothing), 3)[0, 0] == 1
    assert nearest(nothing, csr_array(points), 3)[1, 0] == 0


def test_splits_share_no_sentence_and_agree_with_those_of_pairs(vectors: Path) -> None:
    train, validation = (set(TeacherVectors.load(vectors, split).sentences) for split in ("train", "validation"))
    assert train and validation and not train & validation
    keys = np.arange(1000, dtype=np.uint64)
    places = vector_split_of(keys)
    assert (places[keys % 100 == 1] == 1).all() and (places[keys % 100 == 0] == 2).all()


def test_killed_and_run_again_it_leaves_the_same_bytes(
    ctxsim: Run, origin: Path, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    write = vector_blocks.write_dense

    def write_and_stop(*arguments: object) -> None:
        if made:
            raise KeyboardInterrupt
        made.append(write(*arguments))  # type: ignore[arg-type, func-returns-value]

    with monkeypatch.context() as patch:
        patch.setattr(vector_blocks, "write_dense", write_and_stop)
        assert ctxsim(*vector_words(origin, tmp_path / "out"))[0] == 130
    assert ctxsim(*vector_words(origin, tmp_path / "out"))[0] == 0
    assert contents(tmp_path / "out") == contents(vectors)


def test_a_signal_without_vectors_is_named(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    code, _, err = ctxsim(*vector_words(planted / "origin", tmp_path / "out"))
    assert code == 2 and "the signal 'contexts' compares pairs and has no vectors" in err


def test_a_batch_is_every_pair_of_seeds_and_their_neighbours(planted: Path, vectors: Path) -> None:
    tokenizer = open_tokenizer(planted / "tokenizer")
    data = VectorFolder(vectors).open(tokenizer, "")
    collator = TeacherCollator(data.train, 40, Marks.of(tokenizer), data.vectors)
    batches = collator.batches(1000, np.random.default_rng(0))
    assert set(np.concatenate(batches)) == set(range(200))
    assert all(collator.lengths(batch).sum() <= 1000 for batch in batches)
    tensors = collator(batches[0])
    size = len(batches[0])
    assert tensors["input_ids"].shape[0] == size and len(tensors["members"]) == size * (size - 1) // 2
    similarity = np.sort(data.vectors.similarity(batches[0])[np.triu_indices(size, 1)])
    np.testing.assert_allclose(np.sort(tensors["labels"].numpy()), similarity, atol=1e-6)


def test_labels_on_the_scale_of_the_start() -> None:
    rng = np.random.default_rng(0)
    labels, cosines = rng.normal(0.1, 0.05, 1000), rng.normal(0.3, 0.1, 1000)
    found = LabelMap.matching(labels, cosines)
    assert found.target(labels).mean() == pytest.approx(cosines.mean(), abs=1e-6)
    assert found.target(labels).std() == pytest.approx(cosines.std(), abs=1e-6)
    np.testing.assert_allclose(found.label(found.target(labels)), labels, atol=1e-6)


def test_it_learns_what_the_vectors_say(trained: Path) -> None:
    figures = json.loads((trained / "metrics.json").read_text())
    assert figures["spearman"] > figures["spearman_start"] + 0.1
    assert json.loads((trained / "stage.json").read_text())["arguments"]["labels"] == "start"
    assert SentenceEncoder.from_pretrained(trained).similarity(["a"], ["a"]) == pytest.approx(1)


def test_interrupted_and_resumed_it_ends_with_the_same_bytes(
    ctxsim: Run,
    vectors: Path,
    folder: Path,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def save_and_stop(*arguments: object) -> None:
        save(*arguments)
        raise KeyboardInterrupt

    save = loop.save_checkpoint
    command = train_words(vectors, tmp_path / "out", "--init", folder, "--max-sentence-tokens", 38)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", save_and_stop)
        assert ctxsim(*command)[0] == 130
    assert ctxsim(*command)[0] == 0
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json"):
        assert (tmp_path / "out" / name).read_bytes() == (trained / name).read_bytes(), name


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--objective", "teacher"], "--objective teacher needs --vectors"),
        (["--objective", "pairs", "--pairs", "p", "--vectors", "v"], "--objective pairs does not read vectors"),
        (["--objective", "teacher", "--vectors", "v", "--labels", "start"], "--labels start needs a start"),
    ],
)
def test_bad_input_is_one_line(ctxsim: Run, tmp_path: Path, flags: list[str], message: str) -> None:
    code, _, err = ctxsim("train", "surrogate", "--output", str(tmp_path / "out"), "--tokenizer", "t", *flags)
    assert code == 2 and message in err
