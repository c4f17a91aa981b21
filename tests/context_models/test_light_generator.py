"""The light generator: by hand, the factored score against the plain softmax, padding, sides, sampled training."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from ctxsim_hf import LightContextGeneratorConfig, LightContextGeneratorModel
from ctxsim_hf.context_models.light import modeling as module
from ctxsim_hf.context_models.light.modeling import SentenceFactors
from ctxsim_hf.context_models.light.sampled_normaliser import choose_tokens, sampled_normaliser
from ctxsim_hf.context_models.terms import DIRECTIONS

VOCABULARY, HIDDEN = 30, 6


def tiny(**kwargs: Any) -> LightContextGeneratorModel:
    torch.manual_seed(0)
    config = LightContextGeneratorConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, initializer_range=1.0, **kwargs)
    model = LightContextGeneratorModel(config).eval()
    with torch.no_grad():  # as training would leave them
        for parameter in model.parameters():
            parameter.normal_()
    return model


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    ids = [[*row, *[1] * (width - len(row))] for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


def sentences(*lengths: int) -> list[list[int]]:
    """Random tokens and the end mark."""
    generator = torch.Generator().manual_seed(1)
    return [[*torch.randint(4, VOCABULARY, (n - 1,), generator=generator).tolist(), 2] for n in lengths]


ROWS = sentences(4, 7, 3, 8, 2, 5, 1)
# Sides of one, two and no sentences; sentences 0, 1 and 5 stand in several contexts.
LEFT, SENTENCE, RIGHT = [[0, -1], [-1, 5], [-1, -1], [4, 0]], [1, 3, 0, 6], [[2, 3], [0, 1], [5, -1], [1, 5]]


def inputs(
    rows: list[list[int]] = ROWS, left: Any = LEFT, sentence: Any = SENTENCE, right: Any = RIGHT
) -> dict[str, torch.Tensor]:
    ids, mask = padded(rows)
    index = {"left_index": left, "sentence_index": sentence, "right_index": right}
    return {"input_ids": ids, "attention_mask": mask} | {name: torch.tensor(value) for name, value in index.items()}


def tokens_of(side: list[int]) -> list[int]:
    return [token for place in side if place >= 0 for token in ROWS[place]]


# For each context the tokens of its three places, joined.
PLACES = [
    {"left": tokens_of(left), "sentence": ROWS[sentence], "right": tokens_of(right)}
    for left, sentence, right in zip(LEFT, SENTENCE, RIGHT, strict=True)
]


def plain_mean(model: LightContextGeneratorModel, tokens: list[int]) -> torch.Tensor:
    if not tokens:
        return torch.zeros(HIDDEN)
    weights = torch.sigmoid(model.token_weight_logits[tokens])
    return weights @ model.input_embeddings.weight[tokens] / weights.sum()


def plain_log_softmax(model: LightContextGeneratorModel, direction: str, place: dict[str, list[int]]) -> torch.Tensor:
    """log p of every token of the vocabulary, with nothing factored."""
    mean = {name: plain_mean(model, tokens) for name, tokens in place.items()}
    if direction == "sentence":
        vector = model.left_to_sentence.weight @ mean["left"] + model.right_to_sentence.weight @ mean["right"]
    else:
        map_of_side = {"left": model.sentence_to_left, "right": model.sentence_to_right}[direction]
        vector = map_of_side.weight @ mean["sentence"]
    return (model.output_embeddings.weight @ vector + model.output_bias).log_softmax(0)


def places(model: LightContextGeneratorModel) -> dict[str, SentenceFactors]:
    batch = inputs()
    factors = model.encode_sentences(batch["input_ids"], batch["attention_mask"])
    return {
        "left": factors.side(batch["left_index"]),
        "sentence": factors.side(batch["sentence_index"][:, None]),
        "right": factors.side(batch["right_index"]),
    }


def source(model: LightContextGeneratorModel, direction: str, place: dict[str, SentenceFactors]) -> torch.Tensor:
    if direction == "sentence":
        return model.source(direction, left=place["left"], right=place["right"])
    return model.source(direction, sentence=place["sentence"])


def assert_factors_close(actual: SentenceFactors, expected: SentenceFactors) -> None:
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_three_tokens_by_hand() -> None:
    r"""Width 1. Token weights 1/2, 3/4, 1/2; left [0, 2] in two sentences or one, sentence [1, 2, 1], right [1].

    mean(left) = (1/2 + 4/2) / 1 = 5/2, mean(right) = 2, mean(sentence) = (3/2 + 2 + 3/2) / 2 = 5/2
    v = 2 * 5/2 - 2 * 2 = 1:    softmax over exp(0), 2 * 2, 3 = 1/8, 1/2, 3/8
    v = 4/5 * 5/2 = 2:          softmax over 1, 2 * 4, 9      = 1/18, 4/9, 1/2
    v = -2/5 * 5/2 = -1:        softmax over 1, 2 / 2, 1/3    = 3/7, 3/7, 1/7
    """
    model = LightContextGeneratorModel(LightContextGeneratorConfig(vocab_size=3, hidden_size=1)).eval()
    values = {
        "input_embeddings.weight": [[1.0], [2.0], [4.0]],
        "token_weight_logits": [0.0, math.log(3), 0.0],
        "left_to_sentence.weight": [[2.0]],
        "right_to_sentence.weight": [[-2.0]],
        "sentence_to_left.weight": [[0.8]],
        "sentence_to_right.weight": [[-0.4]],
        "output_embeddings.weight": [[0.0], [math.log(2)], [math.log(3)]],
        "output_bias": [0.0, math.log(2), 0.0],
    }
    model.load_state_dict({name: torch.tensor(value) for name, value in values.items()})
    expected = torch.tensor([-math.log(3 / 32) / 3, -math.log(1 / 36) / 2, -math.log(3 / 7)])
    for rows, left, sentence, right in (
        ([[0, 2], [1, 2, 1], [1]], [[0]], [1], [[2]]),
        ([[1], [0], [1, 2, 1], [2]], [[3, 1]], [2], [[0, -1]]),
    ):
        out = model(**inputs(rows, left, sentence, right))
        torch.testing.assert_close(out.question_losses, expected)
        torch.testing.assert_close(out.loss.detach(), expected.mean())


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_three_roads_to_one_log_probability(direction: str) -> None:
    model = tiny()
    place = places(model)
    vectors, target = source(model, direction, place), place[direction]
    normaliser = model.normalisers(vectors)
    matrix = model.log_prob_matrix(vectors, normaliser, target)
    torch.testing.assert_close(model.log_prob(vectors, normaliser, target), matrix.diagonal(), rtol=1e-5, atol=1e-5)
    for row, source_place in enumerate(PLACES):
        log_softmax = plain_log_softmax(model, direction, source_place)
        for column, target_place in enumerate(PLACES):
            plain = log_softmax[target_place[direction]].sum()
            torch.testing.assert_close(matrix[row, column], plain, rtol=1e-5, atol=1e-5)
    assert target.length.tolist() == [len(place[direction]) for place in PLACES]


def test_loss_is_the_mean_of_the_questions_cross_entropies() -> None:
    model, expected = tiny(), []
    for direction in DIRECTIONS:
        log_probs = [plain_log_softmax(model, direction, place)[place[direction]].sum() for place in PLACES]
        expected.append(-sum(log_probs) / sum(len(place[direction]) for place in PLACES))
    out = model(**inputs())
    torch.testing.assert_close(out.question_losses, torch.stack(expected).detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out.loss, torch.stack(expected).mean(), rtol=1e-5, atol=1e-5)
    assert not out.question_losses.requires_grad


def test_nothing_depends_on_padding_or_batch() -> None:
    model = tiny()
    together = model.encode_sentences(*padded(ROWS))
    for row, tokens in enumerate(ROWS):
        alone = model.encode_sentences(*padded([tokens]))
        assert_factors_close(alone, SentenceFactors(*(factor[row : row + 1] for factor in together)))
    # Padding in any place, with any id under it.
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(VOCABULARY, (len(ROWS), 20), generator=generator)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(ROWS):
        columns = torch.randperm(20, generator=generator)[: len(tokens)].sort().values
        ids[row, columns], mask[row, columns] = torch.tensor(tokens), 1
    scattered = model.encode_sentences(ids, mask)
    assert_factors_close(scattered, together)
    assert_factors_close(model.encode_sentences(ids, mask.bool()), scattered)
    torch.testing.assert_close(
        model(**{**inputs(), "input_ids": ids, "attention_mask": mask}).loss, model(**inputs()).loss
    )


def test_sources_are_normalised_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, vectors = tiny(), torch.randn(7, HIDDEN)
    expected = model.normalisers(vectors)
    monkeypatch.setattr(module, "SOURCES_PER_BLOCK", 3)
    torch.testing.assert_close(model.normalisers(vectors), expected)


def test_a_sentence_without_tokens_says_nothing() -> None:
    model = tiny()
    ids, mask = padded(ROWS)
    mask[[0, 3, 6]] = 0  # the first, the last and one in the middle
    factors = model.encode_sentences(ids, mask)
    for row in (0, 3, 6):
        assert not any(factor[row].any() for factor in factors) and not factors.mean()[row].any()
    others = [1, 2, 4, 5]
    expected = model.encode_sentences(*padded([ROWS[row] for row in others]))
    assert_factors_close(SentenceFactors(*(factor[others] for factor in factors)), expected)
    nothing = model.encode_sentences(ids, torch.zeros_like(mask))
    assert not any(factor.any() for factor in nothing)


def test_a_side_is_all_its_tokens_however_they_are_cut_into_sentences() -> None:
    model = tiny()
    factors = model.encode_sentences(*padded(ROWS))
    sides = [[0, 3], [5, -1], [-1, 4], [-1, -1]]
    side = factors.side(torch.tensor(sides))
    joined = model.encode_sentences(*padded([tokens_of(places) for places in sides]))
    assert_factors_close(side, joined)
    for row, places in enumerate(sides):
        torch.testing.assert_close(side.mean()[row], plain_mean(model, tokens_of(places)), rtol=1e-5, atol=1e-5)
    mean_of_means = factors.mean()[[0, 3]].mean(0)
    assert (side.mean()[0] - mean_of_means).abs().max() > 0.01  # the heavier sentence counts for more


def test_minus_one_is_no_sentence() -> None:
    model = tiny()
    factors = model.encode_sentences(*padded(ROWS))
    one = factors.side(torch.tensor([[3], [0]]))
    assert_factors_close(factors.side(torch.tensor([[-1, 3, -1], [0, -1, -1]])), one)
    for absent in (torch.tensor([[-1], [-1]]), torch.tensor([[-1, -1], [-1, -1]]), torch.zeros(2, 0).long()):
        side = factors.side(absent)
        assert not any(factor.any() for factor in side) and not side.mean().any()
        assert side.output_sum.shape == (2, HIDDEN) and side.length.shape == (2,)
        torch.testing.assert_close(
            model.source("sentence", left=side, right=one), one.mean() @ model.right_to_sentence.weight.T
        )
    assert_factors_close(factors.side(torch.tensor([[3], [-1]])), factors.side(torch.tensor([[3, -1], [-1, -1]])))


def gradients(model: LightContextGeneratorModel, batch: Any = None, **kwargs: Any) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(**(batch or inputs()), **kwargs).loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_a_sentence_of_several_contexts_counts_as_its_copies_would() -> None:
    model, rows = tiny(), []

    def copy(place: int) -> int:
        if place >= 0:
            rows.append(ROWS[place])
        return place if place < 0 else len(rows) - 1

    left, right = ([[copy(place) for place in side] for side in sides] for sides in (LEFT, RIGHT))
    copies = inputs(rows, left, [copy(place) for place in SENTENCE], right)
    torch.testing.assert_close(model(**inputs()).question_losses, model(**copies).question_losses, rtol=0, atol=1e-5)
    expected = gradients(model, copies)
    for name, grad in gradients(model).items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-5)


def test_unigram_counts_give_sif_weights_and_the_unigram_model() -> None:
    model = tiny(sif_smoothing=1e-2)
    counts = torch.arange(VOCABULARY) * 10
    model.set_unigram_counts(counts)
    frequency = (counts + 1) / (counts + 1).sum()
    torch.testing.assert_close(torch.sigmoid(model.token_weight_logits), 1e-2 / (1e-2 + frequency))
    silent = torch.zeros(1, HIDDEN)  # a source that says nothing
    target = model.encode_sentences(*padded([[5, 7, 2]]))
    expected = frequency[[5, 7, 2]].log().sum()
    torch.testing.assert_close(model.log_prob(silent, model.normalisers(silent), target)[0], expected)
    with pytest.raises(ValueError, match=r"one number per token, 30, got \(29,\)"):
        model.set_unigram_counts(counts[:-1])


@pytest.mark.parametrize("num_sampled", [0, 8])
def test_gradient_reaches_every_parameter(num_sampled: int) -> None:
    model = tiny(num_sampled=num_sampled).train()
    assert [name for name, grad in gradients(model).items() if not grad.any()] == []


OWN = sorted({token for row in ROWS for token in row})
OTHERS = [token for token in range(VOCABULARY) if token not in OWN]


@pytest.mark.parametrize("sampled", [list(range(VOCABULARY)), OTHERS])
def test_a_sample_that_holds_every_other_token_gives_the_full_loss(sampled: list[int]) -> None:
    model = tiny()
    assert 5 <= len(OTHERS) <= 20
    expected = gradients(model)
    for name, grad in gradients(model, sampled_ids=torch.tensor(sampled)).items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(**inputs(), sampled_ids=torch.tensor(sampled)).loss, model(**inputs()).loss)


def test_tokens_are_sampled_in_training_only() -> None:
    full = tiny()(**inputs()).loss
    model = tiny(num_sampled=3)
    torch.testing.assert_close(model(**inputs()).loss, full)
    model.train()
    assert len({model(**inputs()).loss.item() for _ in range(5)}) > 1  # drawn anew each time
    torch.testing.assert_close(tiny(num_sampled=VOCABULARY).train()(**inputs()).loss, full)
    torch.testing.assert_close(tiny(num_sampled=0).train()(**inputs()).loss, full)


def test_sampled_exp_normaliser_is_right_on_average() -> None:
    model, draws = tiny(), []
    with torch.no_grad():
        vectors = 0.3 * source(model, "sentence", places(model))
        exact = model.normalisers(vectors).exp()
        weights = model.output_embeddings.weight, model.output_bias
        for _ in range(400):
            sampled = torch.randperm(VOCABULARY)[:15]
            draws.append(sampled_normaliser(vectors, torch.tensor(ROWS[3]), sampled, *weights).exp())
    error = torch.stack(draws).std(0) / 400**0.5  # of the mean
    assert error.min() > 0  # the draws differ
    assert ((torch.stack(draws).mean(0) - exact).abs() < 4 * error).all()


def test_sampled_gradient_comes_close_on_average_and_closer_with_more_samples() -> None:
    """Z is the logarithm of an unbiased estimate, so a small bias stays; it must shrink as the sample grows."""
    model = tiny()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    batch = inputs(ROWS[2:5], [[0]], [1], [[2]])  # few tokens of their own, many others

    def flat(**kwargs: Any) -> torch.Tensor:
        return torch.cat([grad.flatten() for grad in gradients(model, batch, **kwargs).values()])

    full, generator = flat(), torch.Generator().manual_seed(2)
    of_mean, of_one = {}, {}
    for samples in (5, 12, 25):
        draws = [flat(sampled_ids=torch.randperm(VOCABULARY, generator=generator)[:samples]) for _ in range(60)]
        of_mean[samples] = float((torch.stack(draws).mean(0) - full).norm() / full.norm())
        of_one[samples] = float((torch.stack(draws) - full).norm(dim=1).mean() / full.norm())
    assert of_mean[25] < of_mean[5]  # 12 and 5 lie within the noise of 60 draws
    assert of_one[25] < of_one[12] < of_one[5]
    assert of_mean[12] < 0.15 and of_mean[25] < 0.05


def test_a_sampled_token_stands_for_its_share_of_the_others() -> None:
    chosen, correction = choose_tokens(torch.tensor([5, 7, 5]), torch.tensor([7, 3, 9, 8]), vocab_size=20)
    assert chosen.tolist() == [5, 7, 3, 9, 8]
    torch.testing.assert_close(correction.exp(), torch.tensor([1, 1, 6.0, 6.0, 6.0]))  # 18 others, 3 samples
    alone, nothing = choose_tokens(torch.tensor([5]), torch.tensor([5]), vocab_size=20)
    assert alone.tolist() == [5] and nothing.tolist() == [0]


def test_half_precision_can_be_sampled_too() -> None:
    loss = tiny().bfloat16()(**inputs(), sampled_ids=torch.arange(VOCABULARY)).loss
    assert loss.dtype == torch.bfloat16
    torch.testing.assert_close(loss.float(), tiny()(**inputs()).loss, rtol=0.05, atol=0)


def test_saved_and_opened_model_is_equal(tmp_path: Path) -> None:
    model = tiny()
    model.save_pretrained(tmp_path)
    again = LightContextGeneratorModel.from_pretrained(tmp_path)
    assert torch.equal(again(**inputs()).loss, model(**inputs()).loss)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_a_new_model_starts_with_even_weights_and_identity_maps() -> None:
    model = LightContextGeneratorModel(LightContextGeneratorConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN))
    for linear in (model.left_to_sentence, model.right_to_sentence, model.sentence_to_left, model.sentence_to_right):
        assert torch.equal(linear.weight, torch.eye(HIDDEN))
    assert not model.token_weight_logits.any() and not model.output_bias.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_ids": [5] * 7}, r"`input_ids` must be \(sentences, tokens\), got the shape \(7,\)"),
        ({"attention_mask": [[1, 1]]}, r"`attention_mask` must have the shape of `input_ids`, \(7, 8\), got \(1, 2\)"),
        ({"left_index": SENTENCE}, r"`left_index` must be \(batch, sentences of a side\), got the shape \(4,\)"),
        ({"right_index": [[0], [1], [2], [7]]}, "`right_index` must lie from -1 to 6, got 0 to 7"),
        ({"left_index": [[0], [1], [2], [-2]]}, "`left_index` must lie from -1 to 6, got -2 to 2"),
        ({"sentence_index": [0, 1, 2, -1]}, "`sentence_index` must lie from 0 to 6, got -1 to 2"),
        ({"sentence_index": [[0, 1]] * 4}, r"`sentence_index` must be \(batch,\), got the shape \(4, 2\)"),
        ({"sentence_index": [0]}, "the same batch size, got {'left_index': 4, 'right_index': 4, 'sentence_index': 1}"),
        ({"left_index": [[0]], "right_index": [[0]]}, "the same batch size, got {'left_index': 1, 'right_index': 1, "),
    ],
)
def test_wrong_inputs_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    changed = {name: torch.tensor(value) for name, value in changes.items()}
    with pytest.raises(ValueError, match=words):
        tiny()(**(inputs() | changed))


def test_ids_of_another_tokenizer_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"vocab_size - 1 = 29, got ids from 4 to 30\. Was the text encoded"):
        tiny().encode_sentences(*padded([[4, 30]]))
    with pytest.raises(ValueError, match="got ids from -100 to 4"):
        tiny().encode_sentences(*padded([[4, -100]]))


def test_sources_without_the_places_they_need_are_refused_in_words() -> None:
    model = tiny()
    place = places(model)
    made = "made for 'sentence' from left and right; 'left' from sentence; 'right' from sentence; got "
    with pytest.raises(ValueError, match=f"{made}'sentence' from left"):
        model.source("sentence", left=place["left"])
    with pytest.raises(ValueError, match=f"{made}'left' from sentence and right"):
        model.source("left", sentence=place["sentence"], right=place["right"])
    with pytest.raises(ValueError, match=f"{made}'up' from sentence"):
        model.source("up", sentence=place["sentence"])
