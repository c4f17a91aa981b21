"""A vocabulary through a language model: what is asked of it, what a surrogate starts as, and the same as a static
model of sentence-transformers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from tiny_language_model import save_tiny_llama
from tokenizers import Tokenizer, decoders, models
from topic_pairs import sentences_by_topic, write_pairs
from transformers import AutoTokenizer, TokenizersBackend

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel, static_surrogate
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.generator_start import TableSettings, token_vectors
from ctxsim_hf.surrogate.surrogate_start import starting_model
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.surrogate.word_table import STATES_WHITENING, TokenTable, token_texts
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

Run = Callable[..., tuple[int, str, str]]
BRIDGES = ['This sentence: "{}" means in one word: "', 'The sentence "{}" is about']


@pytest.fixture(scope="module")
def pairs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(corpus, tmp_path_factory.mktemp("topics") / "pairs")


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_tiny_llama(tmp_path_factory.mktemp("llama"))
    CausalSettings(bridges=BRIDGES[:1]).save(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(corpus: Path) -> TokenizersBackend:
    return AutoTokenizer.from_pretrained(corpus / "tokenizer")


@pytest.fixture(scope="module")
def texts(corpus: Path) -> list[str]:
    return [text for topic in sentences_by_topic(corpus) for text in topic[:20]]


@pytest.fixture(scope="module")
def sentences(tokenizer: TokenizersBackend, texts: list[str]) -> TokenizedSentences:
    return tokenize_sentences(tokenizer, texts)


@pytest.fixture(scope="module")
def table(language_model: Path, tokenizer: TokenizersBackend, sentences: TokenizedSentences) -> TokenTable:
    return TokenTable.from_language_model(language_model, tokenizer, counts(sentences, tokenizer))


def counts(sentences: TokenizedSentences, tokenizer: TokenizersBackend) -> np.ndarray:
    return np.bincount(sentences.tokens, minlength=len(tokenizer))


def cosine_matrix(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def start(language_model: Path, pairs: Path, corpus: Path, sentences: TokenizedSentences) -> SurrogateModel:
    flags = {"pairs": str(pairs), "tokenizer": str(corpus / "tokenizer"), "token_embeddings": str(language_model)}
    arguments = SurrogateArguments(output="unused", preset="tiny", **flags)
    tokenizer = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    model = starting_model(SurrogateModel, arguments, tokenizer, 34, sentences)
    assert isinstance(model, SurrogateModel)
    return model.eval()


def test_texts_are_spelled_without_marks(tokenizer: TokenizersBackend) -> None:
    texts = dict(
        zip(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))), token_texts(tokenizer), strict=True)
    )
    assert [texts[token] for token in ("<s>", "</s>", "<pad>", "<unk>", "<0x41>", "<0xE2>", "▁")] == [""] * 7
    spelled = {token: text for token, text in texts.items() if text}
    assert len(spelled) > 150 and all(text == token.removeprefix("▁") for token, text in spelled.items())


@pytest.mark.parametrize(
    ("decoder", "tokens", "expected"),
    [
        (decoders.WordPiece(), ["house", "##ing", "[UNK]"], ["house", "ing", ""]),
        (decoders.ByteLevel(), ["Ġhouse", "ing", "Ã©", "Ã", "Ġ"], ["house", "ing", "é", "", ""]),
        (None, ["house", "ing"], ["house", "ing"]),
    ],
    ids=["word pieces", "bytes", "words"],
)
def test_texts_of_other_kinds_of_tokenizers(decoder: object, tokens: list[str], expected: list[str]) -> None:
    backend = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    if decoder is not None:
        backend.decoder = decoder
    special = {"unk_token": "[UNK]"} if "[UNK]" in tokens else {}
    assert token_texts(TokenizersBackend(tokenizer_object=backend, **special)) == expected


def test_the_vector_of_a_token_is_the_state_after_the_bridge(
    table: TokenTable, language_model: Path, tokenizer: TokenizersBackend, sentences: TokenizedSentences
) -> None:
    texts = token_texts(tokenizer)
    known = np.array([bool(text) for text in texts])
    states = CausalContextModel.load(language_model, "cpu").vectors([text for text in texts if text])
    assert table.vectors.shape == (len(tokenizer), 32)
    np.testing.assert_allclose(table.vectors[known], states[:, 0], atol=0.02 * np.abs(states).max())  # bf16 batches
    assert not table.vectors[~known].any() and not table.weights[~known].any()
    assert table.frequencies.sum().item() == pytest.approx(1)
    seen = counts(sentences, tokenizer)
    expected = (seen + 1) / (seen + 1).sum()
    np.testing.assert_allclose(table.frequencies, expected)
    np.testing.assert_allclose(table.weights[known], 1e-3 / (1e-3 + expected[known]))


def test_the_model_is_asked_once(
    table: TokenTable,
    language_model: Path,
    tokenizer: TokenizersBackend,
    sentences: TokenizedSentences,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(*_: object) -> None:
        raise AssertionError("the model was asked")

    monkeypatch.setattr(CausalContextModel, "load", ask)
    again = TokenTable.from_language_model(language_model, tokenizer, counts(sentences, tokenizer))
    for name in ("vectors", "weights", "frequencies"):
        assert torch.equal(getattr(again, name), getattr(table, name)), name
    twice = TokenTable.from_language_model(language_model, tokenizer, 2 * counts(sentences, tokenizer) + 1)
    assert torch.equal(twice.vectors, table.vectors), "counts are no part of what is kept"
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="was asked"):
        patch.setattr(CausalSettings, "load", lambda _: CausalSettings(bridges=BRIDGES[1:]))
        TokenTable.from_language_model(language_model, tokenizer, counts(sentences, tokenizer))


def test_bridges_stand_side_by_side(
    table: TokenTable, tokenizer: TokenizersBackend, sentences: TokenizedSentences, tmp_path: Path
) -> None:
    folder = save_tiny_llama(tmp_path / "two")
    CausalSettings(bridges=BRIDGES).save(folder)
    both = TokenTable.from_language_model(folder, tokenizer, counts(sentences, tokenizer)).vectors
    assert both.shape == (len(tokenizer), 64)
    assert torch.equal(both[:, :32], table.vectors) and not torch.equal(both[:, 32:], table.vectors)


def test_a_surrogate_starts_as_the_weighted_mean(
    language_model: Path,
    pairs: Path,
    corpus: Path,
    table: TokenTable,
    sentences: TokenizedSentences,
    texts: list[str],
    tokenizer: TokenizersBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By another road than its own: all 32 dimensions fit into three quarters of the surrogate's."""
    monkeypatch.setattr(SurrogateArguments, "table_settings", TableSettings(letters=0.0))
    models = [start(language_model, pairs, corpus, sentences) for _ in range(2)]
    ours, again = (model.base_model.embeddings.word_embeddings.weight for model in models)
    assert torch.equal(ours, again), "nothing random in it"
    with torch.no_grad():
        found = models[0](**tokenizer(texts, padding=True, return_tensors="pt")).sentence_embedding.double().numpy()
    weight, frequency = table.weights.numpy(), table.frequencies.numpy()
    share = frequency * weight**2 / (frequency * weight**2).sum()
    vectors = table.vectors.numpy() - share @ table.vectors.numpy()
    whitened = vectors @ fractional_matrix_power((vectors.T * share) @ vectors, -STATES_WHITENING / 2)
    ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    expected = np.stack([(weight[row, None] * whitened[row]).sum(0) for row in ids])
    np.testing.assert_allclose(cosine_matrix(found), cosine_matrix(expected), atol=1e-5)


def test_a_static_model_is_the_surrogates_start(
    language_model: Path,
    pairs: Path,
    corpus: Path,
    table: TokenTable,
    sentences: TokenizedSentences,
    texts: list[str],
    tokenizer: TokenizersBackend,
    tmp_path: Path,
) -> None:
    from sentence_transformers import SentenceTransformer

    surrogate = start(language_model, pairs, corpus, sentences)
    batch = tokenizer(texts, padding=True, return_tensors="pt")  # which leaves its padding in the tokenizer
    with torch.no_grad():
        expected = surrogate(**batch).sentence_embedding.double().numpy()
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    vectors = token_vectors(table, 61, tokens, [tokenizer.bos_token_id, tokenizer.eos_token_id])
    static_surrogate(SurrogateModel, vectors).save_pretrained(tmp_path / "static")
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(tmp_path / "static")
    static = SentenceTransformer(str(tmp_path / "static"), device="cpu")
    assert static.get_embedding_dimension() == 61
    np.testing.assert_allclose(cosine_matrix(static.encode(texts)), cosine_matrix(expected), atol=1e-5)
    assert static.similarity_fn_name == "cosine"


def test_training_starts_from_a_language_model(
    ctxsim: Run, language_model: Path, pairs: Path, corpus: Path, tmp_path: Path
) -> None:
    common = ["--preset", "tiny", "--pairs", pairs, "--tokenizer", corpus / "tokenizer", "--max-steps", 2]
    sizes = ["--tokens-per-batch", 600, "--max-sentence-tokens", 30]
    for objective in ("pairs", "cross"):
        flags = ["--token-embeddings", language_model, "--objective", objective, "--output", tmp_path / objective]
        code, _, err = ctxsim("train", "surrogate", *common, *sizes, *flags)
        assert code == 0, err
    record = (tmp_path / "pairs/stage.json").read_text()
    assert '"token_embeddings"' in record and str(language_model) not in record


def test_bad_input_is_one_line(
    ctxsim: Run, planted: Path, pairs: Path, corpus: Path, tmp_path: Path, language_model: Path
) -> None:
    def refusal(name: Path) -> str:
        common = ["--preset", "tiny", "--pairs", pairs, "--tokenizer", corpus / "tokenizer"]
        output = ["--output", tmp_path / "out"]
        code, _, err = ctxsim("train", "surrogate", *common, "--token-embeddings", name, *output)
        assert code == 2 and err.count("\n") == 1, err
        return err

    (tmp_path / "empty").mkdir()
    assert "but it has no config.json" in refusal(tmp_path / "empty")
    assert "or a causal language model, " in refusal(planted / "discriminator")
    assert "is a ctxsim_discriminator" in refusal(planted / "discriminator")
    headless = save_tiny_llama(tmp_path / "headless")
    config = (headless / "config.json").read_text().replace("LlamaForCausalLM", "LlamaModel")
    (headless / "config.json").write_text(config)
    assert "its config.json names the architectures ['LlamaModel']" in refusal(headless)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/model.gguf").write_bytes(b"GGUF")
    assert "model.gguf'" in refusal(tmp_path / "cut")


def test_a_vocabulary_without_text_is_refused(language_model: Path) -> None:
    backend = Tokenizer(models.WordLevel({"<0x41>": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer = TokenizersBackend(tokenizer_object=backend, unk_token="[UNK]")
    with pytest.raises(UserError, match="none of them is text"):
        TokenTable.from_language_model(language_model, tokenizer, np.zeros(2))
