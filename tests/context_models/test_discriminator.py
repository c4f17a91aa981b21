"""The discriminator against Eq. 1 worked by hand, against torch's packed BiLSTM, and itself batched otherwise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from ctxsim_hf import ContextDiscriminatorConfig, ContextDiscriminatorModel
from ctxsim_hf.context_models.discriminator import modeling as module


def tiny(head: str = "mlp") -> ContextDiscriminatorModel:
    torch.manual_seed(0)
    config = ContextDiscriminatorConfig(
        vocab_size=30, embedding_size=5, hidden_size=4, head=head, head_size=6, initializer_range=1.0
    )
    return ContextDiscriminatorModel(config).eval()


def sentences(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return torch.where(mask > 0, torch.randint(4, 30, mask.shape, generator=generator), 1), mask


# Sides of one, two and no sentences; sentences 0, 1 and 5 stand in several contexts.
LEFT, SENTENCE, RIGHT = [[0, -1], [-1, 5], [-1, -1], [4, 0]], [1, 3, 0, 6], [[2, 3], [0, 1], [5, -1], [1, 5]]
CANDIDATES = [[1, 4, 6], [3, 0, 2], [0, 5, 5], [6, 2, 1]]


def inputs(sentence: Any = SENTENCE, left: Any = LEFT, right: Any = RIGHT) -> dict[str, torch.Tensor]:
    ids, mask = sentences(4, 7, 3, 8, 2, 5, 1)
    index = {"left_index": left, "sentence_index": sentence, "right_index": right}
    return {"input_ids": ids, "attention_mask": mask} | {name: torch.tensor(value) for name, value in index.items()}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(lstm: nn.LSTM, tokens: np.ndarray) -> np.ndarray:
    """The last state of an LSTM, written out: gates in torch's order input, forget, cell, output."""
    w_in, w_state, b_in, b_state = (p.detach().double().numpy() for p in lstm.parameters())
    state = cell = np.zeros(lstm.hidden_size)
    for token in tokens:
        i, f, g, o = np.split(w_in @ token + b_in + w_state @ state + b_state, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
    return state


def vector_by_hand(model: ContextDiscriminatorModel, ids: list[int]) -> np.ndarray:
    tokens = model.embeddings.weight.detach().double().numpy()[ids]
    return np.concatenate([by_hand(model.forward_lstm, tokens), by_hand(model.backward_lstm, tokens[::-1])])


def logit_by_hand(model: ContextDiscriminatorModel, h: list[np.ndarray]) -> np.ndarray:
    """Eq. 1 from [h_<, h_s, h_>] and the raw weights."""
    weights = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    w_left, w_right = np.split(weights["context_projection.weight"], 2, axis=1)
    w = np.concatenate([w_left, weights["sentence_projection.weight"], w_right], 1)  # one layer over [h_<, h_s, h_>]
    logit = w @ np.concatenate(h) + weights["context_projection.bias"]
    if model.config.head == "mlp":
        logit = weights["output_projection.weight"] @ np.maximum(logit, 0) + weights["output_projection.bias"]
    return logit


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_equation_1_by_hand(head: str) -> None:
    model = tiny(head)
    # Left [5, 6, 7] and [8, 9], sentence [10, 11, 12, 13], right [14]; then nothing, [8, 9], [14].
    ids = torch.tensor([[14, 1, 1, 1], [8, 9, 1, 1], [10, 11, 12, 13], [5, 6, 7, 1]])
    h = {token: vector_by_hand(model, row) for token, row in ((5, [5, 6, 7]), (8, [8, 9]), (10, [10, 11, 12, 13]))}
    h[14], nothing = vector_by_hand(model, [14]), np.zeros(8)
    logits = np.concatenate(
        [logit_by_hand(model, [(h[5] + h[8]) / 2, h[10], h[14]]), logit_by_hand(model, [nothing, h[8], h[14]])]
    )
    out = model(
        ids,
        (ids != 1).long(),
        left_index=torch.tensor([[3, -1, 1], [-1, -1, -1]]),
        sentence_index=torch.tensor([2, 1]),
        right_index=torch.tensor([[0], [0]]),
        labels=torch.tensor([1, 0]),
    )
    np.testing.assert_allclose(out.logits.detach().numpy(), logits, rtol=1e-5, atol=1e-6)
    loss = -(np.log(sigmoid(logits[0])) + np.log(1 - sigmoid(logits[1]))) / 2
    np.testing.assert_allclose(out.loss.item(), loss, rtol=1e-5)


def test_vectors_equal_those_of_a_packed_bidirectional_lstm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SENTENCES_PER_GROUP", 8)
    model = tiny()
    packed = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
    for name, value in model.forward_lstm.named_parameters():
        getattr(packed, name).data.copy_(value.data)
    for name, value in model.backward_lstm.named_parameters():
        getattr(packed, f"{name}_reverse").data.copy_(value.data)
    ids, mask = sentences(*torch.randint(1, 30, (2 * 8 + 7,)).tolist())
    lengths = mask.sum(1)
    states = packed(pack_padded_sequence(model.embeddings(ids), lengths, batch_first=True, enforce_sorted=False))[1][0]
    torch.testing.assert_close(model.encode_sentences(ids, mask), torch.cat([*states], -1), rtol=1e-5, atol=1e-6)


def test_a_vector_does_not_depend_on_padding_or_batch() -> None:
    model = tiny()
    ids, mask = sentences(3, 9, 1, 0, 5)
    together = model.encode_sentences(ids, mask)
    wide = model.encode_sentences(nn.functional.pad(ids, (0, 20), value=7), nn.functional.pad(mask, (0, 20)))
    torch.testing.assert_close(together, wide, rtol=0, atol=1e-6)
    torch.testing.assert_close(model.encode_sentences(ids, mask.bool()), together)
    for row, length in enumerate(mask.sum(1).tolist()):
        alone = model.encode_sentences(ids[row : row + 1, : max(length, 1)], mask[row : row + 1, : max(length, 1)])
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-6)
    assert together[3].count_nonzero() == 0
    assert model.encode_sentences(ids[3:4], mask[3:4]).count_nonzero() == 0


def score(model: Any, left: torch.Tensor, sentence: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return model.score_parts(model.context_part(left, right), model.sentence_part(sentence))


def test_a_side_is_the_mean_of_its_sentences_and_minus_one_is_none() -> None:
    model, batch = tiny(), inputs()
    vectors = model.encode_sentences(batch["input_ids"], batch["attention_mask"])
    left = torch.stack([vectors[0], vectors[5], torch.zeros(8), (vectors[4] + vectors[0]) / 2])
    right = torch.stack([vectors[[2, 3]].mean(0), vectors[[0, 1]].mean(0), vectors[5], vectors[[1, 5]].mean(0)])
    torch.testing.assert_close(model(**batch).logits, score(model, left, vectors[SENTENCE], right))
    # More -1, in any place, change nothing; a side may have no place at all.
    spread = [[-1, 0, -1], [5, -1, -1], [-1, -1, -1], [0, -1, 4]]
    torch.testing.assert_close(model(**inputs(left=spread)).logits, model(**batch).logits)
    batch["left_index"] = torch.zeros(4, 0).long()
    torch.testing.assert_close(model(**batch).logits, score(model, torch.zeros(4, 8), vectors[SENTENCE], right))


def test_a_sentence_of_several_contexts_counts_as_its_copies_would() -> None:
    batch, copied = inputs(CANDIDATES), inputs(CANDIDATES)
    labels = torch.tensor([[1, 0, 0]]).expand(4, 3)
    rows: list[int] = []
    for name in ("left_index", "right_index", "sentence_index"):
        for place in copied[name].view(-1):
            if place >= 0:
                rows.append(int(place))
                place.fill_(len(rows) - 1)
    copied |= {name: batch[name][rows] for name in ("input_ids", "attention_mask")}
    results = []
    for given in (batch, copied):
        model = tiny()
        out = model(**given, labels=labels)
        out.loss.backward()
        results.append((out.logits, {name: p.grad for name, p in model.named_parameters()}))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=0, atol=1e-6)
    for name, grad in results[0][1].items():
        torch.testing.assert_close(results[1][1][name], grad, rtol=1e-4, atol=1e-6)


def test_candidates_share_their_context_and_score_as_if_alone() -> None:
    model = tiny()
    labels = torch.tensor([[1, 0, 0]]).expand(4, 3)
    out = model(**inputs(CANDIDATES), labels=labels)
    assert out.logits.shape == (4, 3)
    losses = []
    for candidate in range(3):
        single = model(**inputs([row[candidate] for row in CANDIDATES]), labels=labels[:, candidate])
        torch.testing.assert_close(single.logits, out.logits[:, candidate], rtol=0, atol=1e-6)
        losses.append(single.loss)
    torch.testing.assert_close(out.loss, torch.stack(losses).mean())
    assert model(**inputs(CANDIDATES)).loss is None


def test_a_logit_does_not_depend_on_the_rest_of_the_batch() -> None:
    model, batch = tiny(), inputs()
    logits = model(**batch).logits
    for row in range(4):
        alone = {name: value[row : row + 1] if name.endswith("index") else value for name, value in batch.items()}
        torch.testing.assert_close(model(**alone).logits[0], logits[row], rtol=0, atol=1e-6)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_stored_parts_broadcast_to_sentences_by_contexts(head: str) -> None:
    model = tiny(head)
    left, sentence, right = torch.randn(7, 8), torch.randn(5, 8), torch.randn(7, 8)
    matrix = model.score_parts(model.context_part(left, right)[None], model.sentence_part(sentence)[:, None])
    assert matrix.shape == (5, 7)
    torch.testing.assert_close(score(model, left[None], sentence[:, None], right[None]), matrix)
    torch.testing.assert_close(score(model, left[3], sentence[2], right[3]), matrix[2, 3])


def test_the_linear_head_orders_contexts_alike_for_every_sentence_and_the_mlp_head_does_not() -> None:
    torch.manual_seed(3)
    left, sentence, right = torch.randn(40, 8), 3 * torch.randn(10, 8), torch.randn(40, 8)
    orders = {}
    for head in ("linear", "mlp"):
        model = tiny(head)
        orders[head] = score(model, left[None], sentence[:, None], right[None]).argsort(-1)
    assert (orders["linear"] == orders["linear"][0]).all()
    assert (orders["mlp"] != orders["mlp"][0]).any()


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_gradient_reaches_every_parameter(head: str) -> None:
    model = tiny(head).train()
    model(**inputs(CANDIDATES), labels=torch.tensor([[1, 0, 0]]).expand(4, 3)).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_saved_and_opened_model_is_equal(tmp_path: Path, head: str) -> None:
    model = tiny(head)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    again = ContextDiscriminatorModel.from_pretrained(tmp_path)
    assert torch.equal(again(**inputs()).logits, model(**inputs()).logits)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_ids": [5] * 7}, r"`input_ids` must be \(sentences, tokens\), got the shape \(7,\)"),
        ({"attention_mask": [[1, 1]]}, r"`attention_mask` must have the shape of `input_ids`, \(7, 8\), got \(1, 2\)"),
        ({"left_index": SENTENCE}, r"`left_index` must be \(batch, sentences of a side\), got the shape \(4,\)"),
        ({"right_index": [[0], [1], [2], [7]]}, "`right_index` must lie from -1 to 6, got 0 to 7"),
        ({"left_index": [[0], [1], [2], [-2]]}, "`left_index` must lie from -1 to 6, got -2 to 2"),
        ({"sentence_index": [0, 1, 2, -1]}, "`sentence_index` must lie from 0 to 6, got -1 to 2"),
        ({"sentence_index": 0}, r"`sentence_index` must be \(batch,\) or \(batch, candidates\), got the shape \(\)"),
        ({"sentence_index": [0]}, "the same batch size, got {'left_index': 4, 'right_index': 4, 'sentence_index': 1}"),
        ({"left_index": [[0]], "right_index": [[0]]}, "the same batch size, got {'left_index': 1, 'right_index': 1, "),
        ({"labels": [[1], [1], [0], [0]]}, r"`labels` must have the shape of the logits, \(4,\), got \(4, 1\)"),
    ],
)
def test_wrong_inputs_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    changed = {name: torch.tensor(value) for name, value in changes.items()}
    with pytest.raises(ValueError, match=words):
        tiny()(**(inputs() | changed))


def test_wrong_sentences_are_refused_in_words() -> None:
    model = tiny()
    with pytest.raises(ValueError, match=r"vocab_size - 1 = 29, got ids from 4 to 30\. Was the text encoded"):
        model.encode_sentences(torch.tensor([[4, 30]]), torch.ones(1, 2))
    with pytest.raises(ValueError, match="padded on the right, got a mask where a 1 follows a 0"):
        model.encode_sentences(torch.tensor([[1, 5]]), torch.tensor([[0, 1]]))
