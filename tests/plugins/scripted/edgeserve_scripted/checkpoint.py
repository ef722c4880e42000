"""Writes the checkpoint folder of a scripted model: a Hugging Face folder like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from edgeserve_scripted.script import Script
from edgeserve_scripted.vocabulary import EOS, SPECIAL, VOCAB, tokenizer_json

HIDDEN = 32
LAYERS = 1

# ChatML with tools and a thinking switch, in the manner of Qwen 3.
TEMPLATE = """\
{%- if tools %}
<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
{% for tool in tools %}
{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role != 'system' or not loop.first %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}
{%- endif %}"""


def write_checkpoint(
    folder: Path,
    scripts: Mapping[str, Script] | None = None,
    *,
    context: int = 4096,
    chat_template: str | None = TEMPLATE,
    seed: int = 0,
) -> Path:
    """The folder, written; `scripts` come beside the built-in ones."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer_config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": context,
    }
    if chat_template is not None:
        tokenizer_config["chat_template"] = chat_template
    files = {
        "config.json": _config(context, scripts or {}),
        "generation_config.json": {"eos_token_id": [EOS, SPECIAL["<|endoftext|>"]]},
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": tokenizer_config,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    save_file(_weights(seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _config(context: int, scripts: Mapping[str, Script]) -> dict[str, Any]:
    return {
        "architectures": ["ScriptedForCausalLM"],
        "model_type": "scripted",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 1,
        "max_position_embeddings": context,
        "tie_word_embeddings": True,
        "eos_token_id": EOS,
        "dtype": "float32",
        "scripts": {name: script.to_config() for name, script in scripts.items()},
    }


def _weights(seed: int) -> dict[str, np.ndarray]:
    """The same numbers on every machine for a seed."""
    draw = np.random.RandomState(seed)
    square = (HIDDEN, HIDDEN)
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN)}
    norms = ["model.norm.weight"]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for name in ("self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o"):
            shapes[f"{prefix}.{name}_proj.weight"] = square
        for name in ("gate", "up", "down"):
            shapes[f"{prefix}.mlp.{name}_proj.weight"] = square
        norms += [f"{prefix}.input_layernorm.weight", f"{prefix}.post_attention_layernorm.weight"]
    weights = {
        name: (draw.standard_normal(shape) * 0.2).astype(np.float32)
        for name, shape in shapes.items()
    }
    return {**weights, **{name: np.ones(HIDDEN, np.float32) for name in norms}}
