"""An admitted call: pieces come out, `cancel` goes in. Belongs to the loop that started it.

Choices are numbered through: choice `i` of prompt `p` is `p * n + i`. Pieces of several prompts
come in the order in which they are made. The first failure of any prompt ends the whole answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from edgeserve.generation import GenerationRequest, Piece, PromptLogprobs, TokenLogprob, Usage
from edgeserve.pipeline.merge import Merge
from edgeserve.pipeline.prompt import Tokens
from edgeserve.pipeline.reading import Reading
from edgeserve.pipeline.single import Single
from edgeserve.text.channels import Delta
from edgeserve.ticket import Generator


class Answer:
    """Read it with `async for`, once; use it as `async with` so that leaving frees its rows."""

    def __init__(
        self,
        prompts: Sequence[Tokens],
        requests: Sequence[GenerationRequest],
        source: Single | Merge,
        reading: Reading,
        *,
        clipped: bool,
        kept: int | None = None,
    ) -> None:
        self._requests = requests
        self._source = source
        self._reading = reading
        self.drawn = requests[0].choices  # choices per prompt
        self.kept = self.drawn if kept is None else kept  # of them, by their likelihood (Best)
        self.clipped = clipped  # max_tokens was asked for and is more than fits
        self.prompt_ids = tuple(prompt.ids for prompt in prompts)
        self.prompt_texts = tuple(prompt.text for prompt in prompts)
        self._read_tokens = self._read_reasoning = 0
        self.prompt_logprobs: dict[int, tuple[TokenLogprob, ...]] = {}  # by index of the prompt

    @classmethod
    async def open(
        cls,
        generator: Generator,
        prompts: Sequence[Tokens],
        requests: Sequence[GenerationRequest],
        reading: Reading,
        *,
        clipped: bool,
        window: int,
        kept: int | None = None,
    ) -> Answer:
        """Submit; returns when the first prompt has its seat, raises what refused it."""
        source: Single | Merge
        if len(requests) == 1:
            source = Single(generator, requests[0])
        else:
            source = Merge(generator, requests, window)
        await source.start()
        return cls(prompts, requests, source, reading, clipped=clipped, kept=kept)

    @property
    def prompt_tokens(self) -> int:
        return sum(map(len, self.prompt_ids))

    @property
    def cached_tokens(self) -> int:
        """Of the prompts that have a seat so far."""
        return sum(self._source.cached.values())

    @property
    def cached_by_prompt(self) -> list[int]:
        return [self._source.cached.get(index, 0) for index in range(len(self._requests))]

    @property
    def seeds(self) -> list[int]:
        """The effective seed of each prompt."""
        return [request.sampler.seed for request in self._requests]

    @property
    def seed(self) -> int:
        """The effective seed of the call: the one that replays it."""
        return self._requests[0].sampler.seed

    @property
    def relaxed(self) -> str:
        """What of the schemas of its tools is not enforced; empty when all is."""
        guide = self._requests[0].guide
        return guide.relaxed if guide is not None else ""

    @property
    def max_tokens(self) -> int:
        """The effective limit per choice; the smallest one when prompts differ."""
        return min(request.max_tokens for request in self._requests)

    @property
    def choices(self) -> int:
        """How many choices there are over all prompts."""
        return sum(request.choices for request in self._requests)

    @property
    def reasoning_tokens(self) -> int:
        """Of what was read so far, over all choices."""
        if any(request.reasoning is None for request in self._requests):
            return self._reading.reasoning_tokens  # the engine was not told where it stands
        is_whole = len(self._source.usages) == len(self._requests)
        return self.usage.reasoning_tokens if is_whole else self._read_reasoning

    def read(self, piece: Piece) -> list[Delta]:
        """What a piece of this answer says, thinks and calls. Each is read once, in order."""
        return self._reading.feed(piece)

    @property
    def usage(self) -> Usage:
        """Summed over the prompts that have ended; complete after the last piece."""
        return total(self._source.usages)

    @property
    def completion_tokens(self) -> int:
        """As the engine counts them; of an answer that was cut: those that were read."""
        is_whole = len(self._source.usages) == len(self._requests)
        return self.usage.completion_tokens if is_whole else self._read_tokens

    async def __aiter__(self) -> AsyncIterator[Piece]:
        try:
            async for index, event in self._source.events():
                if isinstance(event, PromptLogprobs):
                    self.prompt_logprobs[index] = event.logprobs
                    continue
                for piece in event.pieces:
                    self._read_tokens += len(piece.tokens)
                    self._read_reasoning += len(piece.tokens) if piece.phase else 0
                    if index:
                        number = index * self.drawn + piece.choice
                        yield msgspec.structs.replace(piece, choice=number)
                    else:
                        yield piece
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Free the rows before the next step; a reader wakes with `Cancelled`. Harmless later."""
        self._source.cancel()

    async def __aenter__(self) -> Answer:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()


def total(usages: Sequence[Usage]) -> Usage:
    """One usage for the whole call. Times: the first token of any prompt, the end of the last."""
    if len(usages) == 1:
        return usages[0]
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        queue_s=max((usage.queue_s for usage in usages), default=0.0),
        first_token_s=min((usage.first_token_s for usage in usages), default=0.0),
        total_s=max((usage.total_s for usage in usages), default=0.0),
        decoded_tokens=sum(usage.decoded_tokens for usage in usages),
        preemptions=sum(usage.preemptions for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
    )
