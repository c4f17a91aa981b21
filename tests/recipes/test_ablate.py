"""`ctxsim ablate`: arms evaluated, arms trained, the paper beside them, going on after an interruption."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from planted import PlantedCorpus
from tiny_language_model import save_tiny_llama
from unfinished import unfinished

from ctxsim_hf import build_index, evaluate_similarity, grow_index, harvest
from ctxsim_hf.context_models.causal.settings import BRIDGES
from ctxsim_hf.evaluation import paper_figures
from ctxsim_hf.evaluation.report import Report
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.recipes import steps
from ctxsim_hf.recipes.ablations import ABLATIONS
from ctxsim_hf.recipes.adapted_folder import ASKED_FILE, AdaptedFolder
from ctxsim_hf.recipes.arms import Place, short_number
from ctxsim_hf.runtime.files import seal, write_json

Run = Callable[..., tuple[int, str, str]]
FEW = ("--num-contexts", 8, "--screen-chunks", 40, "--background-size", 30)


@pytest.fixture(scope="module")
def adapted(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted chain as `ctxsim adapt` lays it out, with 1,200 pairs."""
    folder = tmp_path_factory.mktemp("adapted")
    (folder / "ctxsim").mkdir()
    (folder / "ctxsim/origin-tiny").symlink_to(planted / "origin")
    for name in ("chunks", "tokenizer", "generator"):
        (folder / name).symlink_to(planted / name)
    harvest(**AdaptedFolder.find(str(folder)).harvest_values(1200), output=folder / "pairs")
    return folder


@pytest.fixture(scope="module")
def language_model(adapted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a language model, as `ctxsim adapt --context-model` leaves it."""
    folder = tmp_path_factory.mktemp("language-model")
    for name in ("chunks", "tokenizer", "pairs"):
        (folder / name).symlink_to(adapted / name)
    model = save_tiny_llama(folder / "llama")
    origin = folder / "ctxsim/origin-tiny"
    build_index(folder / "chunks", context_model=model, background=40, output=origin)
    ChosenWeights({"cloze": 1.0, "words": 0.5}, 0.6, {}, 100).save(origin)
    write_json(folder / ASKED_FILE, seal({"context_model": str(model)}))
    return folder


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """STSb with a planted truth: a paraphrase is alike, a near copy of another meaning is not."""
    rows = []
    for number, probe in enumerate(PlantedCorpus().probes(10)):
        for other, score in ((probe.paraphrase, 4), (probe.near_copy, 0)):
            rows.append({"sentence1": probe.sentence, "sentence2": other, "score": score + number % 5 / 5})
    folder = tmp_path_factory.mktemp("data") / "mteb/stsbenchmark-sts"
    folder.mkdir(parents=True)
    (folder / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder.parents[1]


def words(ablation: str, adapted: Path, data_root: Path, output: Path, *more: object) -> tuple[object, ...]:
    return ("ablate", ablation, "--adapted", adapted, "--data-root", data_root, "--output", output, *more)


def arm_row(table: str, name: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {name}") and line.count("|") == 7]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_arms_that_are_only_evaluated(ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path) -> None:
    command = words("strategy", adapted, data_root, tmp_path / "out", *FEW)
    code, said, progress = ctxsim(*command)
    assert code == 0, progress
    record = json.loads((tmp_path / "out/results.json").read_text())
    assert [row["system"] for row in record["results"]] == ["two_step", "random", "no_diversity"]
    # By another road: the origin with these settings.
    settings: dict[str, Any] = {"num_contexts": 8, "screen_chunks": 40, "background_size": 30}
    origin = OriginSimilarity.from_pretrained(adapted / "ctxsim/origin-tiny", strategy="random", **settings)
    (expected,) = evaluate_similarity(origin, ["stsb"], "validation", data_root)
    figure = record["results"][1]["spearman"]["value"]
    assert figure == pytest.approx(expected.main.value, abs=1e-6)
    # The table: figure, interval, difference to the first; the paper's figure and difference.
    full = record["results"][0]["spearman"]
    row = arm_row(said, "random")
    assert row[1] == f"{100 * figure:.1f}" and row[3].rstrip("*") == f"{100 * (figure - full['value']):+.1f}"
    assert row[4:] == ["34.45", "-44.02"]
    assert arm_row(said, "two_step")[2:] == [f"{100 * full['low']:.1f} to {100 * full['high']:.1f}", "", "78.47", ""]
    assert (tmp_path / "out/results.png").read_bytes().startswith(b"\x89PNG")
    assert np.load(tmp_path / "out/scores.npy").shape == (3, 20)
    assert f"origin:{adapted}/ctxsim/origin-tiny --tasks stsb --split validation" in progress
    # Once more: nothing is done, the same is said; with another limit it is another ablation.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert ctxsim(*command)[:2] == (0, said)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    code, _, err = ctxsim(*command, "--limit", 12)
    assert code == 2 and "limit was 500, now 12" in err


def test_going_on_between_two_arms(
    ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = words("strategy", adapted, data_root, tmp_path / "out", *FEW, "--limit", 10)
    run, calls = steps.Step.run, []

    def killed_in_the_second(step: steps.Step) -> Any:
        calls.append(step.values["systems"][0].partition("=")[0])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(step)

    monkeypatch.setattr(steps.Step, "run", killed_in_the_second)
    code, _, err = ctxsim(*command)
    assert code == 130 and "run the same command again to resume" in err
    assert not (tmp_path / "out").exists()
    first = tmp_path / "out.ctxsim-partial/output/two_step/evaluation/results.json"
    made = first.stat().st_mtime_ns
    assert ctxsim(*command)[0] == 0
    assert calls == ["two_step", "random", "random", "no_diversity"]
    assert (tmp_path / "out/two_step/evaluation/results.json").stat().st_mtime_ns == made
    # As if nothing had happened.
    monkeypatch.undo()
    assert ctxsim(*words("strategy", adapted, data_root, tmp_path / "whole", *FEW, "--limit", 10))[0] == 0
    for name in ("results.json", "results.md", "results.png", "scores.npy"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_an_evaluation_is_there_when_all_of_it_is(
    ctxsim: Run, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Report, path: Path) -> str:
        raise KeyboardInterrupt

    (tmp_path / "scores").write_text("a\tb\t1\n")
    monkeypatch.setattr(Report, "draw", killed)
    rows = [{"sentence1": "a", "sentence2": "b", "score": score} for score in (1, 2)]
    (tmp_path / "mteb/stsbenchmark-sts").mkdir(parents=True)
    (tmp_path / "mteb/stsbenchmark-sts/test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scores = f"scores:{tmp_path / 'scores'}"
    step = steps.Step.evaluation([scores], tmp_path / "out", tasks=["stsb"], data_root=str(tmp_path))
    for _ in range(2):  # the second time it is not taken for done
        with pytest.raises(KeyboardInterrupt):
            steps.run_steps([step], 1)
    assert (tmp_path / "out/results.md").exists() and not Path(step.leaves).exists()
    monkeypatch.undo()
    steps.run_steps([step], 1)
    assert Path(step.leaves).exists()


def test_fewer_pairs(ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path) -> None:
    code, said, progress = ctxsim(*words("pairs", adapted, data_root, tmp_path / "out", "--minutes", 0.05))
    assert code == 0, progress
    assert arm_row(said, "1.2K pairs")[4:] == ["", ""] and arm_row(said, "1K pairs")
    assert "| 100M pairs |  |  |  | 77.32 |  |" in said and "| 1M pairs |  |  |  | 76.11 | -1.21 |" in said
    assert progress.count("--max-train-minutes 0.02 ") == 2  # four fifths of the minutes, shared out
    few, more = (
        {
            (row["sentence1"], row["sentence2"])
            for path in folder.glob("data/train-*")
            for row in pq.read_table(path).to_pylist()
        }
        for folder in (tmp_path / "out/1K-pairs/pairs", adapted / "pairs")
    )
    assert len(few) == 980 and few < more


def test_signals(ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path) -> None:
    folder, origin_folder = tmp_path / "adapted", tmp_path / "adapted/ctxsim/origin-tiny"
    shutil.copytree(adapted, folder)
    weights = {"cloze": 0.5, "contexts": 1.0, "words": 0.25}
    ChosenWeights(weights, 0.6, {}, 100).save(origin_folder)
    command = words("signals", folder, data_root, tmp_path / "out", *FEW)
    code, said, progress = ctxsim(*command)
    assert code == 0, progress
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    names = [*(f"{name} alone" for name in weights), *(f"without {name}" for name in weights)]
    assert [row["system"] for row in rows] == ["the origin's own weights", *names]
    settings: dict[str, Any] = {"num_contexts": 8, "screen_chunks": 40, "background_size": 30}
    expected = {0: weights, 3: {"words": 1.0}, 4: {"contexts": 1.0, "words": 0.25}}
    for place, signals in expected.items():
        origin = OriginSimilarity.from_pretrained(origin_folder, signals=signals, **settings)
        (result,) = evaluate_similarity(origin, ["stsb"], "validation", data_root)
        assert rows[place]["spearman"]["value"] == pytest.approx(result.main.value, abs=1e-6)
    assert "without cloze: contexts=1 words=0.25" in said and "paper" not in said
    # Weights that were chosen anew make another ablation.
    ChosenWeights(weights | {"words": 1.0}, 0.6, {}, 100).save(origin_folder)
    code, _, err = ctxsim(*command)
    assert code == 2 and "signals was ['cloze=0.5', 'contexts=1', 'words=0.25'], now" in err


def test_signals_that_are_the_same_mixture_are_one_arm(adapted: Path, language_model: Path, tmp_path: Path) -> None:
    def arms(folder: Path) -> dict[str, Any]:
        place = Place(AdaptedFolder.find(str(folder)), tmp_path, 20, 1)
        return {arm.name: arm.settings["signals"] for arm in ABLATIONS["signals"].arms(place)}

    two = {
        "the origin's own weights": ["cloze=1", "words=0.5"],
        "cloze alone": ["cloze=1"],
        "words alone": ["words=1"],
    }
    assert arms(language_model) == two
    one = {"the origin's own weights": ["contexts=1"], "cloze alone": ["cloze=1"], "words alone": ["words=1"]}
    assert arms(adapted) == one


def test_signals_of_a_language_model(ctxsim: Run, language_model: Path, data_root: Path, tmp_path: Path) -> None:
    code, _, progress = ctxsim(*words("signals", language_model, data_root, tmp_path / "out", "--limit", 6))
    assert code == 0, progress
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    assert [row["system"] for row in rows] == ["the origin's own weights", "cloze alone", "words alone"]
    code, _, err = ctxsim(*words("terms", language_model, data_root, tmp_path / "other"))
    assert code == 2 and "with a generator of its own, but" in err and err.count("\n") == 1


def test_arms_of_bridges(language_model: Path, tmp_path: Path) -> None:
    def arms(folder: Path) -> list[Any]:
        return ABLATIONS["bridges"].arms(Place(AdaptedFolder.find(str(folder)), tmp_path, 20, 1))

    own, first, second, _, last = arms(language_model)
    assert (own.system, own.steps) == (f"origin:{language_model}/ctxsim/origin-tiny", ())
    both = [first.steps[0].values["bridges"][0], second.steps[0].values["bridges"][0]]
    assert tuple(both) == BRIDGES and last.steps[0].values["bridges"][:2] == both and own.note.count("`") == 4
    assert (first.steps[0].values["background"], first.steps[0].values["ngrams"]) == (40, "uni+bigrams")
    # An origin with other documents than the chunks is made anew like the others.
    grown = tmp_path / "grown"
    shutil.copytree(language_model, grown, symlinks=True)
    grow_index(grown / "ctxsim/origin-tiny", delete=["texts/3"])
    (step,) = arms(grown)[0].steps
    assert step.values["bridges"] == both


def test_bridges(ctxsim: Run, language_model: Path, data_root: Path, tmp_path: Path) -> None:
    code, said, progress = ctxsim(*words("bridges", language_model, data_root, tmp_path / "out", "--workers", 1))
    assert code == 0, progress
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    assert len(rows) == 5 and len({row["spearman"]["value"] for row in rows}) > 1
    folders = [language_model / "ctxsim/origin-tiny", tmp_path / "out/bridge-1-alone/origin"]
    for row, folder in zip(rows, folders, strict=False):
        origin = OriginSimilarity.from_pretrained(folder, signals={"cloze": 1.0})
        (expected,) = evaluate_similarity(origin, ["stsb"], "validation", data_root)
        assert row["spearman"]["value"] == pytest.approx(expected.main.value, abs=1e-6)
    assert origin.models["llama"].settings.bridges == [BRIDGES[0]]  # type: ignore[attr-defined]
    assert f"bridge 1 alone: `{BRIDGES[0]}`" in said


@pytest.mark.slow
def test_fewer_documents(ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path) -> None:
    code, said, progress = ctxsim(*words("corpus-size", adapted, data_root, tmp_path / "out", *FEW, "--workers", 1))
    assert code == 0, progress
    rows = [line for line in said.splitlines() if " documents, " in line and line.count("|") == 7]
    assert len(rows) == 3 and rows[0].startswith("| all documents, "), "of 456 documents 1 in 64 would be too few"
    (all_tokens, quarter), (*_, fewest) = [float(row.split(", ")[1].split("K")[0]) for row in rows[:2]], rows
    assert all_tokens / quarter == pytest.approx(4, rel=0.3)
    index = np.load(next((tmp_path / "out/1-in-16-documents/origin").glob("segments/*/tokens/tokens.npy")))
    assert f"| 1 in 16 documents, {short_number(len(index))} tokens |" in fewest
    assert "| 10M tokens |  |  |  | 49.41 | -29.06 |" in said
    assert not (tmp_path / "out/all-documents/chunks").exists()


@pytest.mark.slow
def test_two_structures(ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path) -> None:
    code, said, progress = ctxsim(*words("structure", adapted, data_root, tmp_path / "out", "--minutes", 0.1))
    assert code == 0, progress
    assert arm_row(said, "cross")[4:] == ["77.43", "+0.11"] and arm_row(said, "siamese")[4] == "77.32"


def test_the_papers_figures() -> None:
    origin = paper_figures.paper_figure("Origin", "stsb", "spearman")
    assert origin is not None
    arms = {"corpus-size": "100B tokens", "contexts": "500 contexts", "strategy": "two_step", "terms": "all four"}
    for ablation, arm in arms.items():
        assert paper_figures.ABLATIONS[ablation][arm] == pytest.approx(100 * origin)
    full, *others = paper_figures.ABLATIONS["terms"].values()
    assert [round(other - full, 2) for other in others] == [-0.50, -1.11, -1.46, -1.97]  # as the paper prints them
    for ablation in ("corpus-size", "contexts", "pairs"):  # more is better
        figures = list(paper_figures.ABLATIONS[ablation].values())
        assert figures == sorted(figures, reverse=True)
    assert paper_figures.ABLATIONS["pairs"]["100M pairs"] == paper_figures.ABLATIONS["structure"]["siamese"]


def test_arms_of_the_paper_are_ours(adapted: Path, tmp_path: Path) -> None:
    place = Place(AdaptedFolder.find(str(adapted)), tmp_path, 20, 1)
    for name in ("contexts", "strategy", "terms", "structure"):
        arms = [arm.name for arm in ABLATIONS[name].arms(place)]
        assert arms[: len(paper_figures.ABLATIONS[name])] == list(paper_figures.ABLATIONS[name])
    assert ABLATIONS.keys() - paper_figures.ABLATIONS.keys() == {"signals", "bridges"}
    weights = {arm.name: arm.settings for arm in ABLATIONS["terms"].arms(place)}
    assert weights["without left and right"] == {"weights": [1, 1, 0, 0]}
    assert weights["the origin's own weights"] == {}


def test_numbers_in_names() -> None:
    numbers = (999, 1000, 12_345, 980_000, 1_000_000, 34_512_345, 100_000_000_000)
    assert [short_number(number) for number in numbers] == ["999", "1K", "12.3K", "980K", "1M", "34.5M", "100B"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("size",), "strategy, terms, structure, signals, bridges, got size"),
        ((), "signals, bridges, got none"),
        (("terms", "pairs"), "got terms pairs"),
        (("terms", "--minutes", "0"), "--minutes must be above 0"),
        (("terms", "--limit", "1"), "--limit must be at least 2, got 1"),
        (("terms", "--tasks", "sts17"), "unknown task 'sts17'"),
        (("terms", "--weights", "1", "1", "1", "1"), "--weights is what the arms differ by; leave it out"),
        (("signals", "--lexical-weight", "1"), "--lexical-weight is what the arms differ by; leave it out"),
        (("bridges",), "was made without a language model, so there are no bridges"),
        (("pairs", "--mode", "cosine"), "--compare-by is for origins, and the arms are surrogates; leave it out"),
        (("pairs", "--data-root", "nowhere"), "'nowhere/mteb/stsbenchmark-sts', which does not exist"),
    ],
)
def test_what_is_refused(
    ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    code, _, err = ctxsim(
        "ablate", "--adapted", adapted, "--data-root", data_root, "--output", tmp_path / "out", *given
    )
    assert code == 2 and message in err and err.count("\n") == 1


def test_a_folder_that_adapt_did_not_make_or_finish(
    ctxsim: Run, adapted: Path, data_root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "some"
    (folder / "ctxsim").mkdir(parents=True)

    def refused() -> str:
        code, _, err = ctxsim(*words("terms", folder, data_root, tmp_path / "out"))
        assert code == 2 and err.count("\n") == 1
        return err

    assert f"expected a folder made by `ctxsim adapt`, but '{folder}' has no chunks" in refused()
    unfinished(folder / "chunks").mkdir()
    assert "is not finished: it has no ctxsim/origin-*; run the same `ctxsim adapt` again" in refused()
    shutil.rmtree(folder / "chunks.ctxsim-partial")
    for name in ("chunks", "tokenizer", "discriminator", "generator", "ctxsim/origin-tiny"):
        (folder / name).symlink_to(adapted / name)
    unfinished(folder / "pairs").mkdir()
    assert f"'{folder}/pairs' is not finished yet; run the command that makes it again" in refused()
    (folder / "ctxsim/origin-light").symlink_to(adapted / "ctxsim/origin-tiny")
    assert "expected one origin in" in refused() and "found origin-tiny, origin-light" in refused()
