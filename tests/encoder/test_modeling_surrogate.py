"""Surrogates by hand, and opened by everything that should open them, with and without this package."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_surrogate import MAX_TOKENS, mixed_sentences, save_tiny, tiny_model
from transformers import AutoConfig, AutoModel, AutoTokenizer, RobertaForMaskedLM, RobertaModel

from ctxsim_hf import CrossSurrogateModel, SurrogateModel
from ctxsim_hf.encoder.pooling import mean_pooling
from ctxsim_hf.runtime.presets import preset_sizes

SENTENCES = [*mixed_sentences(4), ""]
PAIRS = [SENTENCES[:2], ["word " * 100, SENTENCES[3]]]  # the second is too long for the model


@pytest.fixture(scope="module")
def surrogate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("surrogate"))


@pytest.fixture(scope="module")
def cross_surrogate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("cross"), CrossSurrogateModel)


def token_batch(*rows: list[int]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[0, *row, 2] + [1] * (longest - len(row)) for row in rows])


def test_pooling_by_hand() -> None:
    states = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [50.0, 50.0]], [[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]]])
    pooled = mean_pooling(states, torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert pooled.tolist() == [[2, 4], [3, 1]]
    assert mean_pooling(states, torch.zeros(2, 3)).tolist() == [[0, 0], [0, 0]]


def test_similarity_and_loss_by_hand() -> None:
    model = tiny_model()
    ids = token_batch([7, 8, 9], [10, 11], [12, 13, 14, 15, 16])
    out = model(
        ids,
        sentence1_index=torch.tensor([0, 1, 0, 2]),
        sentence2_index=torch.tensor([1, 2, 2, 2]),
        labels=torch.tensor([0.5, -1.0, 0.25, 1.0]),
    )
    # The same sentences one at a time, with no padding, through the encoder within.
    vectors = []
    for row in ids:
        states = model.encoder(row[row != 1][None]).last_hidden_state[0].detach().double().numpy()
        vectors.append(states.sum(0) / len(states))
    np.testing.assert_allclose(out.sentence_embedding.detach(), vectors, atol=1e-5)
    a, b, c = (vector / np.sqrt((vector**2).sum()) for vector in vectors)
    similarity = np.array([a @ b, b @ c, a @ c, 1.0])
    np.testing.assert_allclose(out.similarity.detach(), similarity, atol=1e-6)
    loss = ((a @ b - 0.5) ** 2 + (b @ c + 1) ** 2 + (a @ c - 0.25) ** 2 + 0) / 4
    assert out.loss.item() == pytest.approx(loss, abs=1e-6)


def test_code_written_for_the_plain_encoder_finds_what_it_asks_for() -> None:
    model, ids = tiny_model(), token_batch([7, 8, 9], [10, 11])
    plain = model.encoder(ids, attention_mask=(ids != 1).long())
    torch.testing.assert_close(model(ids)[0], plain[0])
    torch.testing.assert_close(model(ids, return_dict=False)[0], plain[0])
    assert len(model(ids, output_hidden_states=True).hidden_states) == 3
    assert set(model(ids)) == {"last_hidden_state", "sentence_embedding"}


def test_a_vector_is_the_mean_of_the_plain_encoders_states(surrogate: Path) -> None:
    plain = RobertaModel.from_pretrained(surrogate, add_pooling_layer=False).eval()
    batch = AutoTokenizer.from_pretrained(surrogate)(SENTENCES, return_tensors="pt", padding=True)
    with torch.no_grad():
        found = SurrogateModel.from_pretrained(surrogate).eval()(**batch).sentence_embedding
        states = plain(**batch).last_hidden_state.double()
    for vector, row, mask in zip(found, states, batch["attention_mask"], strict=True):
        np.testing.assert_allclose(vector, row[mask > 0].mean(0), atol=1e-6)


def test_attention_and_checkpointing_are_those_of_the_encoder(surrogate: Path) -> None:
    model, ids = SurrogateModel.from_pretrained(surrogate).eval(), token_batch([7, 8, 9], [10, 11])
    assert model.config._attn_implementation == "sdpa"
    vectors = model(ids).sentence_embedding
    model.set_attn_implementation("eager")
    assert model.encoder.config._attn_implementation == "eager"
    torch.testing.assert_close(model(ids).sentence_embedding, vectors, atol=1e-5, rtol=0)
    eager = SurrogateModel.from_pretrained(surrogate, attn_implementation="eager", dtype=torch.bfloat16)
    assert eager.config._attn_implementation == "eager" and eager.dtype == torch.bfloat16
    model.train().gradient_checkpointing_enable()
    assert any(getattr(module, "gradient_checkpointing", False) for module in model.encoder.modules())


def test_it_learns_its_labels() -> None:
    model = tiny_model().train()
    batch = {
        "input_ids": token_batch([7, 8, 9], [10, 11], [12, 13, 14, 15, 16]),
        "sentence1_index": torch.tensor([0, 1, 2]),
        "sentence2_index": torch.tensor([1, 2, 0]),
        "labels": torch.tensor([0.9, 0.1, -0.3]),
    }
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    np.testing.assert_allclose(model.eval()(**batch).similarity.detach(), batch["labels"], atol=0.1)


PAIR = {"sentence1_index": torch.tensor([0]), "sentence2_index": torch.tensor([1])}


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"input_ids": torch.zeros(3, dtype=torch.long)}, r"must be \(sentences, tokens\), got the shape \(3,\)"),
        ({"attention_mask": torch.ones(2, 9)}, r"`attention_mask` must have the shape of `input_ids`, \(2, 5\)"),
        ({"input_ids": torch.full((2, 41), 7)}, "Sentences may have at most 40 tokens, got 41"),
        ({"labels": torch.tensor([0.5])}, "Give both `sentence1_index` and `sentence2_index`, or neither"),
        ({"sentence1_index": torch.tensor([0])}, "Give both `sentence1_index` and `sentence2_index`, or neither"),
        ({**PAIR, "sentence2_index": torch.tensor([2])}, "`sentence2_index` must lie from 0 to 1, got 2 to 2"),
        (
            {**PAIR, "sentence2_index": torch.tensor([1, 1])},
            r"must have the shape of `sentence1_index`, \(1,\), got",
        ),
        (
            {**PAIR, "labels": torch.zeros(1, 1)},
            r"`labels` must have the shape of `sentence1_index`, \(1,\), got",
        ),
        (
            {**PAIR, "sentence1_index": torch.tensor([[0]])},
            r"`sentence1_index` must be \(pairs,\), got the shape",
        ),
    ],
)
def test_wrong_shapes_are_refused_in_words(inputs: dict[str, torch.Tensor], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tiny_model()(**({"input_ids": token_batch([7, 8, 9], [10, 11])} | inputs))


def test_cross_surrogate_is_a_regression(cross_surrogate: Path) -> None:
    model = CrossSurrogateModel.from_pretrained(cross_surrogate).eval()
    tokenizer = AutoTokenizer.from_pretrained(cross_surrogate)
    batch = tokenizer(["one", "other"], ["two", "more words"], return_tensors="pt", padding=True)
    first, second = (tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("one", "two"))
    assert batch["input_ids"][0][batch["attention_mask"][0] > 0].tolist() == [0, *first, 2, 2, *second, 2]
    out = model(**batch, labels=torch.tensor([0.2, 0.9]))
    scores = out.logits[:, 0].tolist()
    assert out.logits.shape == (2, 1)
    assert out.loss.item() == pytest.approx(((scores[0] - 0.2) ** 2 + (scores[1] - 0.9) ** 2) / 2)


def test_it_starts_from_any_roberta(tmp_path: Path) -> None:
    start = tiny_model(RobertaForMaskedLM)
    start.save_pretrained(tmp_path)
    for kind in (SurrogateModel, CrossSurrogateModel):
        model = kind.from_pretrained(tmp_path).eval()
        torch.testing.assert_close(model.base_model.state_dict(), start.roberta.state_dict())


@pytest.mark.parametrize(("preset", "sizes"), [("base", (12, 768, 12, 3072)), ("large", (24, 1024, 16, 4096))])
def test_base_and_large_are_roberta(preset: str, sizes: tuple[int, ...]) -> None:
    found = preset_sizes(preset, "surrogate")
    assert tuple(found[name] for name in ("layers", "hidden_size", "heads", "ffn_size")) == sizes


# One script, run with and without `import ctxsim_hf`: prints the class that each way of loading gives, and whether the
# vectors or scores are those expected. Without the package it also fine-tunes with sentence-transformers.
FRESH_PROCESS = """
import json, sys
import numpy as np
folder, cross, plain, bare, tuned, with_package = sys.argv[1:]
if with_package == "yes":
    import ctxsim_hf
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer, losses
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, RobertaConfig
expected = json.load(open(folder + "/expected.json"))
sentences, pairs = expected["sentences"], expected["pairs"]

def say(way, model, found=None, wanted=None):
    print(way, type(model).__name__, "" if found is None else np.allclose(found, expected[wanted], rtol=0, atol=1e-5))

tokenizer = AutoTokenizer.from_pretrained(folder)
batch = tokenizer(sentences, return_tensors="pt", padding=True)
model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
with torch.no_grad():
    states, mask = model(**batch)[0], batch["attention_mask"][..., None]
say("AutoModel", model, (states * mask).sum(1) / mask.sum(1), "vectors")
encoder = SentenceTransformer(folder)
say("SentenceTransformer", encoder[0].model, encoder.encode(sentences), "vectors")
model = AutoModelForSequenceClassification.from_pretrained(cross).eval()
with torch.no_grad():
    batch = tokenizer(*zip(*pairs), return_tensors="pt", padding=True, **expected["limits"])
    scores = model(**batch).logits[:, 0]
say("AutoModelForSequenceClassification", model, scores, "scores")
say("CrossEncoder", CrossEncoder(cross).model, CrossEncoder(cross).predict(pairs), "scores")
say("another RoBERTa", AutoModel.from_pretrained(plain))
say("another RoBERTa", AutoModelForSequenceClassification.from_pretrained(plain))
say("without architectures", AutoModel.from_pretrained(bare))
say("new", AutoModel.from_config(RobertaConfig(**json.load(open(bare + "/config.json")))))
print("longest", encoder.max_seq_length, CrossEncoder(cross).max_seq_length, encoder.similarity_fn_name)

loss = losses.CosineSimilarityLoss(encoder)
optimizer = torch.optim.Adam(encoder.parameters(), 0.01)
for _ in range(3):
    features = [encoder.preprocess([pair[side] for pair in pairs]) for side in (0, 1)]
    loss(features, torch.tensor([0.3, 0.8])).backward()
    optimizer.step()
encoder.save(tuned)
np.save(tuned + "/vectors.npy", encoder.encode(sentences))
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_package", ["yes", "no"])
def test_every_way_of_loading(surrogate: Path, cross_surrogate: Path, tmp_path: Path, with_package: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(surrogate)
    limits = {"truncation": True, "max_length": MAX_TOKENS}

    def run(model: Any, *texts: Any) -> Any:
        return model.eval()(**tokenizer(*texts, return_tensors="pt", padding=True, **limits))

    vectors = run(SurrogateModel.from_pretrained(surrogate), SENTENCES).sentence_embedding
    scores = run(CrossSurrogateModel.from_pretrained(cross_surrogate), *zip(*PAIRS, strict=True)).logits[:, 0]
    expected = {"sentences": SENTENCES, "vectors": vectors.tolist(), "pairs": PAIRS, "scores": scores.tolist()}
    expected["limits"] = limits
    (surrogate / "expected.json").write_text(json.dumps(expected))

    plain, bare, tuned = tmp_path / "plain", tmp_path / "bare", tmp_path / "tuned"
    tiny_model(RobertaModel).save_pretrained(plain)
    tiny_model(RobertaModel).save_pretrained(bare)
    config = json.loads((bare / "config.json").read_text())
    del config["architectures"]
    (bare / "config.json").write_text(json.dumps(config))

    words = [surrogate, cross_surrogate, plain, bare, tuned, with_package]
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, *map(str, words)], capture_output=True, text=True, cwd=root, check=False
    )
    assert process.returncode == 0, process.stderr
    # Transformers reports missing and unexpected weights, of the folder they are `from:`.
    assert f"from: {surrogate}" not in process.stderr and f"from: {cross_surrogate}" not in process.stderr
    ours, cross = ("SurrogateModel", "CrossSurrogateModel") if with_package == "yes" else (
        "RobertaModel", "RobertaForSequenceClassification"
    )  # fmt: skip
    assert process.stdout.splitlines() == [
        f"AutoModel {ours} True",
        f"SentenceTransformer {ours} True",
        f"AutoModelForSequenceClassification {cross} True",
        f"CrossEncoder {cross} True",
        "another RoBERTa RobertaModel ",
        "another RoBERTa RobertaForSequenceClassification ",
        "without architectures RobertaModel ",
        "new RobertaModel ",
        "longest 40 40 cosine",
    ]
    found = run(SurrogateModel.from_pretrained(tuned), SENTENCES).sentence_embedding.detach().numpy()
    np.testing.assert_allclose(found, np.load(tuned / "vectors.npy"), atol=1e-5)
    assert np.abs(found - vectors.detach().numpy()).max() > 0.01


def test_prompts_survive_a_save_by_sentence_transformers(surrogate: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(surrogate), prompts={"query": "find: "}).save(str(tmp_path))
    assert SentenceTransformer(str(tmp_path)).prompts["query"] == "find: "
    assert "SurrogateModel" in (tmp_path / "config.json").read_text()


def test_only_the_main_process_writes(tmp_path: Path) -> None:
    tiny_model().save_pretrained(tmp_path, is_main_process=False)
    assert not list(tmp_path.iterdir())


def test_a_roberta_with_code_of_its_own_keeps_it(tmp_path: Path) -> None:
    """Where a user trusts a checkpoint's code, that comes before transformers' class, but not before one of ours."""
    tiny_model(RobertaModel).save_pretrained(tmp_path)
    (tmp_path / "modeling_theirs.py").write_text(
        "from transformers import RobertaModel\n\n\nclass TheirModel(RobertaModel):\n    pass\n"
    )
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "modeling_theirs.TheirModel"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert type(AutoModel.from_pretrained(tmp_path, trust_remote_code=True)).__name__ == "TheirModel"
    assert type(AutoModel.from_pretrained(tmp_path, trust_remote_code=False)) is RobertaModel
    read = AutoConfig.from_pretrained(tmp_path)
    assert type(AutoModel.from_config(read, trust_remote_code=True)).__name__ == "TheirModel"
    assert type(AutoModel.from_config(read)) is RobertaModel
