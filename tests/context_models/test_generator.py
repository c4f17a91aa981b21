"""The seq2seq generator: Eq. 2 by several roads, padding and batching, BART as a start, generation."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from ctxsim_hf import ContextGeneratorConfig, ContextGeneratorModel
from ctxsim_hf.context_models.seq2seq import modeling as module
from ctxsim_hf.context_models.terms import DIRECTIONS

SIZES = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
}  # fmt: skip


def tiny(direction: str = "sentence", **kwargs: Any) -> ContextGeneratorModel:
    """A model whose place embeddings have left zero, as training would have it."""
    torch.manual_seed(0)
    config = ContextGeneratorConfig(direction=direction, init_std=0.3, **SIZES)
    model = ContextGeneratorModel._from_config(config, **kwargs).eval()
    with torch.no_grad():
        for parameter in (
            p for name, p in model.named_parameters() if "embed_sentences" in name or "embed_dir" in name
        ):
            parameter.normal_()
    return model


def source(rows: int = 3) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    lengths = torch.arange(rows) * 2 + 4
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    ids = torch.where(mask > 0, torch.randint(4, 40, mask.shape), 1)
    sentence_ids = (torch.arange(mask.shape[1]) >= 3).long().expand_as(mask) * 3 * mask
    return {"input_ids": ids, "attention_mask": mask, "sentence_ids": sentence_ids}


def targets(*lengths: int) -> torch.Tensor:
    """Random tokens, the end mark, and -100 to the longest."""
    labels = torch.full((len(lengths), max(lengths)), -100)
    for row, length in zip(labels, lengths, strict=True):
        row[: length - 1] = torch.randint(4, 40, (length - 1,))
        row[length - 1] = 2
    return labels


def test_log_prob_is_the_loss_times_the_length() -> None:
    model, inputs, labels = tiny(), source(), targets(5, 2, 7)
    log_prob = model.log_prob(**inputs, labels=labels)
    assert model.target_lengths(labels).tolist() == [5, 2, 7]
    for row, length in enumerate((5, 2, 7)):
        one = {name: value[row : row + 1] for name, value in inputs.items()}
        loss = model(**one, labels=labels[row : row + 1]).loss
        torch.testing.assert_close(log_prob[row], -loss * length, rtol=1e-5, atol=1e-5)
    loss = model(**inputs, labels=labels).loss
    torch.testing.assert_close(loss, -log_prob.sum() / 14, rtol=1e-5, atol=1e-5)


def test_log_prob_is_the_chain_over_tokens() -> None:
    model, inputs, labels = tiny(), source(1), targets(4)
    total = 0.0
    for place in range(4):
        start = torch.tensor([[2, *labels[0, :place].tolist()]])
        logits = model(**inputs, decoder_input_ids=start).logits[0, -1]
        total += float(logits.detach().softmax(-1)[labels[0, place]].log())
    assert model.log_prob(**inputs, labels=labels).item() == pytest.approx(total, abs=1e-5)


def test_log_prob_does_not_depend_on_padding_batch_or_block(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, labels = tiny(), source(), targets(5, 2, 7)
    together = model.log_prob(**inputs, labels=labels)
    for row, (size, length) in enumerate(zip((4, 6, 8), (5, 2, 7), strict=True)):
        alone = {name: value[row : row + 1, :size] for name, value in inputs.items()}
        score = model.log_prob(**alone, labels=labels[row : row + 1, :length])
        torch.testing.assert_close(score[0], together[row], rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(module, "TOKENS_PER_BLOCK", 3)
    torch.testing.assert_close(model.log_prob(**inputs, labels=labels), together, rtol=1e-5, atol=1e-5)
    assert model.log_prob(**inputs, labels=torch.full((3, 2), -100)).tolist() == [0, 0, 0]


def test_one_encoding_serves_many_targets() -> None:
    model, inputs = tiny(), source(2)
    labels = torch.stack([targets(5, 2, 7, 3), targets(4, 7, 1, 6)])  # (contexts, targets, target tokens)
    matrix = model.log_prob(**inputs, labels=labels)
    assert matrix.shape == (2, 4) and model.target_lengths(labels).shape == (2, 4)
    for column in range(4):
        torch.testing.assert_close(model.log_prob(**inputs, labels=labels[:, column]), matrix[:, column])
    encoded = model.encode(**inputs)
    again = model.log_prob(None, inputs["attention_mask"], None, labels, encoder_outputs=encoded)
    torch.testing.assert_close(again, matrix)


def test_sdpa_and_eager_agree() -> None:
    inputs, labels = source(), targets(5, 2, 7)
    scores = [tiny(attn_implementation=kind).log_prob(**inputs, labels=labels) for kind in ("sdpa", "eager")]
    torch.testing.assert_close(*scores, rtol=1e-5, atol=1e-5)


def test_sentence_positions_and_directions_matter() -> None:
    inputs, labels = source(), targets(5, 2, 7)
    model = tiny()
    moved = {**inputs, "sentence_ids": inputs["sentence_ids"] + 1}
    assert not torch.allclose(model.log_prob(**inputs, labels=labels), model.log_prob(**moved, labels=labels))
    model = tiny("all")
    scores = [
        model.log_prob(**inputs, labels=labels, direction_ids=torch.full((3,), index))
        for index in range(len(DIRECTIONS))
    ]
    assert not torch.allclose(scores[0], scores[1]) and not torch.allclose(scores[1], scores[2])


@pytest.mark.parametrize("direction", ["sentence", "all"])
def test_a_bart_checkpoint_is_a_start_that_is_not_disturbed(tmp_path: Path, direction: str) -> None:
    torch.manual_seed(0)
    bart = BartForConditionalGeneration(BartConfig(init_std=0.3, **SIZES)).eval()
    bart.save_pretrained(tmp_path / "bart")
    model, report = ContextGeneratorModel.from_pretrained(
        tmp_path / "bart", direction=direction, output_loading_info=True
    )
    expected = {"model.encoder.embed_sentences.weight"}
    if direction == "all":
        expected.add("model.encoder.embed_directions.weight")
    assert set(report["missing_keys"]) == expected and not report["unexpected_keys"]
    inputs, labels = source(), targets(5, 2, 7)
    more = {"direction_ids": torch.tensor([0, 1, 2])} if direction == "all" else {}
    plain = bart(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels)
    torch.testing.assert_close(model(**inputs, **more, labels=labels).loss, plain.loss)
    model.save_pretrained(tmp_path / "ours")
    again = ContextGeneratorModel.from_pretrained(tmp_path / "ours")
    assert again.config.model_type == "ctxsim_generator" and again.config.direction == direction


@pytest.mark.parametrize("direction", ["sentence", "all"])
def test_saved_and_opened_model_is_equal_and_tied(tmp_path: Path, direction: str) -> None:
    model, inputs, labels = tiny(direction), source(), targets(5, 2, 7)
    more = {"direction_ids": torch.tensor([2, 0, 1])} if direction == "all" else {}
    model.save_pretrained(tmp_path)
    again = ContextGeneratorModel.from_pretrained(tmp_path)
    assert torch.equal(
        again.log_prob(**inputs, **more, labels=labels), model.log_prob(**inputs, **more, labels=labels)
    )
    for opened in (model, again):
        assert opened.lm_head.weight is opened.model.shared.weight
        assert opened.model.encoder.embed_tokens.weight is opened.model.shared.weight


def test_gradient_reaches_every_parameter_and_is_equal_with_checkpointing() -> None:
    inputs, labels, grads = source(), targets(5, 2, 7), []
    for checkpointing in (False, True):
        model = tiny("all").train()
        for part in model.modules():  # dropout would differ between the two runs
            if isinstance(getattr(part, "dropout", None), float):
                part.dropout = 0.0
        if checkpointing:
            model.gradient_checkpointing_enable()
        model(**inputs, direction_ids=torch.tensor([0, 1, 2]), labels=labels).loss.backward()
        grads.append({name: parameter.grad for name, parameter in model.named_parameters()})
    assert [name for name, grad in grads[0].items() if grad is None or not grad.any()] == []
    for name, grad in grads[0].items():
        torch.testing.assert_close(grads[1][name], grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("beams", [1, 3])
def test_generate_passes_places_to_the_encoder(beams: int) -> None:
    model, inputs = tiny("all"), source()
    directions = torch.tensor([0, 1, 2])
    together = model.generate(**inputs, direction_ids=directions, num_beams=beams, max_new_tokens=6, min_new_tokens=6)
    assert len(together) == 3
    for row, size in enumerate((4, 6, 8)):
        alone = {name: value[row : row + 1, :size] for name, value in inputs.items()}
        one = model.generate(
            **alone, direction_ids=directions[row : row + 1], num_beams=beams, max_new_tokens=6, min_new_tokens=6
        )
        assert one[0].tolist() == together[row].tolist()
    if beams == 1:
        with torch.no_grad():
            logits = model(**inputs, direction_ids=directions, decoder_input_ids=together[:, :3]).logits[:, -1]
        logits[:, 2] = -torch.inf  # `min_new_tokens` forbids the end mark
        assert logits.argmax(-1).tolist() == together[:, 3].tolist()


def test_hidden_states_of_the_encoder_can_be_asked_for() -> None:
    outputs = tiny()(**source(), labels=targets(5, 2, 7), output_hidden_states=True)
    assert len(outputs.encoder_hidden_states) == len(outputs.decoder_hidden_states) == 3


def test_missing_or_superfluous_places_are_refused_in_words() -> None:
    inputs, labels = source(), targets(5, 2, 7)
    with pytest.raises(
        ValueError, match=r"`sentence_ids` must be \(batch, tokens\) = \(3, 8\) like the ids, got None"
    ):
        tiny()(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels)
    with pytest.raises(ValueError, match="must be None for a model of direction 'left', got a tensor"):
        tiny("left")(**inputs, direction_ids=torch.zeros(3, dtype=torch.long), labels=labels)
    with pytest.raises(ValueError, match=r"`direction_ids` must be \(batch,\) = \(3,\) for direction 'all', got None"):
        tiny("all")(**inputs, labels=labels)
    with pytest.raises(ValueError, match=r"`labels` must be .* for a batch of 3, got the shape \(2, 7\)"):
        tiny().log_prob(**inputs, labels=labels[:2])
    with pytest.raises(ValueError, match="or else `encoder_outputs`"):
        tiny().log_prob(None, inputs["attention_mask"], None, labels)
