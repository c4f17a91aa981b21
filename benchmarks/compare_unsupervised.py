"""Unsupervised recipes of sentence-transformers beside ours: the same start, the same text, the same minutes.

    python -m benchmarks.compare_unsupervised --start DIR --chunks DIR --output DIR [--ours DIR ...] [--minutes 15]
        [evaluate's flags]

| recipe | what it trains for |
|---|---|
| simcse | a sentence is near itself under another dropout, far from the others of the batch |
| tsdae | a decoder restores a sentence of which 60 % of the words were deleted from its vector |
| ct | two copies of the encoder agree on a sentence, and on no other of the batch |
| neighbours | a sentence is near the one after it, far from the others of the batch |
| rest | a sentence is near the rest of its chunk, far from the others of the batch |

`--ours` are surrogates trained from the same start; give the recipes all the minutes that ours had, harvesting
included. Learning rates and batches are those of the papers' code for a pretrained start, unless set.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import (
    ContrastiveTensionLossInBatchNegatives,
    DenoisingAutoEncoderLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.training_args import BatchSamplers
from transformers import TrainerCallback, TrainerControl, TrainerState

from ctxsim_hf import read_chunks
from ctxsim_hf.cli import main as ctxsim

SCALE = 20.0  # the temperature 0.05 of SimCSE
KEPT_WORDS = 0.4  # of TSDAE
# Recipe -> learning rate and batch size: SimCSE's for BERT, TSDAE's, and CT's with negatives of the batch; fewer
# rows where they are long.
RECIPES = {"simcse": (3e-5, 64), "tsdae": (3e-5, 8), "ct": (2e-5, 64), "neighbours": (3e-5, 64), "rest": (3e-5, 32)}


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
    parser.add_argument("--start", required=True, help="an encoder that SentenceTransformer opens")
    parser.add_argument("--chunks", required=True, help="made by ctxsim chunk; the recipes read its training split")
    parser.add_argument("--output", required=True)
    parser.add_argument("--ours", nargs="*", default=[], help="surrogates trained from the same start")
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--batch-size", type=int, help="instead of each recipe's own")
    parser.add_argument("--learning-rate", type=float, help="instead of each recipe's own")
    parser.add_argument("--max-steps", type=int, default=1_000_000, help="for a trial; otherwise the clock ends it")
    args, evaluation = parser.parse_known_args()
    for recipe in args.recipes:
        if not (folder := Path(args.output, recipe)).exists():
            train(recipe, folder, args)
    systems = [
        f"start=st:{args.start}",
        *(f"{Path(ours).name}=surrogate:{ours}" for ours in args.ours),
        *(f"{recipe}=st:{args.output}/{recipe}" for recipe in args.recipes),
        "tfidf",
    ]
    sys.exit(ctxsim(["evaluate", *systems, *evaluation, "--chunks", args.chunks, "--output", args.output]))


def train(recipe: str, folder: Path, args: argparse.Namespace) -> None:
    torch.manual_seed(0)
    learning_rate, batch_size = RECIPES[recipe]
    model = SentenceTransformer(args.start, device="cpu")
    trainer = SentenceTransformerTrainer(
        model,
        SentenceTransformerTrainingArguments(
            output_dir=str(folder.with_name(f"{recipe}-training")),
            max_steps=args.max_steps,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=50,
            per_device_train_batch_size=args.batch_size or batch_size,
            learning_rate=args.learning_rate or learning_rate,
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            save_strategy="no",
            report_to="none",
            seed=0,
        ),
        train_dataset=rows(recipe, args.chunks),
        loss=loss_of(recipe, model),
        callbacks=[StopAfter(args.minutes)],
    )
    trainer.train()
    model.save(str(folder))


def loss_of(recipe: str, model: SentenceTransformer) -> torch.nn.Module:
    if recipe == "tsdae":
        return DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    if recipe == "ct":
        return ContrastiveTensionLossInBatchNegatives(model, scale=SCALE)
    return MultipleNegativesRankingLoss(model, scale=SCALE)


def rows(recipe: str, chunks: str) -> Dataset:
    return Dataset.from_generator(make_rows, gen_kwargs={"recipe": recipe, "chunks": chunks}).shuffle(seed=0)


def make_rows(recipe: str, chunks: str) -> Iterator[dict[str, Any]]:
    draw = random.Random(0)
    for sentences in read_chunks(chunks, "train")["sentences"]:
        for place, sentence in enumerate(sentences):
            if recipe == "ct":
                yield {"sentence": sentence}
            elif recipe == "neighbours":
                if place + 1 < len(sentences):
                    yield {"anchor": sentence, "positive": sentences[place + 1]}
            elif recipe == "rest":
                if rest := " ".join(sentences[:place] + sentences[place + 1 :]):
                    yield {"anchor": sentence, "positive": rest}
            else:
                yield {"anchor": damaged(sentence, draw) if recipe == "tsdae" else sentence, "positive": sentence}


def damaged(sentence: str, draw: random.Random) -> str:
    """The sentence without most of its words."""
    words = sentence.split()
    return " ".join(word for word in words if draw.random() < KEPT_WORDS) or draw.choice(words or [sentence])


if __name__ == "__main__":
    main()
