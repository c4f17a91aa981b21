"""`ctxsim train surrogate`: it learns what its pairs say, opens everywhere, resumes to the same bytes, and says what
is wrong in one line."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from scipy.sparse import csr_array, diags_array
from tiny_surrogate import tiny_model
from topic_pairs import sentences_by_topic, write_pairs
from transformers import AutoModel, AutoTokenizer, RobertaForMaskedLM

from ctxsim_hf.context_models.light.modeling import LightContextGeneratorConfig, LightContextGeneratorModel
from ctxsim_hf.encoder.modeling_cross_surrogate import CrossSurrogateModel
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.surrogate.generator_start import TableSettings, token_states
from ctxsim_hf.surrogate.surrogate_start import starting_model
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.surrogate.word_table import TokenTable
from ctxsim_hf.text.bags import bag_matrix, unit_rows
from ctxsim_hf.text.letter_ngrams import letter_ngrams
from ctxsim_hf.text.tokenized import TokenizedSentences
from ctxsim_hf.train import loop

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent
STEPS = ("--max-steps", 60, "--learning-rate", 2e-3, "--log-every", 2, "--checkpoint-every", 20, "--eval-every", 30)

NO_SENTENCES = TokenizedSentences(np.zeros(0, np.int64), np.zeros(1, np.int64))


@pytest.fixture(scope="module")
def pairs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(corpus, tmp_path_factory.mktemp("topics") / "pairs")


def words(corpus: Path, pairs: Path, output: Path, *flags: object) -> list[str]:
    fixed = ["train", "surrogate", "--preset", "tiny", "--pairs", pairs, "--tokenizer", corpus / "tokenizer"]
    rest = ["--tokens-per-batch", 600, "--max-sentence-tokens", 30, "--schedule", "constant", "--output", output]
    return [str(word) for word in [*fixed, *rest, *flags]]


@pytest.fixture(scope="module")
def trained(corpus: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ctxsim_hf.cli import main

    output = tmp_path_factory.mktemp("trained") / "surrogate"
    assert main(words(corpus, pairs, output, *STEPS)) == 0
    return output


def metrics(folder: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((folder / "metrics.json").read_text())
    return found


def test_it_learns_what_the_pairs_say(trained: Path) -> None:
    found = metrics(trained)
    # Of two classes of pairs, a sixth and the rest, with noise within each, the ranks explain 3 * 1/6 * 5/6 = 0.42.
    assert found["l2"] < 0.3 * found["l2_of_the_mean"]
    assert found["spearman"] > 0.38 and found["pearson"] > 0.8
    assert 0 < found["spearman_tfidf"] < 1
    record = json.loads((trained / "stage.json").read_text())
    assert record["arguments"]["hidden_size"] == 64, "what the preset filled is recorded"
    assert "pairs" not in record["arguments"] and set(record["inputs"]) == {"data", "tokenizer"}


def test_the_figures_are_those_of_the_folder_on_the_validation_pairs(trained: Path, pairs: Path) -> None:
    """By another road: what is in metrics.json, from the texts and the saved folder."""
    rows = pq.read_table(pairs / "data/validation-0.parquet").to_pydict()
    similarity = SentenceEncoder.from_pretrained(trained).similarity(rows["sentence1"], rows["sentence2"])
    labels = np.array(rows["score"])
    assert metrics(trained)["l2"] == pytest.approx(((similarity - labels) ** 2).mean(), rel=1e-3)
    assert metrics(trained)["pearson"] == pytest.approx(np.corrcoef(similarity, labels)[0, 1], abs=1e-4)
    train = np.concatenate([pq.read_table(pairs / f"data/train-{i}.parquet")["score"].to_numpy() for i in (0, 1)])
    assert metrics(trained)["l2_of_the_mean"] == pytest.approx(((train.mean() - labels) ** 2).mean(), rel=1e-4)


def test_the_folder_opens_everywhere(trained: Path, corpus: Path) -> None:
    from sentence_transformers import SentenceTransformer

    assert type(AutoModel.from_pretrained(trained)) is SurrogateModel
    sentences = sentences_by_topic(corpus)[0][:5]
    ours = SentenceEncoder.from_pretrained(trained).encode(sentences)
    theirs = SentenceTransformer(str(trained), device="cpu").encode(sentences)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    config = json.loads((trained / "config.json").read_text())
    assert (config["type_vocab_size"], config["layer_norm_eps"]) == (1, 1e-5)
    assert config["max_position_embeddings"] == 30 + 2 + 2, "30 tokens, two marks, and RoBERTa's offset of two"


def test_interrupted_and_resumed_it_ends_with_the_same_bytes(
    ctxsim: Run, corpus: Path, pairs: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_stop(*arguments: object) -> None:
        save(*arguments)
        raise KeyboardInterrupt

    save = loop.save_checkpoint
    command = words(corpus, pairs, tmp_path / "out", *STEPS)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", save_and_stop)
        code, _, err = ctxsim(*command)
        assert code == 130 and "run the same command again to resume" in err
    code, out, err = ctxsim(*command)
    assert code == 0 and "resuming from step 20" in out + err
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json"):
        assert (tmp_path / "out" / name).read_bytes() == (trained / name).read_bytes(), name


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bytes(
    ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path
) -> None:
    assert ctxsim(*words(corpus, pairs, tmp_path / "undisturbed", *STEPS))[0] == 0
    command = words(corpus, pairs, tmp_path / "out", *STEPS)
    with subprocess.Popen([BIN / "ctxsim", *command]) as process:
        while not list((tmp_path / "out.ctxsim-partial/output/checkpoints").glob("step-*[0-9]")):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    assert ctxsim(*command)[0] == 0
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


@pytest.mark.slow
def test_two_processes_follow_the_loss_of_one(ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path) -> None:
    common = ["--dropout", 0, "--max-steps", 10, "--log-every", 1]
    one = words(corpus, pairs, tmp_path / "one", *common, "--gradient-accumulation-steps", 2)
    assert ctxsim(*one)[0] == 0
    two = words(corpus, pairs, tmp_path / "two", *common)
    config = Path(__file__).parents[2] / "accelerate_configs/two_cpu_processes.yaml"
    launch = [BIN / "accelerate", "launch", "--config_file", config, "-m", "ctxsim_hf.train.surrogate", *two[2:]]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(launch, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("is finished") == 1, "one process speaks"
    losses = [
        [
            row["train/loss"]
            for row in json.loads((tmp_path / name / "history.json").read_text())
            if "train/loss" in row
        ]
        for name in ("one", "two")
    ]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4) and len(losses[1]) == 10


def test_a_start_that_is_not_beaten_is_what_is_written(
    ctxsim: Run, corpus: Path, pairs: Path, trained: Path, tmp_path: Path
) -> None:
    """A rate far too high spoils the weights, so the start is kept; with --keep last, the spoiled ones are."""
    found = {}
    for keep in ("best", "last", "start"):
        flags = ["--init", trained, "--pairs", pairs, "--learning-rate", 0.3, "--max-steps", 6, "--keep", keep]
        sizes = ["--tokens-per-batch", 600, "--max-sentence-tokens", 30, "--eval-every", 2, "--log-every", 2]
        code, out, err = ctxsim("train", "surrogate", *flags, *sizes, "--output", tmp_path / keep)
        assert code == 0, err
        assert ("so the start is what is written" in out + err) == (keep == "best")
        found[keep] = metrics(tmp_path / keep)
    sentences = sentences_by_topic(corpus)[0][:5]
    folders = [trained, *(tmp_path / keep for keep in found)]
    start, best, last, untrained = (SentenceEncoder.from_pretrained(f).encode(sentences) for f in folders)
    np.testing.assert_allclose(best, start, atol=1e-6)
    np.testing.assert_array_equal(untrained, start)
    assert not np.allclose(last, start, atol=1e-2)
    assert [found[keep]["kept_step"] for keep in ("best", "last", "start")] == [0, 6, 0]
    assert found["start"]["steps"] == 0
    assert found["best"]["spearman"] == found["best"]["spearman_start"] == found["last"]["spearman_start"]
    assert found["last"]["gain"] < 0 and found["last"]["gain_low"] <= found["last"]["gain"]


def test_of_equal_evaluations_the_last_is_the_one_that_keep_last_keeps(
    ctxsim: Run, pairs: Path, trained: Path, tmp_path: Path
) -> None:
    flags = ["--init", trained, "--pairs", pairs, "--learning-rate", 1e-30, "--max-steps", 6, "--keep", "last"]
    sizes = ["--tokens-per-batch", 600, "--max-sentence-tokens", 30, "--eval-every", 2, "--log-every", 2]
    code, _, err = ctxsim("train", "surrogate", *flags, *sizes, "--output", tmp_path / "out")
    assert code == 0, err
    history = json.loads((tmp_path / "out/history.json").read_text())
    assert len({row["eval/spearman"] for row in history if "eval/spearman" in row}) == 1
    assert metrics(tmp_path / "out")["kept_step"] == 6


def test_a_surrogate_that_learned_says_by_how_much(trained: Path) -> None:
    found = metrics(trained)
    assert 0 < found["gain_low"] <= found["gain"] <= found["gain_high"] and found["kept_step"] in (30, 60)
    assert found["spearman"] > found["spearman_start"]


def test_a_loss_that_is_no_number_stops_the_run(ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path) -> None:
    flags = ("--max-steps", 20, "--log-every", 2, "--learning-rate", 1e38, "--warmup", 0)
    code, _, err = ctxsim(*words(corpus, pairs, tmp_path / "out", *flags))
    assert code == 2
    assert re.search(r"the loss became (nan|inf) by step \d+; .*lower --learning-rate", err)
    for checkpoint in tmp_path.glob("out.ctxsim-partial/output/checkpoints/*/progress.json"):
        assert math.isfinite(json.loads(checkpoint.read_text())["loss"])


@pytest.mark.parametrize(
    "flags",
    [
        ["--loss", "cosent"],
        ["--loss", "pearson"],
        ["--labels", "stretched"],
        ["--weight-by-spread"],
        ["--objective", "cross"],
    ],
    ids=lambda flags: flags[1] if len(flags) > 1 else flags[0],
)
def test_every_way_to_learn_from_pairs(
    ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path, flags: list[object]
) -> None:
    out = tmp_path / "out"
    code, _, err = ctxsim(*words(corpus, pairs, out, "--max-steps", 40, *flags))
    assert code == 0, err
    # Reading two sentences at once is hard to learn from so few pairs.
    assert metrics(out)["pearson"] > 0.5 or "cross" in flags
    config = json.loads((out / "config.json").read_text())
    if "stretched" in flags:
        low, high = config["score_range"]
        assert -0.2 < low < 0.1 < 0.7 < high < 1
        assert metrics(out)["l2"] < metrics(out)["l2_of_the_mean"], "on the scale of the labels"
    else:
        assert "score_range" not in config
    if "cross" in flags:
        model, tokenizer = CrossSurrogateModel.from_pretrained(out).eval(), AutoTokenizer.from_pretrained(out)
        rows = pq.read_table(pairs / "data/validation-0.parquet").to_pydict()
        batch = tokenizer(rows["sentence1"], rows["sentence2"], return_tensors="pt", padding=True)
        with torch.no_grad():
            scores = model(batch["input_ids"], batch["attention_mask"]).logits[:, 0].numpy()
        assert metrics(out)["l2"] == pytest.approx(((scores - rows["score"]) ** 2).mean(), rel=1e-3)


def test_it_goes_on_from_a_surrogate_with_its_own_tokenizer(
    ctxsim: Run, pairs: Path, trained: Path, tmp_path: Path
) -> None:
    flags = ("--max-steps", 2, "--learning-rate", 1e-9, "--tokens-per-batch", 600, "--max-sentence-tokens", 30)
    code, _, err = ctxsim(
        "train", "surrogate", "--init", trained, "--pairs", pairs, *flags, "--output", tmp_path / "out"
    )
    assert code == 0, err
    assert metrics(tmp_path / "out")["l2"] == pytest.approx(metrics(trained)["l2"], rel=1e-3)


def light_generator(folder: Path, corpus: Path, size: int, vocab_size: int | None = None) -> Path:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    config = LightContextGeneratorConfig(vocab_size=vocab_size or len(tokenizer), hidden_size=size)
    model = LightContextGeneratorModel(config)
    with torch.no_grad():
        model.input_embeddings.weight *= torch.linspace(3, 0.1, size)  # some directions say more than others
        model.token_weight_logits.normal_()
        model.output_bias.normal_()
    model.save_pretrained(folder)
    if vocab_size is None:
        tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("size", [32, 46, 61])
def test_it_starts_as_a_light_generators_mean(
    corpus: Path, pairs: Path, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly where all dimensions fit into three quarters of the surrogate's 64 less 3, and nearly where the weakest
    do not."""
    monkeypatch.setattr(SurrogateArguments, "table_settings", TableSettings(letters=0.0))
    folder = light_generator(tmp_path / "generator", corpus, size)
    flags = {"pairs": str(pairs), "tokenizer": str(corpus / "tokenizer"), "token_embeddings": str(folder)}
    arguments = SurrogateArguments(output="unused", preset="tiny", **flags)
    tokenizer = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    models = [starting_model(SurrogateModel, arguments, tokenizer, 34, NO_SENTENCES).eval() for _ in range(2)]
    ours = models[0].base_model.embeddings.word_embeddings.weight.detach()
    assert torch.equal(ours, models[1].base_model.embeddings.word_embeddings.weight), "nothing random in it"
    real = torch.arange(len(ours)) != tokenizer.pad_token_id
    assert ours[real].std().item() == pytest.approx(1, rel=0.01)

    sentences = [topic[0] for topic in sentences_by_topic(corpus)]
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        found = models[0](**batch).sentence_embedding.double().numpy()
    generator = LightContextGeneratorModel.from_pretrained(folder)
    theirs = {name: weight.detach().double().numpy() for name, weight in generator.named_parameters()}
    frequency = np.exp(theirs["output_bias"]) / np.exp(theirs["output_bias"]).sum()
    weight = 1 / (1 + np.exp(-theirs["token_weight_logits"]))
    share = frequency * weight**2 / (frequency * weight**2).sum()
    vectors = theirs["input_embeddings.weight"] - share @ theirs["input_embeddings.weight"]
    half_white = vectors @ fractional_matrix_power((vectors.T * share) @ vectors, -0.25)
    ids = tokenizer(sentences, add_special_tokens=False)["input_ids"]
    expected = np.stack([(weight[row, None] * half_white[row]).sum(0) for row in ids])
    np.testing.assert_allclose(cosine_matrix(found), cosine_matrix(expected), atol=1e-5 if size <= 46 else 0.1)


def test_tokens_start_alike_as_far_as_they_share_letters(corpus: Path, tmp_path: Path) -> None:
    generator = LightContextGeneratorModel.from_pretrained(light_generator(tmp_path / "generator", corpus, 61))
    tokenizer = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    states = token_states(TokenTable.from_light_generator(generator), 576, tokens, [0, 2]).numpy()
    np.testing.assert_allclose(np.linalg.norm(states, axis=1), 24, rtol=1e-9)
    assert not states[[0, 2], :-2].any()
    found = cosine_matrix(states[4:, :-2])
    held, _ = bag_matrix([letter_ngrams(token.replace("▁", " ") + " ") for token in tokens[4:]])
    rarity = np.log(held.shape[0] / held.sum(axis=0))  # an n-gram weighs its idf
    letters = unit_rows(csr_array(held @ diags_array(rarity)))
    shared, different = (letters @ letters.T).toarray(), ~np.eye(len(found), dtype=bool)
    spelled = np.array([not token.startswith("<") for token in tokens[4:]])
    different &= spelled & spelled[:, None]
    apart, together = found[shared == 0], found[(shared > 0.3) & different]
    assert len(together) > 10
    assert abs(apart.mean()) < 0.02 and together.mean() > 0.1
    bytes_ = [place - 4 for place, token in enumerate(tokens) if token.startswith("<0x")]
    assert len(bytes_) == 256 and abs(found[np.ix_(bytes_, bytes_)][np.triu_indices(256, 1)].mean()) < 0.02


def cosine_matrix(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def spoil(pairs: Path, folder: Path, how: str) -> Path:
    """A copy of the pairs with one thing wrong."""
    (folder / "data").mkdir(parents=True)
    for path in (pairs / "data").iterdir():
        table = pq.read_table(path)
        if how == "scores":
            table = table.set_column(2, "score", [[1.5] + [0.5] * (table.num_rows - 1)])
        elif how == "columns":
            table = table.rename_columns(["sentence1", "text2", "score", "spread"])
        elif how == "spread":
            table = table.drop_columns("spread")
        elif how == "empty":
            table = table.set_column(0, "sentence1", [[None, *table["sentence1"].to_pylist()[1:]]])
        if how != "validation" or "train" in path.name:
            pq.write_table(table, folder / "data" / path.name)
    return folder


@pytest.mark.parametrize(
    ("how", "flags", "message"),
    [
        (
            "scores",
            [],
            "expected scores from -1 to 1, which a cosine can reach, but 2 of 1800 are not, the first is 1.5",
        ),
        ("columns", [], "expected a column 'sentence2' in"),
        ("validation", [], "has no validation split: expected files data/validation-*.parquet there"),
        ("empty", [], "but 'sentence1' has empty ones"),
        ("spread", ["--weight-by-spread"], "--weight-by-spread needs a column 'spread' in the pairs"),
        ("", ["--tokenizer", "nowhere"], "with a fast tokenizer or its id on the Hub, but 'nowhere' is"),
        ("", ["--tokenizer", "."], "expected a file tokenizer.json in '.', but there is none"),
        ("", ["--pairs", "nowhere"], "'nowhere' is not a local folder and could not be downloaded"),
        (
            "",
            ["--objective", "rhyme"],
            "--objective must be one of pairs, cross, teacher, sts, nli, triplet, afs",
        ),
        ("", ["--objective", "sts"], "--objective sts reads a public dataset; leave out --pairs"),
        ("", ["--loss", "l3"], "--loss must be one of l2, cosent, pearson, got 'l3'"),
        ("", ["--labels", "bent"], "--labels must be one of as-is, stretched, start, got 'bent'"),
        ("", ["--loss", "cosent", "--weight-by-spread"], "--weight-by-spread is for --objective pairs with --loss l2"),
        ("", ["--objective", "cross", "--loss", "cosent"], "has a loss of its own; leave out --loss cosent"),
        ("", ["--heads", 3], "--hidden-size 64 is not a multiple of --heads 3"),
        ("", ["--tokens-per-batch", 8], "--tokens-per-batch 8 is less than"),
        ("", ["--init", "nowhere"], "with --init the sizes and vectors are the checkpoint's; leave out --preset"),
        (
            "",
            ["--token-embeddings", "nowhere"],
            "expected for --token-embeddings the folder of a light generator or a causal language model, or its id on",
        ),
    ],
)
def test_bad_input_is_one_line(
    ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path, how: str, flags: list[object], message: str
) -> None:
    spoiled = spoil(pairs, tmp_path / "pairs", how) if how else pairs
    code, _, err = ctxsim(*words(corpus, spoiled, tmp_path / "out", *flags))
    assert code == 2
    assert err.startswith("ctxsim train surrogate: ") and message in err and err.count("\n") == 1


def test_models_that_do_not_fit_are_refused(ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    generator = light_generator(tmp_path / "generator", corpus, 32)
    other_size = light_generator(tmp_path / "other", corpus, 64, vocab_size=77)
    tiny_model(RobertaForMaskedLM, len(tokenizer)).save_pretrained(tmp_path / "roberta")  # 40 tokens at most
    swapped = json.loads((generator / "tokenizer.json").read_text())
    swapped["model"]["vocab"][10:12] = swapped["model"]["vocab"][10:12][::-1]
    other_order = light_generator(tmp_path / "swapped", corpus, 64)
    (other_order / "tokenizer.json").write_text(json.dumps(swapped))

    def refusal(*flags: object) -> str:
        common = ("--pairs", pairs, "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
        code, _, err = ctxsim("train", "surrogate", *common, *flags)
        assert code == 2 and err.count("\n") == 1
        return err

    assert "expected an encoder of text such as BERT or RoBERTa, got a ctxsim_light_generator" in refusal(
        "--init", generator
    )
    assert "reads 40 tokens at most, 66 are asked for" in refusal("--init", tmp_path / "roberta")
    assert "expected a tokenizer of" in refusal("--preset", "tiny", "--token-embeddings", other_size)
    assert "2 of" in refusal("--preset", "tiny", "--token-embeddings", other_order)
