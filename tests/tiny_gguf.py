"""A Llama with a byte-level tokenizer -> one GGUF file, in full precision, as llama.cpp would write it."""

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def save_gguf(folder: Path, path: Path) -> Path:
    """Write the model and the tokenizer of a folder."""
    import gguf

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config, writer = model.config, gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__))
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    for name, tensor in model.state_dict().items():
        stem = name.removesuffix(".weight")
        _, _, number, part = stem.split(".", 3) if ".layers." in stem else ("", "", "", "")
        values = tensor.numpy()
        if part in ("self_attn.q_proj", "self_attn.k_proj"):  # llama.cpp turns pairs of neighbours, not halves
            heads = config.num_attention_heads if part.endswith("q_proj") else config.num_key_value_heads
            halves = values.reshape(heads, 2, values.shape[0] // heads // 2, values.shape[1])
            values = halves.swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(f"blk.{number}.{LAYER[part]}.weight" if part else f"{WHOLE[stem]}.weight", values.copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
