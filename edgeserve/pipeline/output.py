"""What the Python API hands out: whole answers, deltas of a stream, and figures of a request.

Names and meanings are those of TensorRT Edge-LLM's Python API, with a few more fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgeserve.generation import Finish, Piece, TokenLogprob, Usage
from edgeserve.pipeline.best import Best
from edgeserve.pipeline.calls import CallPart, call_parts, whole_calls
from edgeserve.text.channels import Content, Delta, End, Reasoning

if TYPE_CHECKING:
    from edgeserve.pipeline.answer import Answer

FINISH_REASONS = {Finish.STOP: "stop", Finish.LENGTH: "length"}
CANCELLED = "cancelled"  # of the last delta of a stream that its reader cancelled


@dataclass(slots=True)
class LogprobEntry:
    """One candidate for one position. `token` is its text with U+FFFD for what is not UTF-8."""

    token_id: int
    logprob: float
    token: str
    bytes: bytes


@dataclass(slots=True)
class StreamDelta:
    """What one choice gained."""

    text: str = ""  # content alone, when reasoning and calls are told apart
    token_ids: list[int] = field(default_factory=list)
    prompt_tokens: int = 0
    finished: bool = False
    finish_reason: str | None = None  # stop | length | tool_calls | cancelled
    logprobs: list[list[LogprobEntry]] | None = None  # per token: the candidates, best first
    audio_bytes: bytes | None = None  # text models make none
    index: int = 0  # choice, when n > 1
    reasoning: str = ""
    tool_calls: list[CallPart] | None = None  # as OpenAI's deltas: parts of calls by their index


@dataclass(slots=True)
class CompletionOutput:
    """One choice of one prompt."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    prompt_tokens: int = 0
    finish_reason: str | None = None  # stop | length | tool_calls
    logprobs: list[list[LogprobEntry]] | None = None  # per token: the candidates, best first
    tool_calls: list[dict[str, Any]] | None = None  # in OpenAI's form
    reasoning: str | None = None
    index: int = 0  # choice, when n > 1
    cached_tokens: int = 0  # of the prompt, reused from the context cache
    seed: int = 0  # the effective one
    stop_reason: str | int | None = None  # the stop string or stop token id that matched
    prompt_logprobs: list[list[LogprobEntry]] | None = None  # from the second prompt token on


@dataclass(slots=True)
class GenerationMetrics:
    """Wall-clock figures of one request, over all its choices. Times are in seconds."""

    generated_tokens: int = 0  # all output tokens, with those that prefill sampled
    decoded_tokens: int = 0  # output tokens after prefill
    generation_time: float = 0.0  # in which decoded_tokens were made
    prompt_tokens: int = 0
    cached_tokens: int = 0
    queue_s: float = 0.0  # until a seat was given
    time_to_first_token_s: float = 0.0
    total_s: float = 0.0
    cancelled: bool = False

    @property
    def decode_tokens_per_second(self) -> float:
        """0 when nothing was decoded after prefill."""
        return self.decoded_tokens / self.generation_time if self.generation_time > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.decode_tokens_per_second

    @property
    def completion_tokens(self) -> int:
        return self.generated_tokens

    @classmethod
    def from_usage(cls, usage: Usage) -> GenerationMetrics:
        decoding = usage.total_s - usage.first_token_s
        return cls(
            generated_tokens=usage.completion_tokens,
            decoded_tokens=usage.decoded_tokens,
            generation_time=decoding if usage.decoded_tokens else 0.0,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            queue_s=usage.queue_s,
            time_to_first_token_s=usage.first_token_s,
            total_s=usage.total_s,
        )


async def collect(answer: Answer, token_bytes: list[bytes]) -> list[CompletionOutput]:
    """The whole answer, folded from what a stream would have sent; prompts in order, the choices
    of each together. `token_bytes` is empty when no logprobs were asked for."""
    best = Best(answer)
    made: list[list[StreamDelta]] = [[] for _ in range(answer.choices)]
    stops: dict[int, str | int | None] = {}
    async for piece in answer:
        best.note(piece)
        made[piece.choice].append(delta(answer, piece, 0, token_bytes))
        stops[piece.choice] = piece.stop if piece.finish is not None else None
    outputs = []
    for place, number in enumerate(best.kept()):
        deltas = made[number]
        prompt, index = divmod(place, answer.kept)
        told = answer.prompt_logprobs.get(prompt)
        outputs.append(
            CompletionOutput(
                text="".join(one.text for one in deltas),
                token_ids=[token for one in deltas for token in one.token_ids],
                prompt_tokens=len(answer.prompt_ids[prompt]),
                finish_reason=deltas[-1].finish_reason if deltas else None,
                logprobs=[each for one in deltas for each in one.logprobs or ()] or None,
                index=index,
                cached_tokens=answer.cached_by_prompt[prompt],
                seed=answer.seeds[prompt],
                stop_reason=stops.get(number),
                reasoning="".join(one.reasoning for one in deltas) or None,
                tool_calls=whole_calls(part for one in deltas for part in one.tool_calls or ())
                or None,
                prompt_logprobs=[entries(one, token_bytes) for one in told] if told else None,
            )
        )
    return outputs


def delta(
    answer: Answer, piece: Piece, prompt_tokens: int, token_bytes: list[bytes]
) -> StreamDelta:
    """A piece of the answer as the Python API tells it."""
    gained = answer.read(piece)
    return StreamDelta(
        text="".join(one.text for one in gained if isinstance(one, Content)),
        token_ids=list(piece.tokens),
        prompt_tokens=prompt_tokens,
        finished=piece.finish is not None,
        finish_reason=finish_reason(gained[-1]) if piece.finish is not None else None,
        logprobs=[entries(one, token_bytes) for one in piece.logprobs if token_bytes] or None,
        index=piece.choice,
        reasoning="".join(one.text for one in gained if isinstance(one, Reasoning)),
        tool_calls=call_parts(gained) or None,
    )


def finish_reason(end: Delta) -> str:
    """A limit is told also after calls: the last one may be cut."""
    assert isinstance(end, End)
    if end.calls and end.finish is Finish.STOP:
        return "tool_calls"
    return FINISH_REASONS[end.finish]


def entries(one: TokenLogprob, token_bytes: list[bytes]) -> list[LogprobEntry]:
    """The candidates of one position, best first; the chosen token is always among them."""
    pairs = list(one.top)
    if all(token != one.token for token, _ in pairs):
        pairs.append((one.token, one.logprob))
    return [entry(token, logprob, token_bytes) for token, logprob in pairs]


def entry(token: int, logprob: float, token_bytes: list[bytes]) -> LogprobEntry:
    raw = token_bytes[token] if token < len(token_bytes) else b""
    return LogprobEntry(token, logprob, raw.decode("utf-8", "replace"), raw)
