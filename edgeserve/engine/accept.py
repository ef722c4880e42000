"""From what crosses the wire to what runs: last check, scheduler's numbers, native sequence."""

from __future__ import annotations

import math

from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve.engine.outbox import CHOICE_MASK, sequence_id
from edgeserve.engine.request import Request
from edgeserve.engine.runtime import Runtime
from edgeserve.errors import EdgeserveError, InvalidRequest, PromptTooLong
from edgeserve.generation import GenerationRequest
from edgeserve.model_info import ModelInfo


def find_fault(call: GenerationRequest, info: ModelInfo) -> EdgeserveError | None:
    """Why this engine cannot run the request. The pipeline has checked before; this is the wall."""
    if not call.prompt:
        return InvalidRequest("the prompt must have at least one token", param="prompt")
    limit = min(info.limits.max_input_len, info.limits.max_model_len - 1)
    if len(call.prompt) > limit:
        return PromptTooLong(len(call.prompt), limit, param="prompt")
    if min(call.prompt) < 0 or max(call.prompt) >= info.vocab:
        return InvalidRequest(f"token ids must be from 0 to {info.vocab - 1}", param="prompt")
    if call.max_tokens < 1:
        return InvalidRequest("'max_tokens' must be at least 1", param="max_tokens")
    if not 1 <= call.choices <= CHOICE_MASK:
        return InvalidRequest("'n' must be at least 1", param="n")
    if call.reasoning is not None and max(call.reasoning.closing, default=0) >= info.vocab:
        return InvalidRequest(f"closing ids must be below {info.vocab}", param="thinking_budget")
    return None


def make_request(call: GenerationRequest, arrival: int, arrived: float) -> Request:
    return Request(
        call.id,
        arrival,
        len(call.prompt),
        choices=call.choices,
        priority=call.priority,
        arrived=arrived,
        queue_deadline=_after(arrived, call.queue_timeout_s),
        deadline=_after(arrived, call.timeout_s),
    )


def _after(arrived: float, timeout_s: float | None) -> float:
    return math.inf if timeout_s is None else arrived + timeout_s


def make_sequence(
    call: GenerationRequest, choice: int, runtime: Runtime, pool: PagePool
) -> Sequence:
    """The native side of one choice. Raises ValueError for a setting out of range."""
    info = runtime.info
    prompt_logprobs = call.prompt_logprobs if choice == 0 else None
    return Sequence(
        sequence_id(call.id, choice),
        call.prompt,
        runtime.vocabulary,
        pool,
        info.limits.page_tokens,
        sampler=call.sampler,
        max_tokens=call.max_tokens,
        max_length=info.limits.max_model_len,
        choice=choice,
        stop=[text.encode("utf-8") for text in call.stop],
        include_stop=call.include_stop,
        stop_token_ids=call.stop_token_ids,
        eos_ids=info.eos_ids,
        ignore_eos=call.ignore_eos,
        suppress_ids=runtime.suppress_ids,
        skip_special_tokens=call.skip_special_tokens,
        logprobs=-1 if call.logprobs is None else call.logprobs,
        prompt_logprobs=-1 if prompt_logprobs is None else prompt_logprobs,
        hook=runtime.hook is not None,
        reasoning=call.reasoning,
        salt=call.cache_salt.encode("utf-8"),
    )
