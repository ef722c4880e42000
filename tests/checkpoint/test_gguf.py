"""A GGUF seen as the Hugging Face checkpoint it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from edgeserve.checkpoint.formats import ggml
from edgeserve.checkpoint.gguf import GgufCheckpoint
from edgeserve.checkpoint.gguf_config import chat_templates
from edgeserve.errors import CheckpointError
from edgeserve.family.contract import GgufMapping
from tests.checkpoint.gguf_bytes import Gguf, Tensor

HEADS, KV_HEADS, WIDTH = 4, 2, 64
MAPPING = GgufMapping(
    model_type="llama",
    config={
        "num_attention_heads": "{arch}.attention.head_count",
        "num_key_value_heads": "{arch}.attention.head_count_kv",
        "rms_norm_eps": "{arch}.attention.layer_norm_rms_epsilon",
        "rope_theta": "{arch}.rope.freq_base",
    },
    constants={"hidden_act": "silu"},
    tensors={
        "model.embed_tokens.weight": "token_embd.weight",
        "lm_head.weight": "output.weight",
        "model.layers.{i}.self_attn.q_proj.weight": "blk.{i}.attn_q.weight",
        "model.layers.{i}.self_attn.q_proj.bias": "blk.{i}.attn_q.bias",
        "model.layers.{i}.self_attn.k_proj.weight": "blk.{i}.attn_k.weight",
    },
    permuted={
        "model.layers.{i}.self_attn.q_proj.weight": "num_attention_heads",
        "model.layers.{i}.self_attn.q_proj.bias": "num_attention_heads",
        "model.layers.{i}.self_attn.k_proj.weight": "num_key_value_heads",
    },
)


def permute(weights: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's converter does to rows of q and k."""
    shape = weights.shape
    return (
        weights.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
    )


def header() -> Gguf:
    file = Gguf().add("general.architecture", "str", "llama")
    file.add("llama.attention.head_count", "u32", HEADS)
    file.add("llama.attention.head_count_kv", "u32", KV_HEADS)
    file.add("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5)
    return file.add("llama.rope.freq_base", "f32", 500000.0)


def opened(folder: Path, file: Gguf) -> GgufCheckpoint:
    (folder / "m.gguf").write_bytes(file.bytes())
    return GgufCheckpoint(folder / "m.gguf", MAPPING, "m")


def matrix(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, WIDTH), np.float32)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16", "F32"])
def test_rows_of_q_and_k_come_back_exactly(tmp_path: Path, kind: str) -> None:
    number = GGMLQuantizationType[kind]
    file = header()
    query, key, bias = matrix(HEADS * 8, 1), matrix(KV_HEADS * 8, 2), matrix(HEADS * 8, 3)[:, 0]
    for name, weights, heads in (("q", query, HEADS), ("k", key, KV_HEADS)):
        data = quantize(permute(weights, heads), number).tobytes()
        file.tensors.append(Tensor(f"blk.3.attn_{name}.weight", weights.shape, number, data))
    file.tensors.append(Tensor.f32("blk.3.attn_q.bias", permute(bias, HEADS)))
    view = opened(tmp_path, file)
    prefix = "model.layers.3.self_attn"
    stored = view.read(f"{prefix}.q_proj.weight")
    expected = quantize(query, number)
    assert stored.tobytes() == expected.tobytes()
    assert (
        view.dequantise(f"{prefix}.k_proj.weight") == dequantize(quantize(key, number), number)
    ).all()
    assert (view.read(f"{prefix}.q_proj.bias") == bias).all()
    described = view.tensors()[f"{prefix}.q_proj.weight"]
    assert (described.shape, described.format) == (query.shape, kind.lower())


def sizes() -> list[tuple[str, int, int]]:
    found = []
    for kind in GGMLQuantizationType:
        name = ggml.type_name(int(kind))
        if name is not None and name not in ggml.PLAIN:
            found.append((name, *ggml.block_size(name)))
    return found


@pytest.mark.parametrize(("name", "values", "size"), sizes())
def test_every_block_format_reads(tmp_path: Path, name: str, values: int, size: int) -> None:
    number = int(GGMLQuantizationType[name.upper()])
    rows = np.random.default_rng(5).integers(0, 256, (3, 2 * size), np.uint8)
    file = header()
    file.tensors = [Tensor("token_embd.weight", (3, 2 * values), number, rows.tobytes())]
    view = opened(tmp_path, file)
    embed = "model.embed_tokens.weight"
    expected = dequantize(rows, GGMLQuantizationType(number))
    np.testing.assert_array_equal(view.dequantise(embed), expected)
    if name in ggml.KEPT:
        assert view.tensors()[embed].format == name
        assert view.read(embed).tobytes() == rows.tobytes()
    else:
        assert view.tensors()[embed].format == "f32"
        np.testing.assert_array_equal(view.read(embed), expected)


def test_config_is_the_models_own(tmp_path: Path) -> None:
    file = header().add("tokenizer.ggml.bos_token_id", "u32", 1)
    file.tensors = [Tensor.f32("token_embd.weight", matrix(5, 1))]
    config = opened(tmp_path, file).config
    assert config == {
        "model_type": "llama",
        "hidden_act": "silu",
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-05,
        "rope_theta": 500000.0,
        "bos_token_id": 1,
        "vocab_size": 5,
        "tie_word_embeddings": True,
    }
    file.tensors.append(Tensor.f32("output.weight", matrix(5, 2)))
    view = opened(tmp_path, file)
    assert view.config["tie_word_embeddings"] is False
    assert set(view.tensors()) == {"model.embed_tokens.weight", "lm_head.weight"}


def llama3_factors(pairs: int, theta: float) -> np.ndarray:
    """As transformers' llama3 rule divides frequencies: factor 8, low 1, high 4, from 8192."""
    inverse = 1.0 / theta ** (np.arange(pairs) / pairs)
    wavelength = 2 * np.pi / inverse
    smooth = (8192 / wavelength - 1.0) / 3.0
    middle = 1.0 / ((1 - smooth) / 8.0 + smooth)
    return np.where(wavelength < 2048, 1.0, np.where(wavelength > 8192, 8.0, middle))


def test_llama3_rope_scaling_is_recovered_from_its_factors(tmp_path: Path) -> None:
    file = header()
    file.tensors = [Tensor.f32("rope_freqs.weight", llama3_factors(64, 500000.0))]
    assert opened(tmp_path, file).config["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def test_other_rope_scaling(tmp_path: Path) -> None:
    file = header().add("llama.rope.scaling.type", "str", "yarn")
    file.add("llama.rope.scaling.factor", "f32", 4.0)
    file.add("llama.rope.scaling.original_context_length", "u32", 32768)
    assert opened(tmp_path, file).config["rope_scaling"] == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
    }
    odd = header()
    odd.tensors = [Tensor.f32("rope_freqs.weight", np.linspace(1, 3, 8))]
    assert opened(tmp_path, odd).config["rope_scaling"]["rope_type"] == "factors"
    assert "rope_scaling" not in opened(tmp_path, header()).config


def vocabulary(file: Gguf) -> Gguf:
    file.add("tokenizer.ggml.tokens", "[str]", ["a", "<s>", "</s>", "<|im_end|>"])
    file.add("tokenizer.ggml.token_type", "[i32]", [1, 3, 3, 3])
    file.add("tokenizer.ggml.bos_token_id", "u32", 1)
    return file.add("tokenizer.ggml.eos_token_id", "u32", 2)


def test_ends_of_text_and_special_tokens(tmp_path: Path) -> None:
    view = opened(tmp_path, vocabulary(header()).add("tokenizer.ggml.add_bos_token", "bool", True))
    assert view.generation_config == {"bos_token_id": 1, "eos_token_id": [2, 3]}
    assert view.tokenizer_config == {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}


def test_chat_templates_by_name(tmp_path: Path) -> None:
    file = header().add("tokenizer.chat_template", "str", "T")
    view = opened(tmp_path, file)
    assert (view.chat_template(), view.tokenizer_config["chat_template"]) == ("T", "T")
    view = opened(tmp_path, file.add("tokenizer.chat_template.tool_use", "str", "U"))
    assert view.chat_template() == "T"
    assert view.tokenizer_config["chat_template"][1] == {"name": "tool_use", "template": "U"}
    assert chat_templates({}) == {}


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no tensor 'lm_head\.weight'"):
        opened(tmp_path, header()).read("lm_head.weight")


def test_heads_that_do_not_divide_the_rows_are_refused(tmp_path: Path) -> None:
    file = header()
    file.tensors = [Tensor.f32("blk.0.attn_q.weight", matrix(HEADS * 2 + 1, 1))]
    with pytest.raises(CheckpointError, match="num_attention_heads"):
        opened(tmp_path, file).read("model.layers.0.self_attn.q_proj.weight")


def test_a_split_file_is_read_whole(tmp_path: Path) -> None:
    first, second = header(), Gguf()
    first.tensors = [Tensor.f32("token_embd.weight", matrix(5, 1))]
    second.tensors = [Tensor.f32("output.weight", matrix(5, 2))]
    names = [f"m-{i:05}-of-00002.gguf" for i in (1, 2)]
    for name, part in zip(names, (first, second), strict=True):
        (tmp_path / name).write_bytes(part.bytes())
    view = GgufCheckpoint(tmp_path / names[0], MAPPING, "m")
    assert (view.read("lm_head.weight") == matrix(5, 2)).all()
    before = view.digest()
    (tmp_path / names[1]).write_bytes(second.add("x", "u32", 1).bytes())
    assert view.digest() != before
    with pytest.raises(CheckpointError, match="name the first"):
        GgufCheckpoint(tmp_path / names[1], MAPPING, "m").files()
    (tmp_path / names[1]).unlink()
    with pytest.raises(CheckpointError, match="cannot read m-00002"):
        GgufCheckpoint(tmp_path / names[0], MAPPING, "m").tensors()


def test_a_broken_tokenizer_is_one_clear_error(tmp_path: Path) -> None:
    cases: list[list[tuple[str, str, Any]]] = [
        [("tokenizer.ggml.model", "str", "bert")],
        [("tokenizer.ggml.model", "str", "gpt2"), ("tokenizer.ggml.pre", "str", "unheard-of")],
        [("tokenizer.ggml.model", "str", "gpt2")],
        [("tokenizer.ggml.model", "str", "gpt2"), ("tokenizer.ggml.merges", "[str]", ["ab"])],
        [("tokenizer.ggml.model", "str", "gpt2"), ("tokenizer.ggml.merges", "[str]", ["a q"])],
        [("tokenizer.ggml.model", "str", "llama")],
        [("tokenizer.ggml.model", "u32", 3)],
    ]
    for entries in cases:
        file = vocabulary(header())
        for key, kind, value in entries:
            file.add(key, kind, value)
        with pytest.raises(CheckpointError):
            opened(tmp_path, file).tokenizer_json()
    with pytest.raises(CheckpointError, match="no tokenizer"):
        opened(tmp_path, header().add("tokenizer.ggml.model", "str", "gpt2")).tokenizer_json()


def test_a_converted_tokenizer_is_json(tmp_path: Path) -> None:
    file = vocabulary(header()).add("tokenizer.ggml.model", "str", "gpt2")
    document = json.loads(
        opened(tmp_path, file.add("tokenizer.ggml.merges", "[str]", [])).tokenizer_json()
    )
    assert document["model"]["vocab"]["a"] == 0
