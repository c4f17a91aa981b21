"""The light generator: the factored score against the plain softmax, SIF weights, padding, sampled training."""

import pytest
import torch

from ctxsim_hf.models import DIRECTIONS, LightContextGeneratorConfig, LightContextGeneratorModel
from ctxsim_hf.models.sampled_normalisers import choose_tokens, sampled_normalisers

VOCABULARY, HIDDEN = 30, 6
PLACES = ("left", "sentence", "right")


def tiny(**kwargs) -> LightContextGeneratorModel:
    torch.manual_seed(0)
    config = LightContextGeneratorConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, initializer_range=1.0, **kwargs)
    model = LightContextGeneratorModel(config).eval()
    with torch.no_grad():  # as training would leave them
        for parameter in model.parameters():
            parameter.normal_()
    return model


def place(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    """<s> tokens </s> and padding."""
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.where(mask > 0, torch.randint(4, VOCABULARY, mask.shape), 1)
    ids[:, 0] = 0
    ids[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = 2
    return ids, mask


def triple() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return {"left": place(4, 7, 3), "sentence": place(8, 3, 5), "right": place(3, 4, 6)}


def arguments(places: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    return [tensor for name in PLACES for tensor in places[name]]


def source(model: LightContextGeneratorModel, direction: str, places) -> torch.Tensor:
    if direction == "sentence":
        return model.encode_contexts(*places["left"], *places["right"])
    return model.encode_sentences(*places["sentence"], direction)


def real(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return ids[mask > 0]


def plain_mean(model: LightContextGeneratorModel, ids: torch.Tensor) -> torch.Tensor:
    weights = torch.sigmoid(model.token_weight_logits[ids])
    return weights @ model.input_embeddings.weight[ids] / weights.sum()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_three_roads_to_one_log_probability(direction):
    model, places = tiny(), triple()
    vectors = source(model, direction, places)
    targets = model.encode_targets(*places[direction])
    normalisers = model.normalisers(vectors)
    matrix = model.log_prob_matrix(vectors, normalisers, targets)
    torch.testing.assert_close(model.log_prob(vectors, normalisers, targets), matrix.diagonal(), rtol=1e-5, atol=1e-5)
    for row in range(3):
        tokens = {name: real(ids[row], mask[row]) for name, (ids, mask) in places.items()}
        if direction == "sentence":
            left, right = plain_mean(model, tokens["left"]), plain_mean(model, tokens["right"])
            vector = model.left_to_sentence.weight @ left + model.right_to_sentence.weight @ right
        else:
            maps = {"left": model.sentence_to_left, "right": model.sentence_to_right}
            vector = maps[direction].weight @ plain_mean(model, tokens["sentence"])
        softmax = (model.output_embeddings.weight @ vector + model.output_bias).log_softmax(0)
        for column in range(3):
            target = real(*(tensor[column] for tensor in places[direction]))[1:]  # <s> is no token of a sentence
            torch.testing.assert_close(matrix[row, column], softmax[target].sum(), rtol=1e-5, atol=1e-5)
    assert targets.length.tolist() == (places[direction][1].sum(1) - 1).tolist()


def test_loss_is_the_mean_of_the_questions_cross_entropies():
    model, places = tiny(), triple()
    expected = []
    for direction in DIRECTIONS:
        vectors, targets = source(model, direction, places), model.encode_targets(*places[direction])
        log_prob = model.log_prob(vectors, model.normalisers(vectors), targets)
        expected.append(-log_prob.sum() / targets.length.sum())
    out = model(*arguments(places))
    torch.testing.assert_close(out.question_losses, torch.stack(expected).detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out.loss, torch.stack(expected).mean(), rtol=1e-5, atol=1e-5)


def test_nothing_depends_on_padding_batch_or_how_a_side_is_cut_into_sentences():
    model, (ids, mask) = tiny(), triple()["left"]
    vectors, targets = model.encode_sentences(ids, mask, "left"), model.encode_targets(ids, mask)
    for row, length in enumerate(mask.sum(1).tolist()):
        alone = ids[row : row + 1, :length], mask[row : row + 1, :length]
        torch.testing.assert_close(model.encode_sentences(*alone, "left")[0], vectors[row], rtol=0, atol=1e-5)
        for one, all_rows in zip(model.encode_targets(*alone), targets, strict=True):
            torch.testing.assert_close(one[0], all_rows[row], rtol=0, atol=1e-5)
    # Padding in the middle, with any id under it, as a side of two sentences has it.
    cut = torch.stack([ids, torch.full_like(ids, 9)], 1), torch.stack([mask, torch.zeros_like(mask)], 1)
    torch.testing.assert_close(model.encode_sentences(*cut, "left"), vectors, rtol=0, atol=1e-5)
    torch.testing.assert_close(model.encode_targets(*cut).vector_sum, targets.vector_sum, rtol=0, atol=1e-5)
    empty = model.encode_targets(ids, torch.zeros_like(mask))
    assert empty.length.tolist() == [0, 0, 0] and not empty.vector_sum.any() and not empty.bias_sum.any()
    assert not model.encode_sentences(ids, torch.zeros_like(mask), "left").any()


def test_unigram_counts_give_sif_weights_and_the_unigram_model():
    model = tiny(sif_smoothing=1e-2)
    counts = torch.arange(VOCABULARY) * 10
    model.set_unigram_counts(counts)
    frequency = (counts + 1) / (counts + 1).sum()
    torch.testing.assert_close(torch.sigmoid(model.token_weight_logits), 1e-2 / (1e-2 + frequency))
    silent = torch.zeros(1, HIDDEN)  # a source that says nothing
    targets = model.encode_targets(torch.tensor([[5, 7, 2]]), torch.ones(1, 3))
    expected = frequency[[5, 7, 2]].log().sum()
    torch.testing.assert_close(model.log_prob(silent, model.normalisers(silent), targets)[0], expected)
    with pytest.raises(ValueError, match=r"one number per token, 30, got \(29,\)"):
        model.set_unigram_counts(counts[:-1])


@pytest.mark.parametrize("num_sampled", [0, 8])
def test_gradient_reaches_every_parameter(num_sampled):
    model = tiny(num_sampled=num_sampled).train()
    model(*arguments(triple())).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def gradients(model: LightContextGeneratorModel, **kwargs) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(*arguments(triple()), **kwargs).loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_sampling_every_token_is_the_full_loss():
    model = tiny(num_sampled=VOCABULARY)
    full = model.eval()(*arguments(triple())).loss
    torch.testing.assert_close(model.train()(*arguments(triple())).loss, full)
    expected = gradients(model.eval())
    for name, grad in gradients(model.train()).items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-6)


def test_sampled_exp_normaliser_is_right_on_average():
    model, places = tiny(), triple()
    vectors = 0.3 * source(model, "sentence", places)
    targets = real(*places["sentence"])
    generator = torch.Generator().manual_seed(2)  # of its own: `triple` seeds torch's
    draws = []
    for _ in range(400):
        sampled = torch.randperm(VOCABULARY, generator=generator)[:15]
        weights = model.output_embeddings.weight, model.output_bias
        draws.append(sampled_normalisers([vectors], [targets], sampled, *weights)[0].detach().exp())
    exact = model.normalisers(vectors).detach().exp()
    error = torch.stack(draws).std(0) / 400**0.5  # of the mean
    assert error.max() > 0  # the draws differ
    assert ((torch.stack(draws).mean(0) - exact).abs() < 4 * error).all()


def test_sampled_gradient_comes_close_on_average_and_closer_with_more_samples():
    """Z is the logarithm of an unbiased estimate, so a small bias stays; it must shrink as the sample grows."""
    model = tiny()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    full = torch.cat([grad.flatten() for grad in gradients(model).values()])
    distance = {}
    for samples in (5, 15, 25):
        generator = torch.Generator().manual_seed(2)
        total = torch.zeros_like(full)
        for _ in range(100):
            sampled = torch.randperm(VOCABULARY, generator=generator)[:samples]
            total += torch.cat([grad.flatten() for grad in gradients(model, sampled_ids=sampled).values()])
        distance[samples] = float((total / 100 - full).norm() / full.norm())
    assert distance[25] < distance[15] < distance[5]
    assert distance[15] < 0.1


def test_a_sampled_token_stands_for_its_share_of_the_others():
    chosen, correction = choose_tokens(torch.tensor([5, 7, 5]), torch.tensor([7, 3, 9, 8]), vocab_size=20)
    assert chosen.tolist() == [5, 7, 3, 9, 8]
    torch.testing.assert_close(correction.exp(), torch.tensor([1, 1, 6.0, 6.0, 6.0]))  # 18 others, 3 samples
    alone, nothing = choose_tokens(torch.tensor([5]), torch.tensor([5]), vocab_size=20)
    assert alone.tolist() == [5] and nothing.tolist() == [0]


def test_saved_and_opened_model_is_equal(tmp_path):
    model, inputs = tiny(), arguments(triple())
    model.save_pretrained(tmp_path)
    again = LightContextGeneratorModel.from_pretrained(tmp_path)
    assert torch.equal(again(*inputs).loss, model(*inputs).loss)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_a_new_model_starts_with_even_weights_and_identity_maps():
    model = LightContextGeneratorModel(LightContextGeneratorConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN))
    assert torch.equal(model.sentence_to_left.weight, torch.eye(HIDDEN))
    assert not model.token_weight_logits.any() and not model.output_bias.any()


def test_wrong_inputs_are_refused_in_words():
    model, places = tiny(), triple()
    with pytest.raises(ValueError, match="must be 'left' or 'right', got 'sentence'"):
        model.encode_sentences(*places["sentence"], "sentence")
    with pytest.raises(ValueError, match=r"\(batch, tokens\) or \(batch, sentences, tokens\), got the shape \(8,\)"):
        model.encode_targets(places["sentence"][0][0], places["sentence"][1][0])
    with pytest.raises(ValueError, match=r"one batch size, got \{'sentence': 3, 'left': 2, 'right': 3\}"):
        model(*arguments({**places, "left": tuple(tensor[:2] for tensor in places["left"])}))
    with pytest.raises(ValueError, match="got ids from 4 to 30"):
        model.encode_targets(torch.tensor([[4, 30]]), torch.ones(1, 2))
