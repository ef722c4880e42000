"""Random requests in random engines: each gets exactly what it gets alone, to the last bit."""

from __future__ import annotations

import random

import pytest

from edgeserve.config import EngineOptions
from edgeserve.generation import Finished, PromptLogprobs
from tests.engine.client import Client
from tests.hash_runtime import hash_runtime

REQUESTS = 40


def random_options(random_: random.Random) -> EngineOptions:
    length = random_.choice([64, 160, 512])
    return EngineOptions(
        checkpoint="hash",
        max_model_len=length,
        kv_pool_pages=length // 16 + random_.choice([0, 1, 3, length // 8]),
        max_batch_size=random_.choice([1, 2, 5, 8]),
        step_tokens=random_.choice([8, 17, 64, 1024]),
        prefill_chunk=random_.choice([1, 7, 16, 64, 512]),
        context_reuse=random_.random() < 0.8,
        context_cache_max_records=random_.choice([None, None, 0, 2]),
    )


def random_fields(random_: random.Random, room: int) -> dict[str, object]:
    return {
        "seed": random_.randrange(3),
        "max_tokens": random_.randrange(1, room + 1),
        "choices": random_.choice([1, 1, 1, 2, 5, 9]),
        "priority": random_.choice([0, 0, 0, 1, -1]),
        "reuse_context": random_.random() < 0.8,
        "cache_generated_tokens": random_.random() < 0.7,
        "cache_salt": random_.choice(["", "a"]),
        "ignore_eos": random_.random() < 0.7,
        "prompt_logprobs": random_.choice([None, None, None, 0, 3]),
        "stop": random_.choice([(), (), ("a", "bc")]),
    }


def everything(client: Client, id_: int, choices: int) -> tuple[object, ...]:
    prompt = [e.logprobs for e in client.events[id_] if isinstance(e, PromptLogprobs)]
    texts = ["".join(p.text for p in client.pieces(id_, i)) for i in range(choices)]
    ends = [client.pieces(id_, i)[-1].finish for i in range(choices)]
    usage = client.usage(id_)
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.decoded_tokens)
    return prompt, texts, ends, counts, [client.result(id_, i) for i in range(choices)]


@pytest.mark.parametrize("seed", range(8))
def test_a_request_gets_in_any_company_what_it_gets_alone(start, seed: int) -> None:
    random_ = random.Random(seed)
    options = random_options(random_)
    client = start(hash_runtime(options))
    length = client.service.info.limits.max_model_len
    texts = [tuple(random_.randrange(250) for _ in range(length)) for _ in range(3)]
    asked, cancelled = {}, set()
    for _ in range(REQUESTS):
        prompt = random_.choice(texts)[: random_.randrange(1, length - 2)]
        fields = random_fields(random_, length - len(prompt))
        id_ = client.submit(prompt, **fields)
        asked[id_] = (prompt, fields)
        if random_.random() < 0.15:
            client.service.cancel(id_)
            cancelled.add(id_)
    client.end(*asked)
    assert client.service.failure is None
    quiet = EngineOptions(
        checkpoint="hash", max_model_len=length, max_batch_size=16, context_reuse=False
    )
    alone = start(hash_runtime(quiet))
    for id_, (prompt, fields) in asked.items():
        if id_ in cancelled:
            continue
        assert isinstance(client.events[id_][-1], Finished)
        choices = fields["choices"]
        reference = everything(alone, alone.run(prompt, **fields), choices)
        assert everything(client, id_, choices) == reference
