"""`ctxsim train-tokenizer`: sentencepiece's ids on any text, RoBERTa's special tokens."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from ctxsim_hf.text.tokenizer import build_normalizer, build_tokenizer, train_sentencepiece

Run = Callable[..., tuple[int, str, str]]
ODD_TEXTS = [
    "",
    " ",
    "Plain words, twice: plain words.",
    "MIXED Case ÉCOLE straße İstanbul",
    "emoji 😀👩‍👩‍👧 flags 🇩🇪 and skin 👍🏽",
    "日本語のテキスト と Ελληνικά и русский עברית हिन्दी",
    "rare 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁ ½ … “quotes” — ℃ Ⅷ",
    "tabs\tand\nnew lines\r\n  and   many    spaces ",
    "▁ sentencepiece's own ▁space▁",
    "<s> </s> <pad> <unk> <mask> and <0x41> <0xE2> in a text",
    "a\u0301 combining, zero\u200bwidth, soft\u00adhyphen, \ufeffBOM",
    "x" * 3000,
    "~!@#$%^&*()_+`-={}|[]\\:\";'<>?,./",
]


@pytest.fixture(scope="module", params=[False, True], ids=["cased", "lowercase"])
def both(request: pytest.FixtureRequest) -> tuple[SentencePieceProcessor, Tokenizer]:
    normalizer = build_normalizer(request.param)
    sentences = [normalizer.normalize_str(make_text(3, seed)) for seed in range(300)]
    model = train_sentencepiece(sentences, 600)
    return model, build_tokenizer(model, normalizer)


def assert_equal_ids(model: SentencePieceProcessor, tokenizer: Tokenizer, text: str) -> None:
    normalised = tokenizer.normalizer.normalize_str(text)
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert ids == model.encode(normalised), text
    assert tokenizer.decode(ids, skip_special_tokens=False).strip() == normalised


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_equal_ids_on_odd_texts(both: tuple[SentencePieceProcessor, Tokenizer], text: str) -> None:
    model, tokenizer = both
    tokenizer.encode_special_tokens = True
    assert_equal_ids(model, tokenizer, text)


def test_equal_ids_on_real_text(both: tuple[SentencePieceProcessor, Tokenizer], shared_data: Path) -> None:
    import gzip

    model, tokenizer = both
    tokenizer.encode_special_tokens = True
    for name in ("enwiki", "newsgroups20", "novels"):
        with gzip.open(shared_data / f"corpora/{name}/train.jsonl.gz", "rt", encoding="utf-8") as file:
            for _, line in zip(range(20), file, strict=False):
                for paragraph in json.loads(line)["text"].split("\n\n")[:20]:
                    assert_equal_ids(model, tokenizer, paragraph)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "texts").mkdir()
    for i in range(40):
        (folder / f"texts/{i}.txt").write_text(make_text(20, i))
    assert main(["chunk", "--corpus", str(folder / "texts"), "--output", str(folder / "chunks")]) == 0
    words = ["train-tokenizer", "--chunks", str(folder / "chunks"), "--vocab-size", "700", "--lowercase"]
    for name in ("tokenizer", "again"):
        assert main([*words, "--output", str(folder / name)]) == 0
    return folder


def test_special_tokens_are_roberta_s_in_a_fresh_process(folder: Path) -> None:
    code = (
        "import json, sys\nfrom transformers import AutoTokenizer\nt = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "print(json.dumps([t.bos_token_id, t.pad_token_id, t.eos_token_id, t.unk_token_id, t.mask_token_id, len(t),\n"
        "    t.cls_token_id, t.sep_token_id, t('a b')['input_ids'], t('a', 'b')['input_ids'],\n"
        "    t('<s> </s> <mask>')['input_ids'], t('A B')['input_ids'], list(t('a'))]))"
    )
    out = subprocess.check_output([sys.executable, "-c", code, str(folder / "tokenizer")], text=True)
    bos, pad, eos, unk, mask, size, cls, sep, single, pair, marks, upper, names = json.loads(out)
    assert (bos, pad, eos, unk, cls, sep) == (0, 1, 2, 3, 0, 2)
    assert mask == size - 1
    assert size <= 700
    assert single[0] == 0 and single[-1] == 2
    assert [token for token in pair if token in (0, 2)] == [0, 2, 2, 2] and pair[0] == 0 and pair[-1] == 2
    assert not {0, 2, mask} & set(marks[1:-1]), "special tokens written in a text are plain characters"
    assert upper == single
    assert names == ["input_ids", "attention_mask"]


def test_equal_runs_give_equal_bytes(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "stage.json"):
        assert (folder / "tokenizer" / name).read_bytes() == (folder / "again" / name).read_bytes()


def test_the_sample_is_bounded_and_leaves_out_held_out_documents(folder: Path, ctxsim: Run, tmp_path: Path) -> None:
    words = ("train-tokenizer", "--chunks", folder / "chunks", "--vocab-size", 600, "--max-sample-sentences", 200)
    assert ctxsim(*words, "--output", tmp_path / "out")[0] == 0
    assert 150 < json.loads((tmp_path / "out/stage.json").read_text())["counts"]["sample_sentences"] < 250
    whole = json.loads((folder / "tokenizer/stage.json").read_text())["counts"]["sample_sentences"]
    assert whole == json.loads((folder / "chunks/stage.json").read_text())["counts"]["sentences"]["train"]


def test_padding_and_truncation(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
    batch = tokenizer(["a", "a b c d e f g"], padding=True, truncation=True, max_length=5, return_tensors="np")
    assert batch["input_ids"].shape == (2, 5)
    assert batch["input_ids"][0, -1] == 1 and batch["attention_mask"][0, -1] == 0
    assert batch["input_ids"][1, -1] == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--vocab-size", 50], "--vocab-size must be at least"),
        (["--chunks", "nowhere"], "expected a folder made by `ctxsim chunk`, but 'nowhere' does not exist"),
    ],
)
def test_bad_input(folder: Path, ctxsim: Run, tmp_path: Path, flags: list[object], message: str) -> None:
    code, _, err = ctxsim("train-tokenizer", "--chunks", folder / "chunks", "--output", tmp_path / "out", *flags)
    assert code == 2 and message in err


def test_more_characters_than_the_vocabulary_has_room_for() -> None:
    """As a Chinese corpus may have: frequent ones become pieces, rare ones bytes, and nothing is lost."""
    characters = [chr(0x4E00 + number) for number in range(2000)]
    sentences = ["".join(characters[start::50]) + characters[start % 7] * 3 for start in range(50)]
    normalizer = build_normalizer(lowercase=False)
    tokenizer = build_tokenizer(train_sentencepiece(sentences, 600), normalizer)
    assert tokenizer.get_vocab_size() <= 601  # with <mask>
    for text in (*sentences, "人 and 水"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert characters[0] in tokenizer.encode(characters[1] + characters[0]).tokens
