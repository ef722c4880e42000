"""What the standard family reads from a checkpoint, and how it refuses a wrong one."""

from __future__ import annotations

import json
import math
from typing import ClassVar

import pytest

from edgeserve.errors import CheckpointError
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.family.end_of_text import eos_ids
from tests.data import tiny

LLAMA = tiny.VARIANTS["llama-rope-default"]
ADDED = [
    {"id": 2, "content": "</s>", "special": True},
    {"id": 7, "content": "<|im_end|>", "special": True},
    {"id": 8, "content": "<|eot_id|>", "special": True},
    {"id": 9, "content": "<|end|>", "special": False},
]


class Chat(tiny.TinyCheckpoint):
    """A checkpoint with token ids, a tokenizer and a template."""

    generation_config: ClassVar = {"eos_token_id": [5, 3]}
    tokenizer_config: ClassVar = {"eos_token": {"content": "</s>"}}

    def tokenizer_json(self) -> str:
        return json.dumps({"version": "1.0", "added_tokens": ADDED, "model": {"vocab": {}}})

    def chat_template(self) -> str | None:
        return "{{ messages }}<|im_end|><|end|>"


def changed(**changes) -> tiny.TinyCheckpoint:
    """The tiny Llama with other values in its config."""
    checkpoint = tiny.TinyCheckpoint(LLAMA)
    checkpoint.config = {**LLAMA.config, **changes}
    return checkpoint


def graph(checkpoint: tiny.TinyCheckpoint):
    return discover.load("llama").graph(checkpoint, GraphOptions(max_model_len=64))


def test_the_spec_has_the_numbers_of_the_model() -> None:
    spec = discover.load("llama").spec(changed(eos_token_id=2))
    assert (spec.layers, spec.vocab, spec.context, spec.eos_ids) == (2, 97, 64, (2,))


def test_the_vocabulary_may_come_from_the_embedding_table() -> None:
    assert discover.load("llama").spec(changed(vocab_size=None)).vocab == 97


def test_ends_come_from_configs_tokenizer_and_template() -> None:
    checkpoint = Chat(LLAMA)
    checkpoint.config = {**LLAMA.config, "eos_token_id": 4}
    # <|eot_id|> is not in the template, <|end|> is not a special token
    assert eos_ids(checkpoint) == (2, 3, 4, 5, 7)


@pytest.mark.parametrize(
    "text", ['{"added_tokens"', "[]", '{"added_tokens": [{}]}', '{"added_tokens": [{"id": "x"}]}']
)
def test_a_broken_tokenizer_is_one_sentence(text: str) -> None:
    checkpoint = changed()
    checkpoint.tokenizer_config = {"eos_token": "</s>"}
    checkpoint.tokenizer_json = lambda: text
    with pytest.raises(CheckpointError, match=r"tokenizer\.json cannot be read"):
        eos_ids(checkpoint)


def test_tied_embeddings_are_seen_by_the_missing_head() -> None:
    checkpoint = tiny.TinyCheckpoint(tiny.VARIANTS["llama-tied"])
    checkpoint.config = {k: v for k, v in checkpoint.config.items() if k != "tie_word_embeddings"}
    assert "lm_head.weight" not in {weight.name for weight in graph(checkpoint).weights}
    untied = changed(tie_word_embeddings=None)
    assert "lm_head.weight" in {weight.name for weight in graph(untied).weights}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_size": None},
            "'hidden_size' must be a whole number; it is missing",
        ),
        ({"num_hidden_layers": "2"}, "'num_hidden_layers' must be a whole number; it is '2'"),
        ({"num_attention_heads": 0}, "'num_attention_heads' must be from 1 to .*; it is '0'"),
        ({"num_hidden_layers": 10**9}, "'num_hidden_layers' must be from 1 to 4096"),
        ({"head_dim": 10**9}, "'head_dim' must be from 1 to 65536"),
        ({"hidden_act": "sine"}, "'hidden_act' must be one of silu, .*; it is 'sine'"),
        ({"hidden_act": ["silu"]}, "'hidden_act' must be one of silu, .*"),
        ({"rms_norm_eps": math.inf}, "'rms_norm_eps' must be a number; it is 'inf'"),
        ({"rms_norm_eps": True}, "'rms_norm_eps' must be a number"),
        ({"attention_bias": 1}, "'attention_bias' must be true or false"),
        ({"layer_types": ["full_attention"]}, "'layer_types' must be a list of 2 names"),
        ({"layer_types": ["x", "y"]}, "'layer_types' must be a list of full_attention and"),
        ({"layer_types": [[], []]}, "'layer_types' must be a list of full_attention and"),
        ({"num_local_experts": 8}, "is a mixture of experts"),
    ],
)
def test_a_wrong_config_is_one_sentence(changes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        graph(changed(**changes))


def test_a_gguf_mapping_names_every_tensor_of_its_family() -> None:
    """What the mapping renames to are the names that the graphs of the family use."""
    for name, architecture in (("llama-biases", "llama"), ("qwen2", "qwen2"), ("qwen3", "qwen3")):
        variant = tiny.VARIANTS[name]
        family = discover.load_gguf(architecture)
        mapped = {
            target.replace("{i}", str(layer))
            for target in family.gguf[architecture].tensors
            for layer in range(2)
        }
        assert set(variant.weights()) <= mapped
