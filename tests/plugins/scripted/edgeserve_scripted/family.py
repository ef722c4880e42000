"""The family: a tiny real network, and a hook that puts the script's token before its logits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.family.contract import GraphOptions, LogitsHook, Sampler
from edgeserve.family.model_config import ModelConfig
from edgeserve.family.standard import StandardFamily
from edgeserve.graph.blocks import AttentionBlock, Decoder, LayerBlock, MlpBlock
from edgeserve.graph.rope import rope
from edgeserve_scripted.script import choose, from_config

CERTAIN = 100.0  # above all other logits: no temperature or penalty changes the choice
EPS = 1e-6


class ScriptFailed(RuntimeError):
    """What a script with `fail_at` raises: the fault of a plugin."""


def hook(config: dict[str, Any], sleep: Callable[[float], object] = time.sleep) -> LogitsHook:
    """Forces the next token of the script that the prompt asks for."""
    scripts = from_config(config.get("scripts") or {})

    def force(ids: Sequence[int], prompt_length: int, logits: np.ndarray) -> None:
        script, index = choose(ids[:prompt_length], scripts), len(ids) - prompt_length
        delay_ms = script.delay_ms + (script.first_ms if index == 0 else 0.0)
        if delay_ms > 0:
            sleep(delay_ms / 1000)
        if index == script.fail_at:
            raise ScriptFailed(f"token {index} of this script fails")
        if not script.free:
            logits[script.token(index)] = float(logits.max()) + CERTAIN

    return force


def describe(checkpoint: Checkpoint, options: GraphOptions) -> Decoder:
    config = ModelConfig(checkpoint)
    heads, hidden = config.integer("num_attention_heads"), config.integer("hidden_size")
    layer = LayerBlock(
        attention=AttentionBlock(
            heads=heads,
            kv_heads=heads,
            head_dim=hidden // heads,
            rope=rope(checkpoint.config, hidden // heads, options.max_model_len),
        ),
        mlp=MlpBlock(width=config.integer("intermediate_size")),
        eps=EPS,
    )
    return Decoder(
        vocab=config.vocab(),
        hidden=hidden,
        layers=(layer,) * config.layers(),
        eps=EPS,
        tied=True,
    )


FAMILY = StandardFamily(
    name="scripted",
    describe=describe,
    sampling=lambda checkpoint: Sampler(hook=hook(dict(checkpoint.config))),
)
