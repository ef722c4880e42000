"""The core runs on the interpreter: the same greedy tokens as a plain loop over whole texts."""

from __future__ import annotations

import numpy as np

from edgeserve._native.core import Core
from edgeserve._native.oracle import CallbackForward
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring, Vocabulary
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.passes import fuse
from edgeserve.graph.reference import Reference
from edgeserve.sampling import SamplerSettings
from tests.data import tiny

VOCAB, PAGE, PAGES, TOKENS = 97, 4, 12, 12
PROMPTS = ([3, 1, 4, 1, 5, 9, 2, 6, 5], [2, 7, 1])


def tiny_reference(pages: int = PAGES) -> Reference:
    checkpoint = tiny.TinyCheckpoint(tiny.VARIANTS["mistral-window"])
    family = discover.load(checkpoint.model_type)
    graph = fuse(family.graph(checkpoint, GraphOptions(max_model_len=64)))
    return Reference(graph, checkpoint.dequantise, pages=pages, page_tokens=PAGE)


def plain_greedy(prompt: list[int]) -> list[int]:
    ids = list(prompt)
    for _ in range(TOKENS):
        logits = tiny_reference().run(ids, [(0, len(ids), range(PAGES))], [len(ids) - 1])
        ids.append(int(logits[0].argmax()))
    return ids


def test_the_core_runs_on_the_interpreter() -> None:
    reference = tiny_reference()
    forward = CallbackForward(
        reference.run,
        reference.copy_page,
        vocab=VOCAB,
        page_tokens=PAGE,
        pages=PAGES,
        step_tokens=64,
    )
    pool = PagePool(PAGES)
    core = Core(forward, pool, Ring(), max_rows=4)
    vocabulary = Vocabulary([bytes([65 + i % 26]) for i in range(VOCAB)], [])
    sequences = [
        Sequence(
            number,
            np.asarray(prompt, np.int32),
            vocabulary,
            pool,
            PAGE,
            sampler=SamplerSettings(temperature=0.0),
            max_tokens=TOKENS,
            max_length=64,
        )
        for number, prompt in enumerate(PROMPTS)
    ]
    core.run([(sequences[0], 6)], 1)  # a chunk that ends inside a page
    core.run([(sequences[0], 3), (sequences[1], 3)], 1)
    core.run([(sequence, 1) for sequence in sequences], TOKENS)
    for sequence, prompt in zip(sequences, PROMPTS, strict=True):
        assert list(sequence.tokens()) == plain_greedy(prompt)
        sequence.release()
    assert pool.available == PAGES
