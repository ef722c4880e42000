"""The determinism contract on a real model and the real kernels: tokens and logprobs of a request
are bitwise the same whatever else happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from edgeserve.config import EngineOptions
from edgeserve.worker.load import load_runtime
from tests.engine.client import Client, Result

PROMPT = tuple(1000 + i * 37 % 40_000 for i in range(70))
FIELDS = {"seed": 11, "max_tokens": 16, "logprobs": 4}
Start = Callable[..., Client]


@pytest.fixture(scope="module")
def options(default_model: Resolved, model_cache: Path) -> Callable[..., EngineOptions]:
    def options(**fields: object) -> EngineOptions:
        settings = {"max_model_len": 256, "threads": 2, **fields}
        return EngineOptions(checkpoint=str(default_model.path), cache_dir=model_cache, **settings)

    return options


@pytest.fixture(scope="module")
def alone(options: Callable[..., EngineOptions]) -> Result:
    """The reference: one request, cold, in an engine of its own."""
    client = Client(load_runtime(options()))
    result = client.result(client.run(PROMPT, **FIELDS))
    client.service.close()
    return result


@pytest.mark.works("The same request gives bitwise the same tokens and logprobs, in any company")
@pytest.mark.parametrize("chunk", [16, 64, 512])
def test_among_others_in_any_chunks_cold_or_warm(
    start: Start, options: Callable[..., EngineOptions], alone: Result, chunk: int
) -> None:
    client = start(load_runtime(options(prefill_chunk=chunk)))
    random_ = random.Random(chunk)
    others = [
        client.submit(
            tuple(random_.randrange(40_000) for _ in range(random_.randrange(1, 90))),
            seed=i,
            max_tokens=random_.randrange(1, 20),
        )
        for i in range(7)
    ]
    cold = client.submit(PROMPT, **FIELDS)
    client.end(cold, *others)
    warm = client.run(PROMPT, **FIELDS)
    assert client.usage(cold).cached_tokens == 0
    assert client.usage(warm).cached_tokens == 64
    assert client.result(cold) == alone
    assert client.result(warm) == alone


def test_after_preemption(
    start: Start, options: Callable[..., EngineOptions], alone: Result
) -> None:
    client = start(load_runtime(options(kv_pool_pages=16)))
    ids = [client.submit(PROMPT, cache_salt=str(i), **FIELDS) for i in range(3)]
    client.end(*ids)
    assert sum(client.usage(i).preemptions for i in ids) > 0
    assert {client.result(i) for i in ids} == {alone}


def test_as_one_of_several_choices(
    start: Start, options: Callable[..., EngineOptions], alone: Result
) -> None:
    client = start(load_runtime(options(max_batch_size=2)))
    assert client.result(client.run(PROMPT, choices=3, **FIELDS), 0) == alone
