"""Causal language models as context models: each fast road against the plainest one to the same number."""

import copy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_language_model import save_tiny_llama
from tokenizers import processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BloomConfig,
    CohereConfig,
    Gemma2Config,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    MixtralConfig,
    OPTConfig,
    PreTrainedConfig,
)

from ctxsim_hf.context_models.causal.loading import start_ids
from ctxsim_hf.context_models.causal.prefix_batches import PrefixBatches, common_prefix
from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.causal.settings import BRIDGES, CausalSettings
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import Context

SENTENCES = ["A cat sat there.", "It rained.", "The dog of the house barked at everyone all night long.", ""]
CONTEXTS = [
    Context("c", 1, ("The house was old.",), "", ("Nobody slept.",)),
    Context("d", 1, ("One.", "It began to rain in the evening."), "", ("So we stayed.", "And left.")),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("language-model"))


@pytest.fixture
def model(folder: Path) -> CausalContextModel:
    found = load_context_model(folder)
    assert isinstance(found, CausalContextModel)
    found.model.float()
    return found


@torch.inference_mode()
def naive(model: CausalContextModel, sentence: str, context: Context, term: str) -> float:
    """One forward pass over one text, and the log-probabilities of the target's tokens; the first of the text has
    none."""

    def ids(sentences: tuple[str, ...]) -> list[int]:
        return [i for s in sentences for i in model.tokenizer(f" {s}", add_special_tokens=False)["input_ids"]]

    before = [*start_ids(model.tokenizer), *ids(context.left[-1:])]
    said, after = ids((sentence,)), ids(context.right[:1])
    source, target = (before, said) if term == "sentence" else ([*before, *said], after)
    logits = model.model(torch.tensor([[*source, *target]])).logits[0].log_softmax(-1)
    foretold = [(place, token) for place, token in enumerate(target, len(source)) if place > 0]
    return float(np.mean([float(logits[place - 1, token]) for place, token in foretold]))


@pytest.mark.parametrize("term", ["sentence", "right"])
def test_scores_are_those_of_a_naive_loop(model: CausalContextModel, term: str) -> None:
    sentences = SENTENCES[:3]
    prepared = model.prepare_contexts(Contexts.from_texts(CONTEXTS))
    scores = model.score(term, model.prepare_sentences(sentences), prepared)
    for row, sentence in enumerate(sentences):
        for column, context in enumerate(CONTEXTS):
            assert scores[row, column] == pytest.approx(naive(model, sentence, context, term), abs=1e-4)


def test_without_a_start_mark_the_first_token_is_not_counted(model: CausalContextModel) -> None:
    """As for GPT-2, where nothing stands to the left."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([])
    assert start_ids(tokenizer) == [] != start_ids(model.tokenizer)
    unmarked = CausalContextModel(model.model, tokenizer)
    contexts = [Context("e", 0, (), "", ("Nobody slept.",)), *CONTEXTS]
    sentences = [sentence for sentence in SENTENCES if sentence]
    prepared = unmarked.prepare_contexts(Contexts.from_texts(contexts))
    for term in unmarked.terms:
        scores = unmarked.score(term, unmarked.prepare_sentences(sentences), prepared)
        expected = [[naive(unmarked, sentence, context, term) for context in contexts] for sentence in sentences]
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    # Of a text of one token nothing can be said, and nothing to the left of a right side is as good as no sentence.
    alone, (nowhere, *_) = [[5]], prepared
    assert unmarked.score("sentence", alone, [nowhere]) == 0
    after_nothing = unmarked.score("right", [[]], [nowhere])
    assert after_nothing == pytest.approx(unmarked.score("sentence", [nowhere.right], [nowhere]), abs=1e-4)


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512}
OTHERS: dict[str, PreTrainedConfig] = {
    # What comes after the output layer is strong enough to show, and its window ends within a text.
    "gemma2": Gemma2Config(
        **SIZES, num_key_value_heads=2, head_dim=8, intermediate_size=64, final_logit_softcapping=2.0, sliding_window=8
    ),
    "granite": GraniteConfig(**SIZES, num_key_value_heads=2, intermediate_size=64, logits_scaling=4.0),
    "cohere": CohereConfig(**SIZES, num_key_value_heads=2, intermediate_size=64, logit_scale=0.25),
    "bloom": BloomConfig(hidden_size=32, n_layer=2, n_head=4),  # has no longest text
    "gpt2": GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=512),
    "mixtral": MixtralConfig(**SIZES, num_key_value_heads=2, intermediate_size=64, num_local_experts=2),
    "opt": OPTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=16),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_log_probabilities_are_those_of_the_models_own_forward(folder: Path, kind: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = copy.deepcopy(OTHERS[kind])
    config.update({"vocab_size": len(tokenizer), "initializer_range": 0.3, "init_std": 0.3, "pad_token_id": None})
    torch.manual_seed(0)
    model = CausalContextModel(
        AutoModelForCausalLM.from_config(config).eval(), tokenizer, CausalSettings(bridges=[BRIDGES[0]])
    )
    contexts = model.prepare_contexts(Contexts.from_texts(CONTEXTS))
    for term in model.terms:
        scores = model.score(term, model.prepare_sentences(SENTENCES[:3]), contexts)
        expected = [[naive(model, sentence, context, term) for context in CONTEXTS] for sentence in SENTENCES[:3]]
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    ids = tokenizer([BRIDGES[0].replace("{}", SENTENCES[0])], return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        own = model.model(ids).logits[0, -1].log_softmax(-1)
    np.testing.assert_allclose(model.word_scores(SENTENCES[:1])[0], own, atol=1e-4)


@pytest.mark.parametrize("layer", [-1, -2])
def test_vectors_are_the_states_at_the_end_of_each_bridge(model: CausalContextModel, layer: int) -> None:
    asked = CausalContextModel(model.model, model.tokenizer, CausalSettings(layer=layer))
    vectors = asked.vectors(SENTENCES)
    for number, bridge in enumerate(asked.settings.bridges):
        for sentence, vector in zip(SENTENCES, vectors[:, number], strict=True):
            ids = torch.tensor([model.tokenizer(bridge.replace("{}", sentence))["input_ids"]])
            with torch.inference_mode():
                outputs = model.model(ids, output_hidden_states=True)
                logits = model.model.lm_head(torch.from_numpy(vector))
            np.testing.assert_allclose(vector, outputs.hidden_states[layer][0, -1], atol=1e-4)
            if layer == -1:
                np.testing.assert_allclose(logits, outputs.logits[0, -1], atol=1e-4)


def test_batched_equals_single_and_shared_prefixes_equal_none(model: CausalContextModel) -> None:
    together = model.vectors(SENTENCES)
    for row, sentence in enumerate(SENTENCES):
        np.testing.assert_allclose(model.vectors([sentence])[0], together[row], atol=1e-4)
    rows = [[1, 5, 9, 7], [1, 5, 9, 4, 3, 2], [1, 5, 9, 9]]
    found = {}
    for prefix in (0, 1, 3):
        for batch in PrefixBatches(model.model.base_model)(rows, prefix):
            for place, states, length in zip(batch.rows, batch.states, batch.lengths, strict=True):
                found[prefix, place] = states[length]
    for place in range(3):
        for prefix in (1, 3):
            torch.testing.assert_close(found[prefix, place], found[0, place], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([[1, 2, 3], [1, 2, 4]], 2), ([[1, 2], [1, 2, 4]], 1), ([[5], [5]], 0), ([[1, 2], [3, 2]], 0), ([[1, 2, 3]], 2)],
)
def test_common_prefix(rows: list[list[int]], expected: int) -> None:
    assert common_prefix(rows) == expected


def test_several_bridges_and_another_layer(folder: Path, model: CausalContextModel) -> None:
    settings = CausalSettings(bridges=['"{}" means', "{} is about"], layer=-2)
    other = CausalContextModel(model.model, model.tokenizer, settings)
    assert other.vectors(SENTENCES).shape == (4, 2, 32)
    settings.save(folder / "copy")
    assert CausalSettings.load(folder / "copy") == settings


def test_another_process_gives_the_same(folder: Path, tmp_path: Path) -> None:
    here = load_context_model(folder)
    assert isinstance(here, CausalContextModel)
    code = (
        "import sys, numpy as np; from pathlib import Path; from ctxsim_hf.context_models.registry import *;"
        "np.save(sys.argv[2], load_context_model(Path(sys.argv[1])).vectors(sys.argv[3:]))"
    )
    subprocess.run([sys.executable, "-c", code, folder, tmp_path / "v.npy", *SENTENCES], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), here.vectors(SENTENCES), atol=1e-5)


def tiny_gpt2(folder: Path, positions: int, settings: CausalSettings) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(folder.parent)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=2, n_positions=positions)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings.save(folder)
    return folder


def test_a_context_that_is_longer_than_the_model_reads(folder: Path) -> None:
    """Learned positions end somewhere; all that the settings allow has to come before."""
    settings = CausalSettings(width=2, max_sentence_tokens=10, layer=-1)
    long = "word " * 20
    context = Contexts.from_texts([Context("c", 1, (long, long), "", (long, long))])
    model = load_context_model(tiny_gpt2(folder / "fits", 51, settings))
    for term in ("sentence", "right"):
        assert np.isfinite(model.score(term, model.prepare_sentences([long]), model.prepare_contexts(context))).all()
    message = "a context of width 2 with sentences of 10 tokens takes up to 51 tokens, but the model reads 50; lower"
    with pytest.raises(UserError, match=message):
        load_context_model(tiny_gpt2(folder / "short", 50, settings))
    with pytest.raises(UserError, match="takes up to 31 tokens, but the model reads 30"):
        load_context_model(tiny_gpt2(folder / "left", 30, replace(settings, terms=["sentence"])))
    load_context_model(tiny_gpt2(folder / "cloze", 30, replace(settings, terms=[])))  # is asked for no context


def test_bad_input(folder: Path, model: CausalContextModel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a bridge takes the sentence at \{\}; got 'no place'"):
        CausalSettings(bridges=["no place"])
    with pytest.raises(UserError, match="expected a bridge, such as"):
        CausalSettings(bridges=[])
    with pytest.raises(UserError, match="layer must be from -2 to -1 for this model, got -5"):
        CausalContextModel(model.model, model.tokenizer, CausalSettings(layer=-5))
    with pytest.raises(UserError, match="the model reads 512 tokens at most, but a text has"):
        model.vectors(["word " * 600])
    config = BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    AutoModel.from_config(config).save_pretrained(tmp_path / "bert")
    with pytest.raises(
        UserError,
        match=r"expected a causal language model in .*: its config.json names the architectures \['BertModel'\]",
    ):
        load_context_model(tmp_path / "bert")
    model.model.save_pretrained(tmp_path / "pickled")
    (tmp_path / "pickled/model.safetensors").rename(tmp_path / "pickled/pytorch_model.bin")
    with pytest.raises(UserError, match=r"pickled' with weights in safetensors, found pytorch_model.bin; open the"):
        load_context_model(tmp_path / "pickled")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/model.gguf").write_bytes(b"GGUF\x03\x00")
    with pytest.raises(UserError, match=r"model.gguf'"):
        load_context_model(tmp_path / "cut")
    assert AutoConfig.from_pretrained(folder).model_type == "llama"
