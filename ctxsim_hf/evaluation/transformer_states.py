"""Use any transformer of the Hub as a baseline: pool the states of a sentence's tokens, or match them one by one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoModel, AutoTokenizer

from ctxsim_hf.encoder.plain_encoder import max_tokens
from ctxsim_hf.encoder.pooling import mean_pooling
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.pretrained import explain_opening

SENTENCES_PER_BATCH = 64
MAX_TOKENS = 512
# The layers that BERTScore's authors found best: mostly 9 of 12 for BERT base, 18 of 24 for large.
BERTSCORE_DEPTH = 0.75


class TransformerStates:
    """A transformer and its tokenizer.

    Args:
        model_id (`str`): Folder of a model with its tokenizer, or its id on the Hub.
    """

    def __init__(self, model_id: str) -> None:
        with explain_opening("a transformer and its tokenizer", model_id):
            self.tokenizer = AutoTokenizer.from_pretrained(model_id, trust_remote_code=False)
            self.model, report = AutoModel.from_pretrained(model_id, output_loading_info=True, trust_remote_code=False)
        # Missing weights would be random, and no figure would say so.
        if missing := [key for key in report["missing_keys"] if "pooler" not in key]:
            raise UserError(f"{model_id!r} lacks {len(missing)} weights of {type(self.model).__name__}")
        if self.tokenizer.pad_token is None:  # such as GPT-2; padding is masked, so any token will do
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text are read."""
        return int(min(self.tokenizer.model_max_length, MAX_TOKENS, max_tokens(self.model.config) or MAX_TOKENS))

    def encode(self, sentences: Sequence[str], pooling: str) -> np.ndarray:
        """Return the mean of the last layer over the tokens of each sentence, or (`cls`) its first token."""
        vectors: list[np.ndarray] = [np.zeros(0)] * len(sentences)
        for rows, states, batch in self._batches(sentences, layer=-1):
            pooled = states[:, 0] if pooling == "cls" else mean_pooling(states, batch["attention_mask"])
            for row, vector in zip(rows, pooled.float().cpu().numpy(), strict=True):
                vectors[row] = vector
        return np.stack(vectors)

    def bertscore(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the F1 of greedy matching: the highest cosine of each token with one of the other sentence, averaged.

        Special tokens do not count. There are no idf weights and no rescaling, which would not change the order.
        """
        sentences = list(dict.fromkeys([*sentences1, *sentences2]))
        places = {sentence: place for place, sentence in enumerate(sentences)}
        tokens = self._token_vectors(sentences)
        return np.array(
            [_greedy_f1(tokens[places[a]], tokens[places[b]]) for a, b in zip(sentences1, sentences2, strict=True)]
        )

    def _token_vectors(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Return unit vectors of all tokens except special ones, in half precision, since there may be a million."""
        layer = round(BERTSCORE_DEPTH * self.model.config.num_hidden_layers)
        vectors: list[np.ndarray] = [np.zeros(0)] * len(sentences)
        marks = torch.tensor(self.tokenizer.all_special_ids, device=self.model.device)
        for rows, states, batch in self._batches(sentences, layer):
            states = torch.nn.functional.normalize(states, dim=-1)
            real = batch["attention_mask"].bool() & ~torch.isin(batch["input_ids"], marks)
            for row, state, keep in zip(rows, states, real, strict=True):
                vectors[row] = state[keep].half().cpu().numpy()
        return vectors

    @torch.inference_mode()
    def _batches(self, sentences: Sequence[str], layer: int) -> Iterator[tuple[list[int], torch.Tensor, Any]]:
        """Yield rows, states of a layer and model inputs for sentences of similar length, the longest first."""
        order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        for start in tqdm(range(0, len(order), SENTENCES_PER_BATCH), "encode", disable=None):
            rows = order[start : start + SENTENCES_PER_BATCH]
            batch = self.tokenizer(
                [sentences[row] for row in rows],
                padding=True,
                truncation=True,
                max_length=self.max_tokens,
                return_tensors="pt",
            ).to(self.model.device)
            # Not last_hidden_state, which some models, such as DPR, do not return.
            yield rows, self.model(**batch, output_hidden_states=True).hidden_states[layer], batch


def _greedy_f1(first: np.ndarray, second: np.ndarray) -> float:
    if not len(first) or not len(second):
        return 0.0
    cosines = first.astype(np.float32) @ second.astype(np.float32).T
    precision, recall = cosines.max(axis=1).mean(), cosines.max(axis=0).mean()
    return float(2 * precision * recall / (precision + recall))
