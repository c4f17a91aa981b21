"""Turn a surrogate into an ONNX graph that includes pooling and normalisation, and quantise its weights to int8.

The tracing exporter is used, since torch's newer one takes ten times as long and needs another package. Its graph is
left as it is, since onnxruntime fuses it on loading; fused beforehand (onnxruntime.transformers, attention and layer
norms included) a RoBERTa-base took up to 10 % longer, in fp32 and in int8.

Matrix products are quantised to int8: weights by output channel in 7 of the 8 bits, since processors without VNNI add
two products of 8 bits in 16 and would overflow. Token embeddings stay as they are; they cost no time.
"""

import logging
import warnings
from pathlib import Path

import torch
from torch import nn

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel

OPSET = 17
INPUTS = ("input_ids", "attention_mask")
OUTPUT = "sentence_embedding"


class _Normalised(nn.Module):
    def __init__(self, model: SurrogateModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        embedding = self.model(input_ids, attention_mask=attention_mask).sentence_embedding
        return nn.functional.normalize(embedding, dim=-1)


def write_onnx(model: SurrogateModel, path: Path) -> None:
    """Write a graph of (sentences, tokens) ids and mask -> (sentences, hidden) vectors of length 1."""
    model.set_attn_implementation("eager")  # the tracer cannot see the products of the others
    pad = model.config.pad_token_id or 0
    real = pad - 1 if pad else 1
    ids = torch.tensor([[real, real, real, real], [real, real, pad, pad]])
    axes = {name: {0: "sentences", 1: "tokens"} for name in INPUTS} | {OUTPUT: {0: "sentences"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about shape checks, which a graph cannot hold, and about the newer exporter
        torch.onnx.export(
            _Normalised(model).eval(),
            (ids, (ids != pad).long()),
            str(path),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


def quantize(path: Path, output: Path) -> None:
    """Write a graph with the weights of its matrix products in int8; their inputs are quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises a step that our graph does not need
    try:
        quantize_dynamic(
            path,
            output,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )
    finally:
        logging.disable(before)
