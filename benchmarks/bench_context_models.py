"""A causal language model as a context model: cloze vectors beside a plain loop of transformers calls, and right terms
with the left side computed once beside the same terms without.

    python -m benchmarks.bench_context_models [--chunks DIR --tokenizer DIR] [--context-model MODEL]

By default the demo corpus and a model of SmolLM2-135M's sizes with random weights, which changes no time. Sentences of
a corpus, none twice, in random order. The systems take turns over slices of them, so that whatever else the machine
does meets them all.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.demo_data import add_flags, chunks_and_tokenizer, distinct_sentences
from benchmarks.measuring import in_turn
from benchmarks.report import report
from ctxsim_hf.context_models.causal.prefix_batches import PrefixBatches
from ctxsim_hf.context_models.causal.scoring import CausalContextModel, ContextIds
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.runtime.fetch import fetch_model
from ctxsim_hf.text.chunks import Context

PLAIN_BATCH = 32
SMOLLM2 = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "tie_word_embeddings": True}
SMOLLM2_HEADS = {"num_attention_heads": 9, "num_key_value_heads": 3}
Work = Callable[[Any], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--context-model", help="causal language model; by default random weights")
    parser.add_argument("--sentences", type=int, default=480, help="sentences to make cloze vectors of")
    parser.add_argument("--contexts", type=int, default=8, help="contexts to score right terms in")
    parser.add_argument("--per-context", type=int, default=64, help="sentences to score in each context")
    parser.add_argument("--slices", type=int, default=3, help="parts of the work, between which systems take turns")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        chunks, name = args.chunks, args.context_model
        if not (chunks and name):
            chunks, tokenizer = chunks_and_tokenizer(args, Path(scratch))
            name = name or random_model(tokenizer, Path(scratch, "model"))
        model = load_context_model(fetch_model(name, "a language model"))
        if not isinstance(model, CausalContextModel):
            raise SystemExit(f"expected a causal language model, got a {type(model).__name__}")
        sentences = distinct_sentences(chunks, args.sentences + args.per_context + 2 * args.contexts)
        model.vectors(sentences[:4])  # whatever is done once
        rows, details = bench_cloze(model, sentences[: args.sentences], args.slices)
        more_rows, more = bench_right(model, sentences[args.sentences :], args)
    details |= more | {"threads": torch.get_num_threads(), "precision": str(model.model.dtype)}
    report("context_models", rows + more_rows, details)
    for name, value in details.items():
        print(f"{name}: {value}")


def random_model(tokenizer_folder: str, folder: Path) -> str:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SMOLLM2, **SMOLLM2_HEADS)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def bench_cloze(
    model: CausalContextModel, sentences: list[str], slices: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    systems: dict[str, Work] = {
        "plain loop": lambda part: plain_loop(model, part, model.model),
        "plain loop, no logits": lambda part: plain_loop(model, part, model.model.base_model),
        "ours": lambda part: model.vectors(part),
    }
    parts = [part.tolist() for part in np.array_split(np.array(sentences, dtype=object), slices)]
    seconds, found = in_turn(systems, parts)
    plain, _, ours = found.values()
    lengths = [len(ids) for ids in model.tokenizer(sentences, add_special_tokens=False)["input_ids"]]
    measures = {
        "plain loop": (f"cloze vectors a second over a plain loop at batch {PLAIN_BATCH}", ">= 2"),
        "plain loop, no logits": ("the same, over a loop that leaves out the output layer", ""),
    }
    rows = [
        {"measure": measure, "ratio": seconds[name] / seconds["ours"], "wanted": wanted}
        for name, (measure, wanted) in measures.items()
    ]
    details = {
        "cloze sentences": len(sentences),
        "tokens of a sentence, least, median and most": np.quantile(lengths, [0, 0.5, 1]).tolist(),
        "cloze vectors a second": {name: len(sentences) / taken for name, taken in seconds.items()},
        "largest difference of a cloze vector, over their largest number": largest_difference(plain, ours),
    }
    return rows, details


@torch.inference_mode()
def plain_loop(model: CausalContextModel, sentences: list[str], called: PreTrainedModel) -> np.ndarray:
    """What one would write first: batches in the order given, padded to their longest, the states of a layer by
    output_hidden_states, and of these the last token's."""
    tokenizer = model.tokenizer
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    vectors = []
    for start in range(0, len(sentences), PLAIN_BATCH):
        some = sentences[start : start + PLAIN_BATCH]
        states = []
        for bridge in model.settings.bridges:
            texts = [bridge.replace("{}", sentence) for sentence in some]
            batch = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
            mask = batch["attention_mask"]
            outputs = called(input_ids=batch["input_ids"], attention_mask=mask, output_hidden_states=True)
            last = outputs.hidden_states[model.settings.layer][torch.arange(len(some)), mask.sum(1) - 1]
            states.append(last.float().numpy())
        vectors.append(np.stack(states, axis=1))
    return np.concatenate(vectors)


class Unshared(CausalContextModel):
    """Scores right terms with the left side computed anew for every sentence."""

    def score(self, term: str, sentences: list[list[int]], contexts: list[ContextIds]) -> np.ndarray:
        scores = np.zeros((len(sentences), len(contexts)), np.float32)
        batches = PrefixBatches(self.model.base_model)
        for column, context in enumerate(contexts):
            before = [*self._start, *context.left]
            for batch in batches([[*before, *sentence, *context.right] for sentence in sentences], 0):
                ends = torch.tensor([len(before) + len(sentences[row]) for row in batch.rows])
                scores[batch.rows, column] = self._mean_log_prob(batch, ends, batch.lengths)
        return scores


def bench_right(
    model: CausalContextModel, texts: list[str], args: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    sides, sentences = texts[: 2 * args.contexts], model.prepare_sentences(texts[2 * args.contexts :])
    made = [Context("made", 1, (left,), "", (right,)) for left, right in zip(sides[::2], sides[1::2], strict=True)]
    contexts = model.prepare_contexts(Contexts.from_texts(made))
    unshared = Unshared(model.model, model.tokenizer, model.settings)
    systems: dict[str, Work] = {
        name: lambda part, scorer=scorer: scorer.score("right", sentences, part).T  # type: ignore[misc]
        for name, scorer in {"none shared": unshared, "ours": model}.items()
    }
    seconds, found = in_turn(systems, [contexts[part :: args.slices] for part in range(args.slices)])
    alone, together = tokens(contexts, sentences)
    measured, allowed = seconds["none shared"] / seconds["ours"], alone / together
    rows = [
        {"measure": "right terms a second over those without sharing", "ratio": measured, "wanted": "see below"},
        {"measure": "the same by token counts", "ratio": allowed, "wanted": "for comparison"},
        {"measure": "the one over the other", "ratio": measured / allowed, "wanted": ">= 0.8"},
    ]
    details = {
        "right terms": len(contexts) * len(sentences),
        "right terms a second": {name: len(contexts) * len(sentences) / taken for name, taken in seconds.items()},
        "largest difference of a right term, over the largest": largest_difference(*found.values()),
    }
    return rows, details


def tokens(contexts: list[ContextIds], sentences: list[list[int]]) -> tuple[int, int]:
    """How many tokens go through the model if every row has its own left side, and if they share it."""
    own = sum(map(len, sentences))
    rest = sum(own + len(context.right) * len(sentences) for context in contexts)
    left = sum(len(context.left) for context in contexts)
    return rest + left * len(sentences), rest + left


def largest_difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(one).max())


if __name__ == "__main__":
    main()
