"""`POST /v1/completions`: the accepted body, and the call it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from edgeserve.errors import InvalidRequest
from edgeserve.pipeline.call import COMPLETION_TOKENS, Call
from edgeserve.protocol.body import Body
from edgeserve.protocol.openai.later import refuse_later
from edgeserve.protocol.openai.request import Request, check_shared, sampling

MAX_PROMPTS = 1024
TOKEN_BOUND = 2**31


class CompletionRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    prompt: str | list[str | int | list[int]]
    echo: bool | None = None
    logprobs: int | None = None


read_completion = Body(CompletionRequest).read


def completion_call(request: CompletionRequest) -> Call:
    """The call that the request means. Raises `InvalidRequest` naming the field."""
    check_shared(request)
    refuse_later(request)
    echo = bool(request.echo)
    wishes = (request.prompt_logprobs, request.logprobs if echo else None)
    params = sampling(
        request,
        logprobs=request.logprobs,
        prompt_logprobs=max((wish for wish in wishes if wish is not None), default=None),
    )
    return Call(
        prompts=_prompts(request.prompt),
        params=params,
        default_max_tokens=COMPLETION_TOKENS,
        echo=echo,
        priority=request.priority or 0,
        cache_salt=request.cache_salt or "",
    )


def _prompts(prompt: str | list[str | int | list[int]]) -> tuple[str | tuple[int, ...], ...]:
    """One prompt for a string or a list of ids, several for a list of either."""
    if isinstance(prompt, str):
        return (prompt,)
    if not prompt:
        raise InvalidRequest("'prompt' must have at least 1 item", param="prompt")
    if isinstance(prompt[0], int):
        return (_ids(prompt, "prompt"),)
    if len(prompt) > MAX_PROMPTS:
        raise InvalidRequest(f"'prompt' must have at most {MAX_PROMPTS} prompts", param="prompt")
    strings = isinstance(prompt[0], str)
    return tuple(_prompt(item, f"prompt[{i}]", strings=strings) for i, item in enumerate(prompt))


def _prompt(item: str | int | list[int], path: str, *, strings: bool) -> str | tuple[int, ...]:
    if strings and isinstance(item, str):
        return item
    if not strings and isinstance(item, list):
        return _ids(item, path)
    raise InvalidRequest(
        f"{path} must be {'a string' if strings else 'a list of token ids'} as the first prompt is",
        param=path,
    )


def _ids(items: Sequence[object], path: str) -> tuple[int, ...]:
    if not items:
        raise InvalidRequest(f"'{path}' must have at least 1 token id", param=path)
    # PERF: a body may hold millions of ids; only what is wrong is looked for one by one.
    if set(map(type, items)) == {int}:
        ids = cast("tuple[int, ...]", tuple(items))
        if min(ids) >= 0 and max(ids) < TOKEN_BOUND:
            return ids
    wrong = next(i for i, item in enumerate(items) if not _is_id(item))
    raise InvalidRequest(f"{path}[{wrong}] must be a token id", param=f"{path}[{wrong}]")


def _is_id(item: object) -> bool:
    return isinstance(item, int) and 0 <= item < TOKEN_BOUND
