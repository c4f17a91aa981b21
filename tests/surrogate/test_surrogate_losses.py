"""Losses by hand, and the objectives' gradients by another road."""

import math

import numpy as np
import pytest
import torch
from tiny_surrogate import tiny_model
from torch.nn import functional

from ctxsim_hf.encoder.pooling import mean_pooling
from ctxsim_hf.surrogate import surrogate_losses
from ctxsim_hf.surrogate.labels import LabelMap
from ctxsim_hf.surrogate.surrogate_losses import agreement, cosent_loss, cosines, l2_loss, pearson_loss
from ctxsim_hf.surrogate.surrogate_objectives import ContrastObjective, SimilarityObjective, TripletObjective

IDS = torch.tensor(
    [[0, 7, 8, 9, 10, 2], [0, 11, 12, 13, 2, 1], [0, 14, 15, 2, 1, 1], [0, 16, 17, 2, 1, 1], [0, 18, 2, 1, 1, 1]]
)
MASK = (IDS != 1).long()


def test_l2_by_hand() -> None:
    similarity, targets = torch.tensor([0.5, 0.0]), torch.tensor([0.1, 0.2])
    assert l2_loss(similarity, targets).item() == pytest.approx((0.16 + 0.04) / 2)
    assert l2_loss(similarity, targets, torch.tensor([0.5, 1.5])).item() == pytest.approx((0.08 + 0.06) / 2)


def test_cosent_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity, targets = torch.tensor([0.5, 0.6, 0.1]), torch.tensor([0.9, 0.3, 0.3])
    # The first should be above the two others, which are equal.
    expected = math.log(1 + math.exp(20 * 0.1) + math.exp(20 * -0.4))
    assert cosent_loss(similarity, targets).item() == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(surrogate_losses, "COSENT_PAIRS", 2)
    halves = (math.log(1 + math.exp(2)) + 0) / 2
    assert cosent_loss(similarity, targets).item() == pytest.approx(halves, rel=1e-5)


def test_cosent_and_pearson_have_gradients_where_nothing_is_wrong() -> None:
    for loss in (cosent_loss, pearson_loss):
        similarity = torch.tensor([0.2, 0.2, 0.2], requires_grad=True)
        loss(similarity, torch.tensor([0.1, 0.1, 0.1])).backward()
        assert torch.isfinite(similarity.grad).all()


def test_pearson_ignores_scale_and_place() -> None:
    targets = torch.tensor([0.1, 0.9, 0.4, 0.6])
    assert pearson_loss(targets * 0.01 + 0.9, targets).item() == pytest.approx(0, abs=1e-4)
    assert pearson_loss(-targets, targets).item() == pytest.approx(2, abs=1e-5)
    similarity = torch.tensor([0.3, 0.2, 0.9, 0.1])
    expected = 1 - np.corrcoef(similarity, targets)[0, 1]
    assert pearson_loss(similarity, targets).item() == pytest.approx(expected, abs=1e-5)


def test_both_roads_to_a_cosine_agree() -> None:
    vectors = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    members = torch.randint(0, 40, (400, 2), generator=torch.Generator().manual_seed(1))
    by_pair = torch.stack([cosines(vectors, pair[None])[0] for pair in members])
    torch.testing.assert_close(cosines(vectors, members), by_pair)
    expected = torch.cosine_similarity(vectors[members[:, 0]], vectors[members[:, 1]])
    torch.testing.assert_close(by_pair, expected)


def test_figures_are_on_the_scale_of_the_labels() -> None:
    label_map = LabelMap(0.8, 1.0)
    figures = agreement(np.array([-1.0, 0.0, 1.0]), np.array([0.8, 0.9, 0.95]), label_map)
    assert figures["l2"] == pytest.approx(0.05**2 / 3)
    assert figures["spearman"] == pytest.approx(1) and 0.9 < figures["pearson"] < 1


def plain_vectors(surrogate) -> torch.Tensor:
    return mean_pooling(surrogate.encoder(IDS, attention_mask=MASK).last_hidden_state, MASK)


def test_in_slices_or_whole_the_loss_and_gradient_are_the_models_own() -> None:
    surrogate = tiny_model()
    objective = SimilarityObjective(surrogate, "l2", LabelMap())
    members, labels = torch.tensor([[0, 1], [3, 2], [4, 0]]), torch.tensor([0.5, -0.2, 0.9])
    loss = objective(IDS, MASK, members, labels).loss
    loss.backward()
    found = surrogate.encoder.embeddings.word_embeddings.weight.grad.clone()
    surrogate.zero_grad()
    own = surrogate(IDS, MASK, sentence1_index=members[:, 0], sentence2_index=members[:, 1], labels=labels).loss
    own.backward()
    torch.testing.assert_close(loss, own)
    torch.testing.assert_close(found, surrogate.encoder.embeddings.word_embeddings.weight.grad, atol=1e-6, rtol=1e-4)


def test_contrast_by_hand() -> None:
    """Two rows of one anchor: the positive of the other is none of the wrong answers, its negative is."""
    objective = ContrastObjective(tiny_model())
    units = functional.normalize(plain_vectors(objective.surrogate))
    rows = torch.tensor([[0, 1, 2], [0, 3, 4], [2, 4, 1]])
    expected = []
    for (anchor, positive, _), wrong in zip(rows.tolist(), ([4, 2, 4, 1], [4, 2, 4, 1], [1, 3, 2, 4, 1]), strict=True):
        logits = 20 * units[[positive, *wrong]] @ units[anchor]
        # The positives of the first row and of the last are negatives elsewhere: the same sentence is not wrong.
        kept = [0, *(place for place, sentence in enumerate(wrong, 1) if sentence != positive)]
        expected.append(-torch.log_softmax(logits[kept], 0)[0].item())
    loss = objective(IDS, MASK, rows, torch.zeros(3)).loss
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-4)


def test_triplet_by_hand() -> None:
    objective = TripletObjective(tiny_model(), margin=10.0)
    a, p, n = (vector / vector.norm() for vector in plain_vectors(objective.surrogate)[[0, 1, 2]])
    expected = max(0.0, ((a - p).norm() - (a - n).norm() + 10).item())
    loss = objective(IDS, MASK, torch.tensor([[0, 1, 2]]), torch.zeros(1)).loss
    assert loss.item() == pytest.approx(expected, abs=1e-4) and expected > 0
    nearer = objective.outcomes(
        torch.tensor([[1.0, 0], [1, 0.1], [0, 1]]), torch.tensor([[0, 1, 2], [0, 2, 1]]), np.zeros(2)
    )
    assert nearer.tolist() == [True, False] and objective.figures(nearer, np.zeros(2)) == {"accuracy": 0.5}
