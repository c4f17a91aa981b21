"""Unsupervised recipes of sentence-transformers on the same text, with the same tokenizer, size and minutes as ours.

    python -m benchmarks.compare_unsupervised --adapted DIR --output DIR [--minutes 15] [evaluate's flags]

`simcse` draws a sentence to itself under another dropout, `neighbours` to the sentence after it; both push the other
sentences of the batch away. They start from random weights, as ours does from nothing but the text: what a pretrained
model would add, it would add to both. Ours spent its minutes on several models; `--minutes` is what each recipe gets,
so give them all that `ctxsim adapt` was given.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.training_args import BatchSamplers
from transformers import AutoConfig, AutoTokenizer, TrainerCallback, TrainerControl, TrainerState

from ctxsim_hf import SurrogateModel, read_chunks
from ctxsim_hf.cli import main as ctxsim
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder

RECIPES = ("simcse", "neighbours")
SCALE = 20.0  # the temperature 0.05 of SimCSE


class StopAfter(TrainerCallback):
    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes

    def on_step_end(
        self, args: object, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> TrainerControl:
        control.should_training_stop = time.monotonic() > self.end
        return control


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapted", required=True, help="the folder ctxsim adapt made")
    parser.add_argument("--output", required=True)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    args, evaluation = parser.parse_known_args()
    adapted = AdaptedFolder.find(args.adapted)
    for recipe in RECIPES:
        if not (folder := Path(args.output, recipe)).exists():
            train(recipe, adapted, folder, args)
    systems = [
        f"ours=surrogate:{adapted.surrogate}",
        *(f"{name}=st:{args.output}/{name}" for name in RECIPES),
        "tfidf",
    ]
    sys.exit(ctxsim(["evaluate", *systems, *evaluation, "--chunks", adapted.place("chunks"), "--output", args.output]))


def train(recipe: str, adapted: AdaptedFolder, folder: Path, args: argparse.Namespace) -> None:
    torch.manual_seed(0)
    start = folder.with_name(f"{recipe}-start")
    config = AutoConfig.from_pretrained(
        adapted.surrogate, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, architectures=None
    )
    SurrogateModel(config).save_pretrained(start)
    AutoTokenizer.from_pretrained(adapted.surrogate).save_pretrained(start)
    model = SentenceTransformer(str(start))
    trainer = SentenceTransformerTrainer(
        model,
        SentenceTransformerTrainingArguments(
            output_dir=str(folder.with_name(f"{recipe}-training")),
            max_steps=1_000_000,  # the clock ends it
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=100,
            per_device_train_batch_size=args.batch_size,
            learning_rate=args.learning_rate,
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            save_strategy="no",
            report_to="none",
            seed=0,
        ),
        train_dataset=pairs(recipe, adapted.place("chunks")),
        loss=MultipleNegativesRankingLoss(model, scale=SCALE),
        callbacks=[StopAfter(args.minutes)],
    )
    trainer.train()
    model.save(str(folder))


def pairs(recipe: str, chunks: str) -> Dataset:
    step = 1 if recipe == "neighbours" else 0
    found = read_chunks(chunks, "train").map(
        lambda rows: {
            "anchor": [s for sentences in rows["sentences"] for s in sentences[: len(sentences) - step]],
            "positive": [s for sentences in rows["sentences"] for s in sentences[step:]],
        },
        batched=True,
        remove_columns=read_chunks(chunks, "train").column_names,
    )
    return found.shuffle(seed=0)


if __name__ == "__main__":
    main()
