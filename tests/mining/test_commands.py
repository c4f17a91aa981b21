"""`ctxsim duplicates` and `ctxsim cluster`: what they read, find, write and refuse."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from tiny_surrogate import mixed_sentences, save_tiny

import ctxsim_hf
from ctxsim_hf import SentenceEncoder
from ctxsim_hf.evaluation.own_pairs import load_pairs
from ctxsim_hf.mining import duplicates
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.working import WorkingFolder

Run = Callable[..., tuple[int, str, str]]
COPIES = ["The old <b>cat</b> sat on the mat & slept.", "The old <b>cat</b> sat on the mat & slept!"]
SENTENCES = [
    *(f"{sentence} and four words more" for sentence in mixed_sentences(60)),
    *COPIES,
    "Too short.",
    COPIES[0],
]


@pytest.fixture(scope="module")
def surrogate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("surrogate"))


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


def test_duplicates_in_a_file(ctxsim: Run, surrogate: Path, lines: Path, tmp_path: Path) -> None:
    written = [tmp_path / f"pairs{ending}" for ending in (".jsonl", ".tsv", ".html")]
    words = ("duplicates", "--surrogate", surrogate, "--input", lines, "--threshold", 0.5, "--max-pairs", 30)
    code, out, err = ctxsim(*words, "--output", *written)
    assert code == 0, err
    assert out.startswith(
        "30 pairs among 62 different sentences: similarity of at least 0.500\n1 sentences occur more"
    )
    rows = [json.loads(line) for line in written[0].read_text().splitlines()]
    assert f"\n{rows[0]['score']:.3f}  " in out and f"\n{rows[27]['score']:.3f}  {rows[27]['sentence1']}" in out
    assert "10 of them, from the most to the least similar:" in out
    scores = SentenceEncoder.from_pretrained(surrogate).similarity(
        [row["sentence1"] for row in rows], [row["sentence2"] for row in rows]
    )
    assert [row["score"] for row in rows] == pytest.approx(scores.tolist(), abs=1e-6)
    assert sorted(scores, reverse=True) == pytest.approx(scores.tolist(), abs=1e-6)
    copies = next(row for row in rows if {row["sentence1"], row["sentence2"]} == set(COPIES))
    assert (copies["place1"], copies["place2"]) == ("line 61", "line 62")
    again = load_pairs(str(written[1]))  # columns as other commands read them
    assert list(again.sentences1) == [" ".join(row["sentence1"].split()) for row in rows]
    assert list(again.sentences2) == [" ".join(row["sentence2"].split()) for row in rows]
    page = written[2].read_text()
    assert "&lt;b&gt;cat&lt;/b&gt;" in page.replace("<mark", "").replace("</mark>", "") and "<b>cat" not in page
    assert "http" not in page and "<script" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(p.name for p in [lines, *written]), "no vectors"


def test_duplicates_of_chunks_and_documents(surrogate: Path, planted: Path, tmp_path: Path) -> None:
    of_chunks = ctxsim_hf.find_duplicates(surrogate, chunks=planted / "chunks", max_pairs=20)
    assert of_chunks.threshold.percentile is not None and 99 < of_chunks.threshold.percentile < 100
    assert all(pair.score >= of_chunks.threshold.similarity for pair in of_chunks)
    assert "of unrelated pairs" in str(of_chunks) and of_chunks._repr_html_().count("<tr>") == len(of_chunks) + 1
    of_documents = ctxsim_hf.find_duplicates(surrogate, corpus=planted / "texts.jsonl", threshold=0.9, max_pairs=20)
    assert of_documents.num_sentences >= of_chunks.num_sentences and len(of_documents) == 20


def test_any_sentence_transformer(lines: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(save_tiny(tmp_path / "tiny"))
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu").save(
        str(tmp_path / "st")
    )
    found = ctxsim_hf.find_duplicates(tmp_path / "st", input=lines, percentile=90)
    assert any({pair.sentence1, pair.sentence2} == set(COPIES) for pair in found)


def test_communities(ctxsim: Run, surrogate: Path, lines: Path, tmp_path: Path) -> None:
    written = [tmp_path / f"groups{ending}" for ending in (".jsonl", ".tsv", ".html")]
    words = ("cluster", "--surrogate", surrogate, "--input", lines, "--percentile", 95, "--min-size", 2)
    code, out, err = ctxsim(*words, "--output", *written)
    assert code == 0, err
    rows = [json.loads(line) for line in written[0].read_text().splitlines()]
    sizes = [row["size"] for row in rows]
    assert len(sizes) > 1 and sizes == sorted(sizes, reverse=True) and sizes[-1] >= 2
    assert out.startswith(f"{len(rows)} communities of {sum(sizes)} among 62 different sentences")
    for row in rows:
        sentences = [member["sentence"] for member in row["members"]]
        assert row["typical"] in sentences and len(sentences) == row["size"]
        centre = [sentences[0]] * len(sentences)
        similarities = SentenceEncoder.from_pretrained(surrogate).similarity(centre, sentences)
        assert [member["similarity"] for member in row["members"]] == pytest.approx(similarities.tolist(), abs=1e-5)
    heading, *cells = [line.split("\t") for line in written[1].read_text().splitlines()]
    assert len(cells) == sum(sizes) and sum(row[heading.index("typical")] == "1" for row in cells) == len(rows)
    assert written[2].read_text().count("<details") == len(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected one of --chunks, --corpus and --input, got none"),
        ({"chunks": "a", "input": "b"}, "got --chunks and --input"),
        ({"input": "a", "threshold": 0.5, "percentile": 99.0}, "leave one out"),
        ({"input": "a", "output": "pairs.csv"}, "--output must end in .jsonl, .tsv, .html, got 'pairs.csv'"),
        ({"input": "a", "percentile": 100.0}, "--percentile must be at least 0 and below 100"),
    ],
)
def test_misuse(surrogate: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ctxsim_hf.find_duplicates(surrogate, **options)  # type: ignore[arg-type]


def test_what_is_read_and_what_stands_beside_is_left_alone(surrogate: Path, tmp_path: Path) -> None:
    lines, other = tmp_path / "lines.tsv", tmp_path / "pairs.tsv.vectors.npy"
    lines.write_text("\n".join(SENTENCES))
    other.write_text("mine")
    for name in ("input", "corpus"):
        with pytest.raises(UserError, match=r"lines.tsv' is read and would be overwritten; choose another --output"):
            ctxsim_hf.find_duplicates(surrogate, **{name: lines}, output=lines)
    ctxsim_hf.find_duplicates(surrogate, input=lines, threshold=0.9, output=tmp_path / "pairs.tsv")
    assert other.read_text() == "mine" and lines.read_text() == "\n".join(SENTENCES)
    with (
        WorkingFolder(tmp_path / "pairs.tsv", "a file"),
        pytest.raises(UserError, match="another run is writing into"),
    ):
        ctxsim_hf.find_duplicates(surrogate, input=lines, threshold=0.9, output=tmp_path / "pairs.tsv")


def test_too_few_sentences(surrogate: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("Too short.\nOnly one that is long enough.\n")
    with pytest.raises(UserError, match="expected two different sentences of 4 words or more, found 1"):
        ctxsim_hf.cluster(surrogate, input=tmp_path / "few.txt")


def test_killed_while_comparing_it_does_not_encode_again(
    surrogate: Path, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, folder = tmp_path / "pairs.tsv", Path(shutil.copytree(surrogate, tmp_path / "encoder"))
    vectors = tmp_path / "pairs.tsv.vectors.ctxsim-partial/output/vectors.npy"

    def find() -> None:
        ctxsim_hf.find_duplicates(folder, input=lines, threshold=0.9, output=output)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def encoded() -> int:
        """Return when the vectors were written that a killed run compared."""
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(duplicates, "mine_pairs", interrupt)
            find()
        return vectors.stat().st_mtime_ns

    first = encoded()
    assert encoded() == first
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # damaged
    damaged = vectors.stat().st_mtime_ns
    assert encoded() != damaged and vectors.read_bytes() == whole
    lines.write_text("\n".join(reversed(SENTENCES)))
    assert encoded() and vectors.read_bytes() != whole, "other sentences"
    other = vectors.read_bytes()
    tensors = load_file(folder / "model.safetensors")
    save_file({name: 2 * tensor for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    assert encoded() and vectors.read_bytes() != other, "other weights"
    find()
    assert output.exists() and not vectors.parents[1].exists()
