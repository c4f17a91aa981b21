"""The sentence encoder against sentence-transformers on the same folder, and against itself run otherwise."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_surrogate import MAX_TOKENS, mixed_sentences, save_tiny
from tokenizers import Tokenizer
from transformers import BartConfig

from ctxsim_hf import CrossSurrogateModel, SentenceEncoder, SurrogateModel
from ctxsim_hf.encoder import sentence_encoder as module
from ctxsim_hf.encoder.torch_surrogate import TorchSurrogate
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]
STRANGE = ["", "   ", "\U0001f600\U0001f680", "nul\0inside", "x" * 20_000, "<s> <pad> </s>", "e\u0301"]


@pytest.fixture(scope="module")
def peer(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


class Recorder:
    """A surrogate that remembers what it was given: all an encoder asks of a model is here."""

    def __init__(self, model: TorchSurrogate) -> None:
        self.model, self.vector_size, self.tokens_per_batch = model, model.vector_size, model.tokens_per_batch
        self.masks: list[np.ndarray] = []

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        self.masks.append(attention_mask)
        return self.model(input_ids, attention_mask)


@pytest.fixture
def recorder(encoder: SentenceEncoder) -> Recorder:
    return Recorder(encoder.model)  # type: ignore[arg-type]


@pytest.fixture
def recorded(encoder: SentenceEncoder, recorder: Recorder) -> SentenceEncoder:
    return SentenceEncoder(recorder, encoder.tokenizer, encoder.max_tokens)


def test_the_vectors_are_those_of_sentence_transformers(encoder: SentenceEncoder, peer: SentenceTransformer) -> None:
    sentences = [*mixed_sentences(300), *STRANGE]
    vectors = encoder.encode(sentences)
    assert isinstance(vectors, np.ndarray) and vectors.dtype == np.float32 and vectors.shape == (307, 16)
    np.testing.assert_allclose(vectors, peer.encode(sentences), atol=1e-5)
    assert encoder.max_tokens == peer.max_seq_length == MAX_TOKENS
    normalised = encoder.encode(sentences, normalize_embeddings=True, convert_to_tensor=True)
    assert isinstance(normalised, torch.Tensor)
    np.testing.assert_allclose(normalised, peer.encode(sentences, normalize_embeddings=True), atol=1e-5)


def test_a_vector_depends_on_its_sentence_alone(encoder: SentenceEncoder) -> None:
    sentences = mixed_sentences(60)
    together = encoder.encode(sentences)
    for budget in (1, 50, 100_000):  # one at a time, a few, all
        np.testing.assert_allclose(encoder.encode(sentences, tokens_per_batch=budget), together, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(sentences[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_array_equal(encoder.encode(sentences), together)


def test_duplicates_are_encoded_once(encoder: SentenceEncoder, recorded: SentenceEncoder, recorder: Recorder) -> None:
    sentences = mixed_sentences(20)
    repeated = sentences + sentences[::-1] + sentences[:3] * 7
    vectors = recorded.encode(repeated)
    assert sum(len(mask) for mask in recorder.masks) == 20
    alone = dict(zip(sentences, encoder.encode(sentences), strict=True))
    np.testing.assert_array_equal(vectors, [alone[sentence] for sentence in repeated])


def test_batches_keep_to_their_budget_with_little_padding(recorded: SentenceEncoder, recorder: Recorder) -> None:
    recorded.encode(mixed_sentences(2000), tokens_per_batch=500)
    assert max(mask.size for mask in recorder.masks) <= 500
    real, whole = (sum(int(size(mask)) for mask in recorder.masks) for size in (np.sum, np.size))
    assert whole < 1.05 * real
    assert len(recorder.masks) < 1.2 * real / 500


def test_too_long_sentences_are_cut_and_counted(
    encoder: SentenceEncoder, peer: SentenceTransformer, caplog: pytest.LogCaptureFixture
) -> None:
    sentences = [*mixed_sentences(5), "many words " * 50, "other words " * 60, "many words " * 50]
    with caplog.at_level(logging.WARNING, logger=module.__name__):
        encoder.encode(sentences[:5])
        assert not caplog.messages
        vectors = encoder.encode(sentences)
    words = f"3 of 8 sentences have more than {MAX_TOKENS} tokens and were truncated; the first is sentence 5"
    assert caplog.messages == [words]
    np.testing.assert_allclose(vectors, peer.encode(sentences), atol=1e-5)


def test_empty_sentences_have_a_vector(encoder: SentenceEncoder) -> None:
    vectors = np.asarray(encoder.encode(["", "  ", "word"]))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert np.isfinite(vectors).all() and np.abs(vectors[0]).max() > 0
    assert np.asarray(encoder.encode([])).shape == (0, 16)
    assert encoder.similarity([], []).shape == (0,)


def test_similarity(encoder: SentenceEncoder, peer: SentenceTransformer) -> None:
    first, second = mixed_sentences(12)[:6], mixed_sentences(12)[6:]
    first[3] = second[3]
    scores = encoder.similarity(first, second)
    expected = peer.similarity(peer.encode(first), peer.encode(second)).numpy()
    assert scores.dtype == np.float64 and scores.shape == (6,)
    np.testing.assert_allclose(scores, expected.diagonal(), atol=1e-5)
    assert scores[3] == pytest.approx(1)


def test_a_file_equals_memory(encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SENTENCES_PER_PART", 7)
    sentences = mixed_sentences(30)
    taken: list[int] = []

    def stream() -> Iterator[str]:
        for place, sentence in enumerate(sentences):
            taken.append(place)
            yield sentence

    in_memory = encoder.encode(stream())
    mapped = encoder.encode(stream(), output=tmp_path / "vectors.npy")
    assert isinstance(mapped, np.memmap) and taken == [*range(30), *range(30)]
    np.testing.assert_array_equal(mapped, in_memory)
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy", allow_pickle=False), in_memory)
    assert encoder.encode([], output=tmp_path / "none.npy").shape == (0, 16)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.npy", "vectors.npy"]


class Counted(list[str]):
    """Sentences that remember how many were asked for."""

    def __iter__(self) -> Iterator[str]:
        for self.taken, sentence in enumerate(super().__iter__(), 1):
            if sentence == "stop":
                raise KeyboardInterrupt
            yield sentence


def test_an_interrupted_file_goes_on(
    encoder: SentenceEncoder, recorder: Recorder, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes in the end, unless the sentences or the settings are others now."""
    monkeypatch.setattr(module, "SENTENCES_PER_PART", 7)
    sentences, output = mixed_sentences(30), tmp_path / "vectors.npy"
    expected = encoder.encode(sentences, output=tmp_path / "whole.npy")
    recorded = SentenceEncoder(recorder, encoder.tokenizer, encoder.max_tokens, module.Source(str(folder), None))

    def interrupt() -> None:
        with pytest.raises(KeyboardInterrupt):
            encoder.encode(Counted([*sentences[:20], "stop"]), output=output)
        assert not output.exists()

    def encoded(sentences: list[str], **options: Any) -> tuple[Any, int]:
        recorder.masks.clear()
        vectors = recorded.encode(sentences, output=output, **options)
        return vectors, sum(map(len, recorder.masks))

    interrupt()
    with (tmp_path / "vectors.npy.ctxsim-partial/output").open("ab") as file:
        file.write(b"half a row")  # as a kill would leave it
    vectors, number = encoded(sentences)
    assert number == 30 - 14
    np.testing.assert_array_equal(vectors, expected)
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vectors.npy", "whole.npy"]
    output.unlink()
    interrupt()
    assert encoded(sentences, normalize_embeddings=True)[1] == 30
    output.unlink()
    interrupt()
    vectors, number = encoded(["another", *sentences[1:]])
    assert number == 30
    np.testing.assert_array_equal(vectors[1:], encoder.encode(["another", *sentences[1:]])[1:])


def test_a_bad_sentence_in_a_file(encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is counted through all parts, also when the run goes on."""
    monkeypatch.setattr(module, "SENTENCES_PER_PART", 7)
    sentences: list[Any] = [*mixed_sentences(20), None]
    for _ in range(2):
        with pytest.raises(UserError, match=r"expected strings, but sentence 20 is None \(NoneType\)"):
            encoder.encode(sentences, output=tmp_path / "vectors.npy")
    assert not (tmp_path / "vectors.npy").exists()


@pytest.mark.slow
def test_two_processes(
    encoder: SentenceEncoder, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sentences = [*mixed_sentences(40), "many words " * 50, ""]
    alone = encoder.encode(sentences, normalize_embeddings=True)
    caplog.clear()
    both = encoder.encode(sentences, normalize_embeddings=True, num_processes=2, output=tmp_path / "vectors.npy")
    np.testing.assert_allclose(both, alone, atol=1e-5)
    assert caplog.messages == [
        "1 of 42 sentences have more than 40 tokens and were truncated; the first is sentence 40"
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.encode("a string"), "expected a list of sentences, got a string"),
        (lambda e: e.encode(["fine", 3.5]), r"expected strings, but sentence 1 is 3.5 \(float\)"),
        (lambda e: e.encode(["\ud83d"]), "sentence 0 holds a lone surrogate"),
        (lambda e: e.encode(["a"], tokens_per_batch=0), "tokens_per_batch must be at least 1, got 0"),
        (lambda e: e.encode(["a"], output="x.npy", convert_to_tensor=True), "leave out convert_to_tensor or output"),
        (lambda e: e.similarity(["a"], ["a", "b"]), "expected two lists of the same length, got 1 and 2"),
        (lambda e: e.similarity(["a"], [None]), "sentence 0 of list 2 is None"),
        (lambda e: e.similarity("a", "b"), "expected two lists of sentences, got a string"),
    ],
)
def test_bad_input(encoder: SentenceEncoder, call: Callable[[SentenceEncoder], Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        call(encoder)


def test_an_encoder_of_a_model_in_memory(encoder: SentenceEncoder, folder: Path) -> None:
    model = TorchSurrogate(SurrogateModel.from_pretrained(folder))
    other = SentenceEncoder(model, encoder.tokenizer, encoder.max_tokens)
    np.testing.assert_array_equal(other.encode(["some words"]), encoder.encode(["some words"]))
    with pytest.raises(UserError, match="num_processes needs an encoder opened by from_pretrained"):
        other.encode(["some words"], num_processes=2)


def test_a_folder_tuned_by_sentence_transformers(peer: SentenceTransformer, folder: Path, tmp_path: Path) -> None:
    """Its limit is in the tokenizer then, and its files have today's spellings."""
    tuned = SentenceTransformer(str(folder), device="cpu")
    tuned.max_seq_length = 12
    tuned.save(str(tmp_path))
    encoder = SentenceEncoder.from_pretrained(tmp_path)
    assert encoder.max_tokens == 12
    np.testing.assert_allclose(encoder.encode(mixed_sentences(20)), tuned.encode(mixed_sentences(20)), atol=1e-5)


def change_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def with_a_bart(folder: Path) -> None:
    BartConfig().save_pretrained(folder)


def with_a_smaller_vocabulary(folder: Path) -> None:
    change_json(folder / "config.json", vocab_size=100)


def with_another_pooling(folder: Path) -> None:
    change_json(folder / "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_lasttoken=True)


def with_two_poolings(folder: Path) -> None:
    change_json(folder / "1_Pooling/config.json", pooling_mode=["mean", "cls"])


def with_a_dense_layer(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))


def with_lowercasing(folder: Path) -> None:
    change_json(folder / "sentence_bert_config.json", do_lower_case=True)


def with_room_for_marks_only(folder: Path) -> None:
    change_json(folder / "sentence_bert_config.json", max_seq_length=2)


def with_more_layers_than_weights(folder: Path) -> None:
    change_json(folder / "config.json", num_hidden_layers=3)


def with_a_cross_surrogate(folder: Path) -> None:
    CrossSurrogateModel.from_pretrained(folder).save_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without_tokenizer, "but it has no tokenizer.json"),
        (with_a_bart, "is not a surrogate: expected an encoder of text such as BERT or RoBERTa, got a bart"),
        (
            with_a_smaller_vocabulary,
            "is not that of the model: it has .* tokens and the pad id 1, the model 100 and 1",
        ),
        (
            with_another_pooling,
            "expected an encoder with mean, cls or max pooling, .*, found .*_mode_lasttoken",
        ),
        (with_two_poolings, r"expected an encoder with mean, cls or max pooling, .*, found .*\['mean', 'cls'\]"),
        (with_a_dense_layer, "found Transformer, Pooling, Dense; open it with sentence-transformers instead"),
        (with_lowercasing, "lowercases sentences with `do_lower_case`"),
        (with_room_for_marks_only, "has room for 2 tokens, and 2 of them are special tokens"),
        (with_more_layers_than_weights, "is incomplete: it lacks 16 weights, e.g. encoder"),
        (with_a_cross_surrogate, "is a cross surrogate, which scores pairs"),
    ],
)
def test_what_is_no_surrogate(folder: Path, tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    shutil.copytree(folder, tmp_path / "changed")
    change(tmp_path / "changed")
    with pytest.raises(UserError, match=words):
        SentenceEncoder.from_pretrained(tmp_path / "changed")


def test_a_surrogate_that_is_not_there() -> None:
    with pytest.raises(UserError, match="'ctxsim/nowhere' is not a local folder and could not be downloaded"):
        SentenceEncoder.from_pretrained("ctxsim/nowhere")


def test_command(ctxsim: Run, encoder: SentenceEncoder, folder: Path, tmp_path: Path) -> None:
    text, output = tmp_path / "sentences.txt", tmp_path / "vectors.npy"
    text.write_bytes("\ufefffirst line\r\n\nthird\x0bline\nlast".encode())
    code, out, err = ctxsim("encode", "--surrogate", folder, "--input", text, "--output", output, "--normalize")
    assert (code, out) == (0, f"wrote 4 vectors of size 16 to {output}\n"), err
    expected = encoder.encode(["first line", "", "third\x0bline", "last"], normalize_embeddings=True)
    np.testing.assert_array_equal(np.load(output), expected)


def test_the_input_is_not_overwritten(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a line\n")
    (tmp_path / "link").symlink_to("lines.txt")
    for output in ("lines.txt", "link"):
        words = ("encode", "--surrogate", folder, "--input", tmp_path / "lines.txt", "--output", tmp_path / output)
        code, _, err = ctxsim(*words)
        assert code == 2 and "is read and would be overwritten" in err and err.count("\n") == 1
    assert (tmp_path / "lines.txt").read_text() == "a line\n"


def test_an_interrupted_file_that_was_damaged_begins_again(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SENTENCES_PER_PART", 7)
    sentences, output = mixed_sentences(30), tmp_path / "vectors.npy"
    expected = encoder.encode(sentences)
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(Counted([*sentences[:20], "stop"]), output=output)
    with (tmp_path / "vectors.npy.ctxsim-partial/output").open("r+b") as file:
        file.seek(200)
        file.write(b"x")
    np.testing.assert_array_equal(encoder.encode(sentences, output=output), expected)


def test_command_errors(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "sentences.txt"
    flags = ("encode", "--surrogate", folder, "--input", text, "--output", tmp_path / "vectors.npy")
    code, _, err = ctxsim(*flags)
    assert code == 2 and f"cannot read {str(text)!r}: No such file" in err and err.count("\n") == 1
    text.write_bytes(b"fine\nna\xefve\n")
    code, _, err = ctxsim(*flags)
    assert code == 2 and "line 2: expected UTF-8" in err
    assert not (tmp_path / "vectors.npy").exists()


def test_a_default_prompt_is_put_before_every_sentence(folder: Path, tmp_path: Path, ctxsim: Run) -> None:
    shutil.copytree(folder, tmp_path / "prompted")
    prompts = {"prompts": {"query": "find: "}, "default_prompt_name": "query"}
    change_json(tmp_path / "prompted/config_sentence_transformers.json", **prompts)
    encoder = SentenceEncoder.from_pretrained(tmp_path / "prompted")
    peer = SentenceTransformer(str(tmp_path / "prompted"), device="cpu")
    sentences = mixed_sentences(6)
    found = encoder.encode(sentences)
    np.testing.assert_allclose(found, peer.encode(sentences), atol=1e-5)
    plain = SentenceEncoder.from_pretrained(folder)
    np.testing.assert_allclose(found, plain.encode([f"find: {sentence}" for sentence in sentences]), atol=1e-5)
    assert encoder.fingerprint != plain.fingerprint
    code, _, err = ctxsim("export", "--surrogate", str(tmp_path / "prompted"), "--output", str(tmp_path / "onnx"))
    assert code == 0, err
    exported = SentenceEncoder.from_pretrained(tmp_path / "onnx").encode(sentences)
    np.testing.assert_allclose(exported, encoder.encode(sentences, normalize_embeddings=True), atol=1e-4)


def test_many_threads_get_what_one_gets(tmp_path: Path) -> None:
    """Also of a tokenizer that truncates and pads by itself, which is set anew for each call."""
    folder = save_tiny(tmp_path / "surrogate")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    encoder, sentences = SentenceEncoder.from_pretrained(folder), mixed_sentences(60)
    parts = [sentences[start : start + 20] for start in range(0, 40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: encoder.encode(part), parts))
    for part, vectors in zip(parts, found, strict=True):
        np.testing.assert_allclose(vectors, encoder.encode(part), atol=1e-5)


@pytest.mark.parametrize("sentences", [None, 5, b"bytes", {"a": 1}])
def test_what_is_no_list_is_refused(encoder: SentenceEncoder, sentences: object) -> None:
    with pytest.raises(UserError, match="expected a list of sentences, got "):
        encoder.encode(sentences)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="expected two lists of sentences, got "):
        encoder.similarity(sentences, ["a"])  # type: ignore[arg-type]


def test_iterators_are_lists_too(encoder: SentenceEncoder) -> None:
    sentences = mixed_sentences(6)
    np.testing.assert_array_equal(encoder.encode(iter(sentences)), encoder.encode(sentences))
    expected = encoder.similarity(sentences[:3], sentences[3:])
    np.testing.assert_array_equal(encoder.similarity(iter(sentences[:3]), (s for s in sentences[3:])), expected)


def test_it_says_what_it_is(encoder: SentenceEncoder, folder: Path) -> None:
    assert repr(encoder) == f"SentenceEncoder({str(folder)!r}: 16 numbers, at most 40 tokens, torch)"
