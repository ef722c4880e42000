"""The default model on the CPU backend: sensible text, and bitwise the same in any chunking."""

from __future__ import annotations

import numpy as np
import pytest

from edgeserve._native.cpu import CpuForward
from edgeserve.backends.cpu import CpuBackend
from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.config import EngineOptions
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.text.tokenizer import Tokenizer

PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
PAGES = np.arange(8, dtype=np.int32)[::-1].copy()
LAST = np.zeros(1, np.int32)


@pytest.fixture(scope="module")
def smollm2(default_model, tmp_path_factory) -> tuple[CpuForward, Tokenizer]:
    checkpoint = open_checkpoint(default_model)
    family = discover.load(checkpoint.model_type)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=256))
    options = EngineOptions(checkpoint="smollm2", pin=False, threads=2)
    backend, folder = CpuBackend(), tmp_path_factory.mktemp("smollm2")
    layout = backend.pack(graph, checkpoint, options, folder, lambda *_: None)
    forward = backend.load(graph, folder, layout, options, pages=8, page_tokens=16)
    return forward, family.tokenizer(checkpoint)


def prefill(forward: CpuForward, ids: np.ndarray, chunk: int) -> np.ndarray:
    for start in range(0, len(ids), chunk):
        part = ids[start : start + chunk]
        row = forward.run(part, [(start, len(part), PAGES)], LAST + len(part) - 1)
    return row


def test_it_knows_the_capital_of_france(smollm2):
    forward, tokenizer = smollm2
    ids = np.asarray(tokenizer.encode(PROMPT), np.int32)
    row, answer = prefill(forward, ids, 512), []
    for position in range(len(ids), len(ids) + 8):
        answer.append(int(row[0].argmax()))
        row = forward.run(np.asarray(answer[-1:], np.int32), [(position, 1, PAGES)], LAST)
    assert "The capital of France is Paris" in tokenizer.decode(answer)


def test_a_prompt_is_bitwise_the_same_in_any_chunking(smollm2):
    forward, tokenizer = smollm2
    ids = np.asarray(tokenizer.encode(PROMPT * 3), np.int32)
    whole = prefill(forward, ids, 512)
    for chunk in (1, 5, 16):
        np.testing.assert_array_equal(prefill(forward, ids, chunk), whole)
