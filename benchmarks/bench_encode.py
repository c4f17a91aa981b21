"""The sentence encoder in torch and in ONNX beside SentenceTransformer.encode at its defaults, static tables beside
model2vec, and the search.

    python -m benchmarks.bench_encode [--chunks DIR --tokenizer DIR]        (default: the demo corpus)

Sentences of a corpus, none twice, in random order; weights are random, which changes no time. The systems take turns
over slices of the sentences, so that whatever else the machine does meets them all.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertConfig, RobertaConfig

from benchmarks.demo_data import add_flags, chunks_and_tokenizer, distinct_sentences
from benchmarks.measuring import anonymous_memory, in_turn
from benchmarks.report import report
from ctxsim_hf import SentenceEncoder, SurrogateModel
from ctxsim_hf.encoder.modeling_surrogate import static_surrogate
from ctxsim_hf.runtime.presets import preset_sizes
from ctxsim_hf.surrogate.export_command import ExportArguments
from ctxsim_hf.surrogate.export_command import run as export
from ctxsim_hf.surrogate.search_index import import_faiss

Encode = Callable[[list[str]], Any]
PAPER = {"plain batches": 48, "length batching": 91, "SBERT, plain batches": 41, "SBERT, length batching": 88}
WANTED = {"torch fp32": ">= 1.1", "ONNX fp32": "", "ONNX int8": ">= 2"}  # speed over SentenceTransformer's
SLICES = 5
VECTOR_SIZE = 384
MINILM = "BERT of MiniLM's size"
MINILM_SIZES = {"hidden_size": 384, "layers": 6, "heads": 12, "ffn_size": 1536}
STATIC_SIZE, STATIC_SENTENCES = 256, 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--sentences", type=int, default=5000)
    parser.add_argument("--presets", nargs="*", default=["base", "small", "light"], help="the first is held to ratios")
    parser.add_argument("--vectors", type=int, default=1_000_000, help="to search")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        chunks, tokenizer = chunks_and_tokenizer(args, Path(scratch))
        sentences = distinct_sentences(chunks, args.sentences)
        seconds, vectors = {}, {}
        for preset in [*args.presets, MINILM]:
            systems = make_systems(tokenizer, Path(scratch) / preset, preset, plain=preset == args.presets[0])
            seconds[preset], vectors[preset] = encode_in_turn(systems, sentences)
            print(preset, {name: round(len(sentences) / taken) for name, taken in seconds[preset].items()})
        static = bench_static(tokenizer, Path(scratch) / "static", distinct_sentences(chunks, STATIC_SENTENCES))
        search = bench_search(Path(scratch), args.vectors)
    report_all(args.presets[0], len(sentences), seconds, vectors[args.presets[0]], static, search)


def make_systems(tokenizer: str, folder: Path, preset: str, plain: bool) -> dict[str, Encode]:
    surrogate = str(folder / "torch")
    make_surrogate(tokenizer, surrogate, preset)
    onnx: dict[str, SentenceEncoder] = {}
    for precision in (None, "int8"):
        output = str(folder / f"onnx-{precision}")
        export(ExportArguments(surrogate=surrogate, output=output, quantize=precision))
        onnx[f"ONNX {precision or 'fp32'}"] = SentenceEncoder.from_pretrained(output)
    ours, theirs = SentenceEncoder.from_pretrained(surrogate), SentenceTransformer(surrogate, device="cpu")
    systems: dict[str, Encode] = {
        "SentenceTransformer": lambda sentences: theirs.encode(sentences, normalize_embeddings=True),
        "torch fp32": lambda sentences: ours.encode(sentences, normalize_embeddings=True),
        **{name: encoder.encode for name, encoder in onnx.items()},
    }
    return systems | ({"torch fp32, plain batches": PlainBatches(ours)} if plain else {})


class PlainBatches:
    """Batches of 32 as the sentences come, as the paper's figure without length batching."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder

    def __call__(self, sentences: list[str]) -> np.ndarray:
        starts = range(0, len(sentences), 32)
        encode = self.encoder.encode
        options: dict[str, Any] = {"normalize_embeddings": True, "tokens_per_batch": 1 << 30}  # one batch
        return np.concatenate([np.asarray(encode(sentences[start : start + 32], **options)) for start in starts])


def make_surrogate(tokenizer_folder: str, folder: str, preset: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    sizes = MINILM_SIZES if preset == MINILM else preset_sizes(preset, "surrogate")
    torch.manual_seed(0)
    config = (BertConfig if preset == MINILM else RobertaConfig)(
        vocab_size=len(tokenizer),
        hidden_size=sizes["hidden_size"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["ffn_size"],
        max_position_embeddings=130,
        pad_token_id=tokenizer.pad_token_id,
    )
    SurrogateModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def encode_in_turn(systems: dict[str, Encode], sentences: list[str]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """The seconds of each system over all sentences, and its vectors."""
    for encode in systems.values():
        encode(sentences[:32])  # whatever is done once
    bounds = np.linspace(0, len(sentences), SLICES + 1, dtype=int)
    return in_turn(systems, [sentences[start:end] for start, end in pairwise(bounds)])


def bench_static(tokenizer_folder: str, folder: Path, sentences: list[str]) -> dict[str, float]:
    """Sentences a second of one static table by three packages; each in one process."""
    from model2vec import StaticModel

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    table = torch.randn(len(tokenizer), STATIC_SIZE, generator=torch.Generator().manual_seed(0))
    static_surrogate(SurrogateModel, table).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    ours, theirs = SentenceEncoder.from_pretrained(folder), SentenceTransformer(str(folder), device="cpu")
    peer = StaticModel(table.numpy(), Tokenizer.from_file(str(folder / "tokenizer.json")), {"normalize": True})
    systems: dict[str, Encode] = {
        "SentenceEncoder": lambda part: ours.encode(part, normalize_embeddings=True),
        "SentenceTransformer": lambda part: theirs.encode(part, normalize_embeddings=True),
        "model2vec": lambda part: peer.encode(part, use_multiprocessing=False),
    }
    return {name: len(sentences) / seconds for name, seconds in encode_in_turn(systems, sentences)[0].items()}


def bench_search(scratch: Path, number: int) -> dict[str, Any]:
    """Exact search as SearchIndex does it: over a memory-mapped file, one query at a time and 100 at once."""
    faiss, draw = import_faiss(), np.random.default_rng(0)
    with (scratch / "vectors.f32").open("wb") as file:
        for start in range(0, number, 50_000):
            part = draw.standard_normal((min(50_000, number - start), VECTOR_SIZE), dtype=np.float32)
            file.write((part / np.linalg.norm(part, axis=1, keepdims=True)).data)
    queries = draw.standard_normal((100, VECTOR_SIZE), dtype=np.float32)
    before, opening = anonymous_memory(), time.perf_counter()
    stored = np.memmap(scratch / "vectors.f32", np.float32, "r", shape=(number, VECTOR_SIZE))
    opening = time.perf_counter() - opening
    stored.max()  # as after the first query: the file is in the system's cache
    figures: dict[str, Any] = {"vectors": number, "numbers each": VECTOR_SIZE, "seconds to open": opening}
    for name, batches in (("one at a time", queries[:20, None]), ("100 at once", queries[None])):
        start = time.perf_counter()
        for batch in batches:
            faiss.knn(np.ascontiguousarray(batch), stored, 10, metric=faiss.METRIC_INNER_PRODUCT)
        asked = batches.shape[0] * batches.shape[1]
        figures[f"queries a second, {name}"] = asked / (time.perf_counter() - start)
    figures["MB of memory of its own"] = (anonymous_memory() - before) / 1e6
    figures["MB of the file"] = stored.nbytes / 1e6
    return figures


def speeds_over_theirs(preset: str, seconds: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "measure": f"{name} ({preset}): sentences a second over SentenceTransformer's",
            "ratio": seconds["SentenceTransformer"] / seconds[name],
            "wanted": wanted,
        }
        for name, wanted in WANTED.items()
    ]


def report_all(
    preset: str,
    num_sentences: int,
    seconds: dict[str, dict[str, float]],
    vectors: dict[str, np.ndarray],
    static: dict[str, float],
    search: dict[str, Any],
) -> None:
    rows = [
        *speeds_over_theirs(preset, seconds[preset]),
        {
            "measure": f"torch fp32 ({preset}): length batching over plain batches",
            "ratio": seconds[preset]["torch fp32, plain batches"] / seconds[preset]["torch fp32"],
            "wanted": f"the paper's {PAPER['length batching'] / PAPER['plain batches']:.2f}",
        },
        *speeds_over_theirs(MINILM, seconds[MINILM]),
        {
            "measure": f"static, {STATIC_SIZE} numbers: sentences a second over model2vec's StaticModel",
            "ratio": static["SentenceEncoder"] / static["model2vec"],
            "wanted": ">= 1",
        },
    ]
    theirs = vectors["SentenceTransformer"]
    details = {
        "sentences": num_sentences,
        "threads": torch.get_num_threads(),
        "sentences a second": {
            name: {system: num_sentences / taken for system, taken in systems.items()}
            for name, systems in seconds.items()
        },
        "the paper's sentences a second, base on a CPU": PAPER,
        "largest difference of a number from SentenceTransformer's": {
            name: float(np.abs(vectors[name] - theirs).max()) for name in WANTED
        },
        "least cosine with SentenceTransformer's": {
            name: float((vectors[name] * theirs).sum(1).min()) for name in WANTED
        },
        "sentences a second, static": static,
        "search": search,
    }
    report("encode", rows, details)
    for name, value in details.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
