"""Cards: filled from stage.json and results.json alone, whole, and every example on them runs."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_processes import environment, run_python
from huggingface_hub import ModelCard
from stage_records import rewrite_stage

Run = Callable[..., tuple[int, str, str]]
STAGES = ("surrogate-large", "cross-surrogate", "discriminator-light", "generator-light", "generator-small")
STAGES = (*STAGES, "surrogate-static", "origin-light", "context-model-tiny")
NAMES = (*STAGES, "harvested-pairs", "origin")


def read(folders: Path, name: str) -> str:
    return (folders / "ctxsim" / name / "README.md").read_text("utf-8")


def without_code(card: str) -> str:
    return re.sub(r"```.*?```", "code", card, flags=re.S)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_whole(folders: Path, name: str) -> None:
    card = read(folders, name)
    assert not re.search(r"\{\{|\{%|\bUndefined\b|\bNone\b(?!`)", card)
    head, body = card.split("\n---\n", 1)
    assert head.startswith("---\n") and f'"ctxsim/{name}"' in body
    parts = re.split(r"^#+ (.+)$", without_code(body), flags=re.M)[1:]
    headings, texts = parts[::2], parts[1::2]
    assert len(headings) >= 5 and len(set(headings)) == len(headings)
    for heading, text in zip(headings, texts, strict=True):
        assert len(text.split()) >= 3 or (heading == "Licence" and text.strip()), (
            f"nothing under {heading!r} of {name}"
        )
    assert not re.search(r"\n\n\n|^\|.*\|\n\n\|", body, flags=re.M), "a gap, or a table torn in two"
    if name != "harvested-pairs":
        assert ("negation" in body.lower() and "Domain" in body) or name == "origin"


@pytest.mark.parametrize("name", STAGES)
def test_figures_are_those_of_the_stage(folders: Path, name: str) -> None:
    record = json.loads((folders / "ctxsim" / name / "stage.json").read_text())
    card = read(folders, name)
    for figure, value in record["counts"].items():
        (cell,) = re.findall(rf"^\| `{figure}` \| (.*) \|$", card, flags=re.M)
        assert float(cell.replace(",", "")) == pytest.approx(value, rel=1e-3)
    if name != "origin-light":
        for argument, value in record["arguments"].items():
            assert (f"| `{argument}` |" in card) == (value is not None)
    assert "- texts.jsonl (" in card and all(f"{package} {v}" in card for package, v in record["versions"].items())


def test_results_are_in_the_metadata(folders: Path) -> None:
    card = ModelCard.load(folders / "ctxsim/surrogate-large/README.md")
    # What is undefined is left out, and so is what the Hub does not know; the figures of others are not taken.
    (result,) = card.data.eval_results
    assert (result.dataset_type, result.dataset_name, result.dataset_split) == (
        "mteb/stsbenchmark-sts",
        "stsb",
        "test",
    )
    assert (result.metric_type, result.metric_name, result.metric_value) == ("spearmanr", "Spearman", 0.7312)
    assert "| stsb | test | 1,379 | 73.1 (70.0 to 76.0) | - |" in card.text
    assert "| adjacent | held_out | 50 | - | 73.1 (70.0 to 76.0) |" in card.text and "99.0" not in card.text
    assert card.data.library_name == "sentence-transformers" and card.data.pipeline_tag == "sentence-similarity"
    other = ModelCard.load(folders / "ctxsim/cross-surrogate/README.md")
    assert other.data.eval_results is None and "This model was not evaluated." in other.text


def test_the_card_of_a_static_surrogate_claims_no_layers_and_no_other_library(folders: Path) -> None:
    text = " ".join(read(folders, "surrogate-static").split())
    assert "A sentence encoder of 16 dimensions" in text
    assert "It is a static model. SentenceTransformer opens it without `ctxsim_hf`. ## When to use it" in text
    assert "AutoModel" not in text and "layers" not in text and "beyond" not in text, "it reads every token"


def test_results_are_those_of_this_folder(ctxsim: Run, folders: Path, earlier: Path, tmp_path: Path) -> None:
    """As `ctxsim evaluate` left them: of several systems, one of them two seeds, in folders that were moved since."""
    names = ("origin-light", "surrogate-large", "discriminator-light")
    origin, ours, stranger = (Path(shutil.copytree(folders / "ctxsim" / name, tmp_path / name)) for name in names)
    pairs = (("a cat", "the cat", 5), ("a dog", "a bird", 1), ("cats", "birds", 0), ("dogs", "the dogs", 4))
    rows = [json.dumps(dict(zip(("sentence1", "sentence2", "score"), pair, strict=True))) for pair in pairs]
    (tmp_path / "mteb/stsbenchmark-sts").mkdir(parents=True)
    (tmp_path / "mteb/stsbenchmark-sts/test.jsonl").write_text("\n".join(rows))
    seeds = (f"seeds=surrogate:{folder}" for folder in (earlier / "ctxsim/surrogate-large", ours))
    data = ("--tasks", "stsb", "--data-root", tmp_path, "--num-contexts", 7)
    code, _, err = ctxsim("evaluate", f"origin:{origin}", *seeds, *data, "--output", tmp_path / "evaluation")
    assert code == 0, err
    results = tmp_path / "evaluation/results.json"
    first, second = json.loads(results.read_text())["results"]
    (tmp_path / "moved").mkdir()
    for folder, value in ((origin, first["pearson"]["value"]), (ours, second["seeds"]["pearson"][1])):
        moved = Path(shutil.move(folder, tmp_path / "moved"))
        shutil.copy(results, moved)
        assert ctxsim("card", moved, "--overwrite")[0] == 0
        card = ModelCard.load(moved / "README.md")
        found = {result.metric_name: result.metric_value for result in card.data.eval_results}
        assert found["Pearson"] == round(value, 4) and f"| {100 * value:.1f}" in card.text
        assert ("|num_contexts:7|" in card.text) == (folder is origin)
    shutil.copy(results, stranger)
    code, _, err = ctxsim("card", stranger, "--overwrite")
    assert code == 2 and "has figures of other folders only" in err


def test_a_card_is_not_replaced_unasked(ctxsim: Run, folders: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders / "ctxsim/discriminator-light", tmp_path / "discriminator"))
    code, _, err = ctxsim("card", folder)
    assert code == 2 and "says something else; replace it with --overwrite" in err
    assert ctxsim("card", folder, "--overwrite", "--repo-id", "me/mine", "--license", "mit")[0] == 0
    card = ModelCard.load(folder / "README.md")
    assert card.data.license == "mit" and '"me/mine"' in card.text and "ctxsim/" not in card.text
    written = (folder / "README.md").read_bytes()
    assert ctxsim("card", folder, "--repo-id", "me/mine", "--license", "mit")[0] == 0
    assert (folder / "README.md").read_bytes() == written


@pytest.mark.parametrize(
    ("objective", "data", "counts", "told"),
    [
        ("sts", "mteb/stsbenchmark-sts", {"spearman": 0.5}, ["trained on human labels", "held-out pairs"]),
        ("triplet", "sentence-transformers/wikipedia-sections", {"accuracy": 0.5}, ["of one section", "triplets"]),
        ("afs", "ucsc/argument-facet-similarity", {"spearman": 0.5}, ["without part 3 of the parts 0 to 9"]),
    ],
)
def test_a_surrogate_of_public_data_names_it(
    ctxsim: Run, folders: Path, tmp_path: Path, objective: str, data: str, counts: dict[str, float], told: list[str]
) -> None:
    folder = Path(shutil.copytree(folders / "ctxsim/cross-surrogate", tmp_path / "tuned"))
    shutil.copy(folders / "ctxsim/surrogate-large/config.json", folder)
    made = json.loads((folder / "stage.json").read_text())["arguments"]
    made |= {"objective": objective, "fold": 3, "folds": 10}
    inputs = {"data": {"name": data, "xxh3_128": "0"}, "init": {"id": "me/start"}}
    rewrite_stage(folder, arguments=made, inputs=inputs, counts=counts)
    assert ctxsim("card", folder, "--overwrite")[0] == 0
    card = ModelCard.load(folder / "README.md")
    assert (card.data.datasets, card.data.base_model) == ([data], "me/start")
    assert all(words in card.text for words in (f"`{data}`", "started from me/start", *told))
    assert "Origin" not in card.text.replace("Sentence Similarity", "") and "without human labels" not in card.text


def test_what_has_no_card_of_ours(ctxsim: Run, planted: Path, folders: Path, tmp_path: Path) -> None:
    rewrite_stage(tmp_path, command="train surrogate", files={})
    for folder, message in (
        (tmp_path, "holds figures but no model, as a cross-validation keeps none"),
        (planted / "chunks", "was made by ctxsim chunk"),
        (folders / "pairs", "is a harvest"),
        (folders / "ctxsim/origin", "the card of a metric comes with its files"),
        (folders / "nothing", "does not exist"),
    ):
        code, _, err = ctxsim("card", folder)
        assert code == 2 and message in err and err.count("\n") == 1


def test_the_page_runs_on_the_gradio_that_was_tried(folders: Path) -> None:
    version = ModelCard.load(folders / "ctxsim/origin/README.md").data.sdk_version
    assert f"gradio=={version}\n" in (Path(__file__).parents[2] / "constraints.txt").read_text()


RUN_EXAMPLES = """
import json, sys, traceback
failed = []
for name, code in json.loads(sys.argv[1]):
    try:
        exec(compile(code, name, "exec"), {"__name__": "example"})
    except Exception:
        failed.append([name, code, traceback.format_exc()])
print(json.dumps(failed))
"""


def test_every_example_runs(published: Any, folders: Path, tmp_path: Path) -> None:
    """Each with its own names, all in one process that loads from the Hub."""
    examples = [
        [name, code] for name in NAMES for code in re.findall(r"```python\n(.*?)```", read(folders, name), re.S)
    ]
    assert {name for name, _ in examples} == set(NAMES) and len(examples) >= 12
    env = environment(published.hub.endpoint, tmp_path / "home")
    assert run_python(RUN_EXAMPLES, env, tmp_path, json.dumps(examples)) == []
