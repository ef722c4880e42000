"""A runtime without weights, for tests of engine, worker and front: logits hash the tokens.

The network reads its tokens back from the pages, so a wrong page table gives other tokens. Token
i < 256 is the byte i; 256 ends a sequence. Options choose the numbers: `max_model_len`,
`max_batch_size`, `kv_pool_pages`, `step_tokens`, `prefill_chunk`, and by the checkpoint's name
"hash?step_us=1000&fault_after=5&fail=1&hook=1" the network's behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl

from edgeserve._native.oracle import HashForward
from edgeserve._native.stream import Vocabulary
from edgeserve.config import PAGE_TOKENS, EngineOptions
from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.engine.runtime import LogitsHook, Runtime
from edgeserve.errors import CheckpointError
from edgeserve.model_info import Limits, ModelInfo

LOADER = "tests.hash_runtime:load"
VOCAB, EOS = 260, 256
PIECES = [bytes([i]) for i in range(256)] + [b"<eos>", b"<a>", b"<b>", b""]
SPECIAL = [256, 257, 258]


def load(
    options: EngineOptions,
    progress: Callable[[str, int, int], None] | None = None,
    identity: str = "hash",
    name: str = "hash",
) -> Runtime:
    query = dict(parse_qsl(options.checkpoint.partition("?")[2]))
    if progress is not None:
        progress("load", 1, 1)
    if "fail" in query:
        raise CheckpointError("tensor 'x' is missing")
    return hash_runtime(
        options,
        step_us=int(query.get("step_us", 0)),
        fault_after=int(query.get("fault_after", -1)),
        identity=identity,
        name=name,
    )


def hash_runtime(
    options: EngineOptions | None = None,
    *,
    step_us: int = 0,
    fault_after: int = -1,
    identity: str = "hash",
    name: str = "hash",
    hook: LogitsHook | None = None,
) -> Runtime:
    options = options or EngineOptions(checkpoint="hash")
    length = options.max_model_len or 512
    pages = options.kv_pool_pages or options.max_batch_size * length // PAGE_TOKENS
    limits = Limits(
        max_model_len=length,
        max_input_len=length - 1,
        seats=options.max_batch_size,
        pages=pages,
        page_tokens=PAGE_TOKENS,
        step_tokens=options.step_tokens,
        prefill_chunk=options.prefill_chunk,
    )
    return Runtime(
        info=make_info(limits, identity, name, context_reuse=options.context_reuse),
        forward=HashForward(
            vocab=VOCAB,
            page_tokens=PAGE_TOKENS,
            pages=pages,
            step_tokens=options.step_tokens,
            step_us=step_us,
            fault_after=fault_after,
        ),
        vocabulary=Vocabulary(PIECES, SPECIAL),
        hook=hook,
        cache_records=options.context_cache_max_records,
        guide_tokenizer=lambda: GuideTokenizer(PIECES, SPECIAL, (EOS,)),
    )


def make_info(limits: Limits, identity: str, name: str, *, context_reuse: bool) -> ModelInfo:
    return ModelInfo(
        identity=identity,
        name=name,
        bundle="",
        key="",
        model_type="hash",
        family="hash",
        backend="oracle",
        isa="scalar",
        dtype="f32",
        kv_dtype="f32",
        threads=1,
        layers=1,
        vocab=VOCAB,
        context=limits.max_model_len,
        eos_ids=(EOS,),
        limits=limits,
        context_reuse=context_reuse,
    )
