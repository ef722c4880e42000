"""A GGUF of a family, written the way llama.cpp's converter does, is the same network."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import resolve_path
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.reference import Reference
from tests.data import tiny

RECORDED = Path(__file__).parents[1] / "data" / "transformers" / "tiny.npz"

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    stem, part = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return f"{NAMES[stem]}.{part}"
    layer, _, rest = stem.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{NAMES[rest]}.{part}"


def permuted(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows as llama.cpp wants them for the architecture "llama": rotary pairs side by side."""
    halves = values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def write_gguf(variant: tiny.Variant, architecture: str, path: Path) -> None:
    config = variant.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{i}" for i in range(config["vocab_size"])])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, values in variant.weights().items():
        role = name.split(".")[-2]
        if architecture == "llama" and role in heads:
            values = permuted(values, heads[role])
        writer.add_tensor(gguf_name(name), values)
    if scaling.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(variant))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama3_divisors(variant: tiny.Variant) -> np.ndarray:
    with np.load(RECORDED) as stored:
        scaled = stored[f"{variant.name}/frequencies"]
        plain = stored["llama-rope-default/frequencies"]
    return (plain / scaled).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("llama-rope-default", "llama"),
        ("llama-rope-llama3", "llama"),
        ("llama-rope-yarn", "llama"),
        ("llama-tied", "llama"),
        ("llama-head-dim", "llama"),
        ("llama-biases", "llama"),
        ("qwen2", "qwen2"),
        ("qwen2-yarn", "qwen2"),
        ("qwen3", "qwen3"),
    ],
)
def test_logits_of_a_gguf_are_those_of_transformers(
    name: str, architecture: str, tmp_path: Path
) -> None:
    variant = tiny.VARIANTS[name]
    path = tmp_path / "model.gguf"
    write_gguf(variant, architecture, path)
    checkpoint = open_checkpoint(resolve_path(path))
    family = discover.load(checkpoint.model_type)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=tiny.LENGTH))
    assert {weight.name for weight in graph.weights} == set(checkpoint.tensors())
    reference = Reference(graph, checkpoint.dequantise, pages=2)
    logits = reference.run(variant.ids(), [(0, tiny.LENGTH, [1, 0])], range(tiny.LENGTH))
    with np.load(RECORDED) as stored:
        wanted = stored[f"{name}/logits"]
    assert np.abs(logits - wanted).max() <= 2e-5 * np.abs(wanted).max()
