"""The discriminator against Eq. 1 worked by hand, against torch's packed BiLSTM, and itself batched otherwise."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from ctxsim_hf.models import ContextDiscriminatorConfig, ContextDiscriminatorModel
from ctxsim_hf.models.modeling_discriminator import SENTENCES_PER_GROUP


def tiny(head: str = "mlp", **kwargs) -> ContextDiscriminatorModel:
    torch.manual_seed(0)
    config = ContextDiscriminatorConfig(
        vocab_size=30, embedding_size=5, hidden_size=4, head=head, head_size=6, **kwargs
    )
    return ContextDiscriminatorModel(config).eval()


def sentences(*lengths: int, width: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    width = width or max(lengths)
    mask = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    return torch.where(mask > 0, torch.randint(4, 30, mask.shape), 1), mask


def batch(batch_size: int = 3, candidates: int | None = None) -> dict[str, torch.Tensor]:
    """Left sides of 2 and 1 sentences in turn, right sides of 1 and 2."""
    torch.manual_seed(1)
    out = {}
    for name, absent in (("left", 1), ("right", 0)):
        ids, mask = sentences(*torch.randint(1, 8, (2 * batch_size,)).tolist(), width=8)
        ids, mask = ids.view(batch_size, 2, 8), mask.view(batch_size, 2, 8)
        mask[absent::2, 1] = 0
        out[f"{name}_input_ids"], out[f"{name}_attention_mask"] = torch.where(mask > 0, ids, 1), mask
    shape = (batch_size,) if candidates is None else (batch_size, candidates)
    ids, mask = sentences(*torch.randint(1, 8, (int(np.prod(shape)),)).tolist(), width=7)
    out["sentence_input_ids"], out["sentence_attention_mask"] = ids.view(*shape, 7), mask.view(*shape, 7)
    return out


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


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_equation_1_by_hand(head):
    model = tiny(head)
    left, sentence, right = [[5, 6, 7], [8, 9]], [10, 11, 12, 13], [[14]]
    h_left = np.mean([vector_by_hand(model, ids) for ids in left], 0)
    h = [h_left, vector_by_hand(model, sentence), vector_by_hand(model, right[0])]
    weights = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    w_left, w_right = np.split(weights["context_projection.weight"], 2, axis=1)
    w = np.concatenate([w_left, weights["sentence_projection.weight"], w_right], 1)  # one layer over [h_<, h_s, h_>]
    logit = w @ np.concatenate(h) + weights["context_projection.bias"]
    if head == "mlp":
        logit = weights["output_projection.weight"] @ np.maximum(logit, 0) + weights["output_projection.bias"]

    pad = [1, 1, 1]
    out = model(
        torch.tensor([[left[0], [*left[1], 1], pad]]), torch.tensor([[[1, 1, 1], [1, 1, 0], [0, 0, 0]]]),
        torch.tensor([sentence]), torch.ones(1, 4, dtype=torch.long),
        torch.tensor([[right[0]]]), torch.ones(1, 1, 1, dtype=torch.long),
        labels=torch.tensor([1.0]),
    )  # fmt: skip
    np.testing.assert_allclose(out.logits.detach().numpy(), logit, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out.loss.item(), -np.log(sigmoid(logit[0])), rtol=1e-5)


def test_vectors_equal_those_of_a_packed_bidirectional_lstm():
    model = tiny()
    packed = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
    for name, value in model.forward_lstm.named_parameters():
        getattr(packed, name).data.copy_(value.data)
    for name, value in model.backward_lstm.named_parameters():
        getattr(packed, f"{name}_reverse").data.copy_(value.data)
    ids, mask = sentences(*torch.randint(1, 30, (2 * SENTENCES_PER_GROUP + 7,)).tolist())
    lengths = mask.sum(1)
    states = packed(pack_padded_sequence(model.embeddings(ids), lengths, batch_first=True, enforce_sorted=False))[1][0]
    torch.testing.assert_close(model.encode_sentences(ids, mask), torch.cat([*states], -1), rtol=1e-5, atol=1e-6)


def test_a_vector_does_not_depend_on_padding_or_batch():
    model = tiny()
    ids, mask = sentences(3, 9, 1, 0, 5)
    together = model.encode_sentences(ids, mask)
    wide = model.encode_sentences(nn.functional.pad(ids, (0, 20), value=7), nn.functional.pad(mask, (0, 20)))
    torch.testing.assert_close(together, wide, rtol=0, atol=1e-6)
    for row, length in enumerate(mask.sum(1).tolist()):
        alone = model.encode_sentences(ids[row : row + 1, : max(length, 1)], mask[row : row + 1, : max(length, 1)])
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-6)
    assert together[3].count_nonzero() == 0
    assert model.encode_sentences(ids[3:4], mask[3:4]).count_nonzero() == 0


def test_candidates_share_their_context_and_score_as_if_alone():
    model, inputs = tiny(), batch(3, candidates=4)
    logits = model(**inputs).logits
    assert logits.shape == (3, 4)
    for candidate in range(4):
        single = {k: v[:, candidate] if k.startswith("sentence") else v for k, v in inputs.items()}
        torch.testing.assert_close(model(**single).logits, logits[:, candidate], rtol=0, atol=1e-6)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_stored_parts_broadcast_to_sentences_by_contexts(head):
    model = tiny(head)
    left, sentence, right = torch.randn(7, 8), torch.randn(5, 8), torch.randn(7, 8)
    matrix = model.score_parts(model.context_part(left, right)[None], model.sentence_part(sentence)[:, None])
    assert matrix.shape == (5, 7)
    torch.testing.assert_close(model.score(left[None], sentence[:, None], right[None]), matrix)
    torch.testing.assert_close(model.score(left[3], sentence[2], right[3]), matrix[2, 3])
    log_probability = model.log_probability(left[None], sentence[:, None], right[None])
    torch.testing.assert_close(log_probability, torch.log(torch.sigmoid(matrix)))


def test_the_linear_head_orders_contexts_alike_for_every_sentence_and_the_mlp_head_does_not():
    torch.manual_seed(3)
    left, sentence, right = torch.randn(40, 8), 3 * torch.randn(10, 8), torch.randn(40, 8)
    orders = {}
    for head in ("linear", "mlp"):
        model = tiny(head, initializer_range=1.0)
        orders[head] = model.score(left[None], sentence[:, None], right[None]).argsort(-1)
    assert (orders["linear"] == orders["linear"][0]).all()
    assert (orders["mlp"] != orders["mlp"][0]).any()


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_gradient_reaches_every_parameter(head):
    model, inputs = tiny(head).train(), batch(4, candidates=2)
    model(**inputs, labels=torch.tensor([[1.0, 0.0]]).expand(4, 2)).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_saved_and_opened_model_is_equal(tmp_path):
    model, inputs = tiny(), batch()
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    again = ContextDiscriminatorModel.from_pretrained(tmp_path)
    assert torch.equal(again(**inputs).logits, model(**inputs).logits)


def test_wrong_shapes_and_ids_are_refused_in_words():
    model, inputs = tiny(), batch()
    with pytest.raises(
        ValueError, match=r"`left_input_ids` must be \(batch, sentences, tokens\), got the shape \(3, 8\)"
    ):
        model(**{**inputs, "left_input_ids": inputs["left_input_ids"][:, 0]})
    with pytest.raises(ValueError, match="`right_attention_mask` must have the shape"):
        model(**{**inputs, "right_attention_mask": inputs["right_attention_mask"][:2]})
    with pytest.raises(ValueError, match=r"`labels` must have the shape of the logits, \(3,\), got \(3, 1\)"):
        model(**inputs, labels=torch.ones(3, 1))
    with pytest.raises(ValueError, match="vocab_size - 1 = 29, got ids from 4 to 30"):
        model.encode_sentences(torch.tensor([[4, 30]]), torch.ones(1, 2))
    with pytest.raises(ValueError, match="padded on the right"):
        model.encode_sentences(torch.tensor([[1, 5]]), torch.tensor([[0, 1]]))
