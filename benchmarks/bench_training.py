"""Training: the loop against a bare PyTorch loop, padding, the light generator against the seq2seq one, scoring from
stored vectors against whole forward passes, and a table of words with freed memory kept and given back.

    python -m benchmarks.bench_training [--chunks DIR --tokenizer DIR]        (default: the demo corpus)
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.demo_data import add_flags, chunks_and_tokenizer
from benchmarks.measuring import best
from benchmarks.report import report
from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.context_models.discriminator.modeling import SENTENCES_PER_GROUP
from ctxsim_hf.context_models.discriminator.training import DiscriminatorArguments, DiscriminatorTask
from ctxsim_hf.context_models.generator_arguments import GeneratorArguments
from ctxsim_hf.context_models.light.training import LightGeneratorTask
from ctxsim_hf.context_models.seq2seq.training import Seq2SeqGeneratorTask
from ctxsim_hf.runtime.memory import reused_memory
from ctxsim_hf.train.loop import TrainingTask, make_accelerator, train
from ctxsim_hf.train.loop_arguments import LoopArguments

TABLE, SENTENCES, TOKENS = (16_000, 1024), 64, 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_flags(parser)
    parser.add_argument("--steps", type=int, default=20, help="training steps of each measurement")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        chunks, tokenizer = chunks_and_tokenizer(args, Path(scratch))
        common = {"chunks": chunks, "tokenizer": tokenizer, "output": f"{scratch}/out", "max_steps": args.steps}
        disc = DiscriminatorArguments(**common)
        light = GeneratorArguments(**common)
        seq2seq = GeneratorArguments(**common, direction="all", preset="small", tokens_per_batch=4096)
        data = ContextData.open(disc)
        tasks: dict[str, tuple[LoopArguments, Callable[[], TrainingTask]]] = {
            "discriminator": (disc, lambda: DiscriminatorTask(disc, data)),
            "light generator": (light, lambda: LightGeneratorTask(light, data)),
            "seq2seq generator": (seq2seq, lambda: Seq2SeqGeneratorTask(seq2seq, data)),
        }
        rows: list[dict[str, Any]] = []
        speeds: dict[str, dict[str, float]] = {}
        for name, (arguments, make_task) in tasks.items():
            bare, ours = (
                max(measure(arguments, make_task) for _ in range(args.repeat)) for measure in (bare_loop, our_loop)
            )
            speeds[name] = {"bare_tokens_per_second": bare, "our_tokens_per_second": ours}
            rows.append({"measure": f"{name}: our loop over a bare one", "ratio": ours / bare, "wanted": ">= 0.9"})
        ratio = (
            speeds["light generator"]["our_tokens_per_second"] / speeds["seq2seq generator"]["our_tokens_per_second"]
        )
        rows.append({"measure": "light over small seq2seq, tokens/s", "ratio": ratio, "wanted": ">= 20"})
        rows += padding(Seq2SeqGeneratorTask(seq2seq, data))
        rows.append(discriminator_padding(DiscriminatorTask(disc, data)))
        rows.append(stored_vectors(DiscriminatorTask(disc, data)))
        rows.append(kept_memory(args.steps, args.repeat))
    report("training", rows, speeds)


def real_tokens(tensors: dict[str, torch.Tensor]) -> int:
    """Source and target tokens, without padding. In the shared form every sentence counts in each of its places."""
    if "labels" in tensors and "sentence_ids" in tensors:
        return int(tensors["attention_mask"].sum() + (tensors["labels"] != -100).sum())
    lengths = tensors["attention_mask"].sum(1)
    places = [tensors["left_index"], tensors["sentence_index"], tensors["right_index"]]
    return int(sum(lengths[place[place >= 0]].sum() for place in places))


def bare_loop(arguments: LoopArguments, make_task: Callable[[], TrainingTask]) -> float:
    """Tokens a second of the least that trains."""
    torch.manual_seed(0)
    task = make_task()
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=1e-3, fused=True)
    batches = task.batches(0)[: arguments.max_steps]
    task.model.train()
    tokens, start = 0, time.perf_counter()
    for step, batch in enumerate(batches):
        tensors = task.collate(batch, step)
        tokens += real_tokens(tensors)
        task.model(**tensors).loss.backward()
        torch.nn.utils.clip_grad_norm_(task.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return tokens / (time.perf_counter() - start)


def our_loop(arguments: LoopArguments, make_task: Callable[[], TrainingTask]) -> float:
    task = make_task()
    batches = task.batches(0)
    task.batches = lambda epoch: batches  # type: ignore[method-assign]  # planned before the clock starts, as above
    tokens = sum(real_tokens(task.collate(batch, 0)) for batch in batches[: arguments.max_steps])
    task.evaluate = lambda model: {}  # type: ignore[method-assign]
    accelerator = make_accelerator(arguments)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train(task, arguments, Path(folder), accelerator)
        return tokens / (time.perf_counter() - start)


def padding(task: Seq2SeqGeneratorTask) -> list[dict[str, Any]]:
    """Share of padding among the tokens of an epoch: ours, and batches of as many contexts drawn at random."""
    shares = []
    rng = np.random.default_rng(0)
    batches = [batch for batch in task.batches(0) if batch.direction == "sentence"]
    shuffled = rng.permutation(np.concatenate([batch.contexts for batch in batches]))
    plain = np.array_split(shuffled, len(batches))
    for groups in ([batch.contexts for batch in batches], plain):
        real = padded = 0
        for contexts in groups:
            for lengths in task.train.lengths(contexts, "sentence"):
                real, padded = real + int(lengths.sum()), padded + int(lengths.max()) * len(contexts)
        shares.append(1 - real / padded)
    return [
        {"measure": "padding, seq2seq, like lengths together", "ratio": shares[0], "wanted": "<= 0.10"},
        {"measure": "padding, seq2seq, plain shuffled batches", "ratio": shares[1], "wanted": "for comparison"},
    ]


def discriminator_padding(task: DiscriminatorTask) -> dict[str, Any]:
    """Share of padding in what goes through the LSTM: groups of sentences sorted by length."""
    real = padded = 0
    for number, batch in enumerate(task.batches(0)[:20]):
        lengths = task.collate(batch, number)["attention_mask"].sum(1).sort(descending=True).values
        for group in lengths.split(SENTENCES_PER_GROUP):
            real, padded = real + int(group.sum()), padded + int(group[0]) * len(group)
    return {"measure": "padding, discriminator", "ratio": 1 - real / padded, "wanted": "<= 0.10"}


@torch.no_grad()
def stored_vectors(task: DiscriminatorTask) -> dict[str, Any]:
    """One sentence against many contexts: parts stored beforehand, over one forward pass for each context."""
    model, data = task.model.eval(), task.data
    contexts = data.held_out.contexts_of(np.arange(min(500, len(data.held_out.chunk_starts) - 1)))[:2000]
    tensors = task.held_out(contexts)
    vectors = model.encode_sentences(tensors["input_ids"], tensors["attention_mask"])
    left, right = vectors[tensors["left_index"][:, 0]], vectors[tensors["right_index"][:, 0]]
    stored = model.context_part(left, right)
    sentence = model.sentence_part(vectors[:1])

    def from_stored() -> Any:
        return model.score_parts(stored, sentence)

    def forward() -> Any:
        return model(**tensors).logits

    ratio = best(forward) / best(from_stored)
    return {"measure": "scoring from stored vectors over forward", "ratio": ratio, "wanted": ">= 50"}


def kept_memory(steps: int, repeat: int) -> dict[str, Any]:
    """Steps of training a table of words, with freed memory given back to the system over kept; see memory.py."""
    table = torch.nn.Embedding(*TABLE)
    optimizer = torch.optim.AdamW(table.parameters(), fused=True)
    tokens = torch.randint(TABLE[0], (SENTENCES, TOKENS))

    def train_table() -> None:
        for _ in range(steps):
            vectors = torch.nn.functional.normalize(table(tokens).mean(1))
            (vectors @ vectors.T).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    given_back = best(train_table, repeat)
    with reused_memory():
        kept = best(train_table, repeat)
    return {"measure": "a table of words, memory given back over kept", "ratio": given_back / kept, "wanted": ">= 1.5"}


if __name__ == "__main__":
    main()
