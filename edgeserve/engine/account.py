"""Counting: the scheduler's counters, and the usage of each request."""

from __future__ import annotations

from edgeserve._native.core import Outcome
from edgeserve.engine.request import Request
from edgeserve.errors import Cancelled, EdgeserveError
from edgeserve.generation import Usage
from edgeserve.stats import SchedulingStats


class Account:
    """Owned by the engine thread; others read a copy through `Engine.stats`."""

    def __init__(self) -> None:
        self.counts = SchedulingStats()
        self.planning_ns = 0
        self._admitted = 0
        self._queue_us = 0.0

    def admitted(self, request: Request, *, among: int) -> None:
        """A request got its first seat, while `among` rows had theirs."""
        assert request.seated_at is not None
        counts = self.counts
        waited_us = (request.seated_at - request.arrived) * 1e6
        self._admitted += 1
        self._queue_us += waited_us
        counts.queue_latency_avg_us = int(self._queue_us / self._admitted)
        counts.queue_latency_max_us = max(counts.queue_latency_max_us, int(waited_us))
        counts.admitted_mid_flight += among > 0
        counts.prompt_tokens += request.prompt_tokens

    def ran(self, outcome: Outcome, *, planning_s: float) -> None:
        self.counts.steps += outcome.steps
        self.counts.computed_tokens += outcome.tokens
        self.counts.generated_tokens += outcome.sampled
        self.planning_ns += int(planning_s * 1e9)

    def sampled(self, outcome: Outcome) -> None:
        """The sampling of a step that waited for a hook."""
        self.counts.generated_tokens += outcome.sampled

    def ended(self, error: EdgeserveError) -> None:
        """A request ended early."""
        if isinstance(error, Cancelled):
            self.counts.cancelled += 1
        else:
            self.counts.failed += 1

    def finished(self, request: Request, now: float) -> Usage:
        self.counts.completed += 1
        first = now if request.first_token_at is None else request.first_token_at
        seated = now if request.seated_at is None else request.seated_at
        return Usage(
            prompt_tokens=request.prompt_tokens,
            completion_tokens=request.completion_tokens,
            cached_tokens=request.cached_tokens,
            queue_s=seated - request.arrived,
            first_token_s=first - request.arrived,
            total_s=now - request.arrived,
            decoded_tokens=request.completion_tokens - request.started_choices,
            preemptions=request.preemptions,
            reasoning_tokens=request.reasoning_tokens,
        )
