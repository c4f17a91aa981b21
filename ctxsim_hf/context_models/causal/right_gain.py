"""Does a language model use what stands before? Held-out right sides, scored after their own left side and sentence,
and after those of another document.

The gain is the difference of the two log-probabilities per token of the right side, with an interval over documents.
"""

from dataclasses import dataclass

import numpy as np
import torch
from accelerate import PartialState
from tqdm import tqdm
from transformers import PreTrainedModel

from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.context_models.causal.training_rows import stack_rows
from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.context_models.context_use import mean_with_interval, unrelated_contexts
from ctxsim_hf.text.tokenized import TokenizedChunks

TOKENS_PER_BATCH = 2048  # padding included; each has logits over the whole vocabulary


@dataclass(frozen=True)
class RightGain:
    """
    Args:
        chunks (`TokenizedChunks`): Held-out sentences, tokenised as they stand after a space.
        start (`list[int]`): The mark that begins a text.
        settings (`CausalSettings`): How many sentences a side has, and where they are cut.
        limit (`int`): Contexts at most, drawn at random, always the same.
    """

    chunks: TokenizedChunks
    start: list[int]
    settings: CausalSettings
    limit: int

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Return the gain, its interval, and the perplexity of right sides after their own left side and sentence."""
        every = self.chunks.contexts_of(np.arange(self.chunks.num_chunks))
        contexts = np.random.default_rng(0).permutation(every)[: self.limit]
        documents = self.chunks.documents_of(contexts)
        left, right = self.chunks.neighbours(contexts, self.settings.width)
        sources = [self._tokens([*before[::-1], own]) for before, own in zip(left, contexts, strict=True)]
        targets = [self._tokens(after) for after in right]
        others = [sources[place] for place in unrelated_contexts(documents)]
        tokens = np.array([len(target) for target in targets])
        scores = self._log_probs(model, sources + others, targets + targets)
        own, other = scores[: len(contexts)], scores[len(contexts) :]
        figures = mean_with_interval("gain", own - other, tokens, documents)
        figures["perplexity"] = float(np.exp(-own.sum() / tokens.sum()))
        return {f"right_{name}": value for name, value in figures.items()}

    def _tokens(self, sentences: list[int] | np.ndarray) -> np.ndarray:
        picked = self.chunks.pick(np.array([sentence for sentence in sentences if sentence >= 0]))
        starts = picked.sentence_starts
        places = np.arange(len(picked.tokens)) - np.repeat(starts[:-1], np.diff(starts))
        return picked.tokens[places < self.settings.max_sentence_tokens].astype(np.int64)

    @torch.no_grad()
    def _log_probs(self, model: PreTrainedModel, sources: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
        """Return the log-probability of each target after its source, summed over its tokens."""
        model.eval()
        rows = [np.concatenate(pair) for pair in zip(sources, targets, strict=True)]
        lengths = np.array([len(self.start) + len(row) for row in rows])
        order, place, scores = np.argsort(-lengths, kind="stable"), 0, np.zeros(len(rows))
        hidden = None if PartialState().is_main_process else True
        with tqdm(total=len(rows), desc="evaluate", unit="context", disable=hidden, leave=False) as bar:
            while place < len(order):
                batch = order[place : place + max(1, TOKENS_PER_BATCH // int(lengths[order[place]]))]
                wanted = torch.tensor([len(targets[row]) for row in batch])
                scores[batch] = _last_log_probs(model, stack_rows([rows[row] for row in batch], self.start), wanted)
                place += len(batch)
                bar.update(len(batch))
        return scores


def _last_log_probs(model: PreTrainedModel, tensors: Tensors, counts: torch.Tensor) -> np.ndarray:
    """Return the log-probability of the last tokens of each row, as many as `counts` says, summed."""
    mask = tensors["attention_mask"]
    ends = mask.sum(1, keepdim=True)
    places = torch.arange(mask.shape[1])
    wanted = ((places >= ends - counts[:, None]) & (places < ends))[:, 1:]  # each is foretold by the token before it
    inputs = {name: tensors[name].to(model.device) for name in ("input_ids", "attention_mask")}
    logits = model(**inputs).logits[:, :-1][wanted.to(model.device)].float()
    labels = tensors["labels"][:, 1:][wanted].to(model.device)
    found = torch.zeros(wanted.shape, dtype=torch.float64)
    found[wanted] = -torch.nn.functional.cross_entropy(logits, labels, reduction="none").double().cpu()
    sums: np.ndarray = found.sum(1).numpy()
    return sums
