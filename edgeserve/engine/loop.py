"""The engine's turn: seat, fork, plan, run, commit. Engine thread only.

`Engine` owns the pages, the prefix index, the sequences and the core, and carries out what the
scheduler decides. Each request that it accepts gets exactly one `Finished` or `Failed`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from edgeserve._native.core import Core, Outcome, Reason
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring
from edgeserve.engine.accept import find_fault, make_request, make_sequence
from edgeserve.engine.account import Account
from edgeserve.engine.guided import GuidedRows, Masking, Opening
from edgeserve.engine.hook import HookFailed, apply_hook
from edgeserve.engine.outbox import Outbox, sequence_id
from edgeserve.engine.plan import Fork, Overdue, Plan
from edgeserve.engine.prefix import PrefixCache
from edgeserve.engine.request import Request, Row
from edgeserve.engine.runtime import LogitsHook, Runtime
from edgeserve.engine.scheduler import Scheduler
from edgeserve.errors import (
    Busy,
    Cancelled,
    EdgeserveError,
    InternalError,
    InvalidRequest,
    TimedOut,
)
from edgeserve.generation import Admitted, Failed, Finished, GenerationRequest
from edgeserve.log import Log
from edgeserve.stats import EngineStats

log = Log("engine")

MAX_HORIZON = 1024  # steps without a look at the clock when no deadline is set
FAILED = 3  # Sequence.finish: no token could be chosen


class Engine:
    def __init__(self, runtime: Runtime, clock: Callable[[], float] = time.monotonic) -> None:
        limits = runtime.info.limits
        self._runtime = runtime
        self._clock = clock
        self._pool = PagePool(limits.pages)
        ring = Ring()
        self._core = Core(runtime.forward, self._pool, ring, max_rows=limits.seats)
        self._prefix = PrefixCache(
            self._pool,
            limits.page_tokens,
            enabled=runtime.info.context_reuse,
            records=runtime.cache_records,
        )
        self._scheduler = Scheduler(limits)
        self._account = Account()
        self._guided = GuidedRows(runtime.guide_tokenizer)
        self._calls: dict[int, GenerationRequest] = {}
        self._sequences: dict[Row, Sequence] = {}
        self._step_s = 0.01  # measured, of decoding
        self.outbox = Outbox(ring)

    # From outside the turn -------------------------------------------------------------------

    def accept(self, call: GenerationRequest, arrived: float) -> None:
        """Queue a request; one that cannot run fails at once."""
        self._account.counts.submitted += 1
        opening = Opening(call, self._account.counts.submitted, arrived)
        fault = find_fault(call, self._runtime.info)
        if fault is not None:
            self._refuse(call, fault)
        elif call.guide is not None:
            self._guided.open(call.guide, opening)
        else:
            self._queue(opening)

    def _queue(self, opening: Opening) -> None:
        call = opening.call
        self._calls[call.id] = call
        self._scheduler.add(make_request(call, opening.rank, opening.arrived))

    def _refuse(self, call: GenerationRequest, error: EdgeserveError) -> None:
        self._account.ended(error)
        self.outbox.put(Failed(call.id, error.info()))

    def cancel(self, request_id: int) -> None:
        """End a request now. Harmless for one that has ended."""
        self._end_early(request_id, Cancelled())

    def fail_all(self, error: EdgeserveError) -> None:
        for request_id in [*self._calls, *self._guided.opening]:
            self._end_early(request_id, error)

    def _end_early(self, request_id: int, error: EdgeserveError) -> None:
        request = self._scheduler.find(request_id)
        if request is not None:
            self._fail(request, error)
        elif (call := self._guided.abandon(request_id)) is not None:
            self._refuse(call, error)

    def on_opened(self, wake: Callable[[], None]) -> None:
        """`wake` is called, from any thread, when an engine that was idle has work again."""
        self._guided.wake = wake

    def close(self) -> None:
        self._guided.close()

    def interrupt(self) -> None:
        """Make the turn come to its end soon. From any thread."""
        self._core.interrupt()

    def clear_cache(self) -> None:
        self._prefix.clear()

    def check_idle(self) -> None:
        """Nothing runs: all pages must be free or cached."""
        self._prefix.check_idle()

    @property
    def is_idle(self) -> bool:
        return self._scheduler.requests == 0 and not self._guided.has_opened

    def stats(self) -> EngineStats:
        counts = self._account.counts
        counts.resident = self._scheduler.seated
        counts.queued = self._scheduler.queued + len(self._guided.opening)
        cache = self._prefix.stats()
        cache.planning_nanoseconds = self._account.planning_ns
        return EngineStats(scheduling=counts, cache=cache)

    # The turn --------------------------------------------------------------------------------

    def turn(self) -> None:
        """One round: at least one step when anything can be computed."""
        started = self._clock()
        for opening, error in self._guided.opened():
            if error is None:
                self._queue(opening)
            else:
                self._refuse(opening.call, error)
        for overdue in self._scheduler.overdue(started):
            self._expire(overdue)
        self._seat(started)
        for fork in self._scheduler.forks(self._prefix.free_pages):
            self._fork(fork)
        plan = self._plan()
        if not plan.slices:
            return
        self._prefix.make_room(plan.pages, len(plan.slices))
        work = [(self._sequences[row], count) for row, count in plan.slices]
        running = self._clock()
        masking = self._guided.begin(plan.slices)
        outcome = self._core.run(work, 1 if masking else self._horizon(plan, running))
        stopped = self._clock()
        if outcome.reason == Reason.PAGES and not outcome.steps:
            raise RuntimeError("the plan counted too few pages")  # it would do so for ever
        self._account.ran(outcome, planning_s=running - started)
        if outcome.steps and plan.is_decode:
            self._step_s = 0.5 * self._step_s + 0.5 * (stopped - running) / outcome.steps
        self._finish_turn(plan, outcome, masking)

    def _finish_turn(self, plan: Plan, outcome: Outcome, masking: Masking | None) -> None:
        broken: list[HookFailed] = []
        if outcome.reason == Reason.LOGITS:
            masking = masking or self._guided.waiting(plan.slices)
            if masking is not None:
                masking.set()
            if self._runtime.hook is not None:
                broken = self._run_hooks(plan, self._runtime.hook)
            self._account.sampled(self._core.sample())
        broken += self._guided.follow(plan.slices, self._core)
        self._commit(plan, self._clock())
        for failure in broken:
            if self._scheduler.find(failure.request_id) is not None:
                self._fail(failure.request, failure.error)

    def _expire(self, overdue: Overdue) -> None:
        request = overdue.request
        waited = self._clock() - request.arrived
        if overdue.in_queue:
            self._account.counts.refused += 1
            self._fail(request, Busy(f"no seat became free in {waited:.3g} s; try again later"))
        else:
            self._fail(request, TimedOut(f"the request was not done after {waited:.3g} s"))

    def _seat(self, now: float) -> None:
        while seating := self._scheduler.next_seating(self._prefix.free_pages):
            if seating.preempt is not None:
                self._preempt(seating.preempt)
                continue
            row, call = seating.row, self._calls[seating.row.request.id]
            sequence = self._sequences.get(row) or self._make_sequence(row)
            if sequence is None:
                continue
            reused = self._prefix.adopt(sequence, call)
            others = self._scheduler.seated
            self._scheduler.seat(row, computed=sequence.computed, pages=sequence.pages)
            if row.request.seated_at is None:
                row.request.seated_at, row.request.cached_tokens = now, reused
                self._account.admitted(row.request, among=others)
                self.outbox.put(Admitted(call.id, reused))
        if self._scheduler.queued:
            self._account.counts.stalls_no_capacity += 1

    def _make_sequence(self, row: Row) -> Sequence | None:
        call = self._calls[row.request.id]
        try:
            sequence = make_sequence(call, row.choice, self._runtime, self._pool)
        except (ValueError, OverflowError) as error:  # a setting that the door refuses
            self._fail(row.request, InvalidRequest(str(error)))
            return None
        self._sequences[row] = sequence
        self._guided.add(row, sequence)
        return sequence

    def _preempt(self, row: Row) -> None:
        self._account.counts.preemptions += 1
        self._sequences[row].release()
        self._scheduler.preempt(row)

    def _fork(self, fork: Fork) -> None:
        leader = self._sequences[fork.leader]
        for row in fork.seated:
            id_ = sequence_id(row.request.id, row.choice)
            self._sequences[row] = leader.fork(id_, row.choice)
            self._guided.add(row, self._sequences[row])

    def _plan(self) -> Plan:
        while True:
            plan = self._scheduler.plan(self._prefix.free_pages)
            if plan.preempt is None:
                return plan
            self._preempt(plan.preempt)

    def _horizon(self, plan: Plan, now: float) -> int:
        """Steps to make before Python looks again: one until each row has its first token."""
        if not plan.is_decode:
            return 1
        if any(row.request.first_token_at is None for row, _ in plan.slices):
            return 1
        left = (self._scheduler.next_deadline() - now) / self._step_s
        return int(max(1, min(MAX_HORIZON, left)))

    def _run_hooks(self, plan: Plan, hook: LogitsHook) -> list[HookFailed]:
        failed = []
        for row, _ in plan.slices:
            sequence = self._sequences[row]
            if sequence.pending == 0:
                try:
                    apply_hook(hook, sequence, self._core.logits(sequence))
                except Exception as error:  # a plugin may fail in any way; only its request does
                    name = self._runtime.info.family
                    log.fault("plugin_failed", error, family=name, part="logits hook")
                    failure = InternalError(f"the logits hook of family '{name}' failed")
                    failed.append(HookFailed(row.request, failure))
        return failed

    # Outcomes --------------------------------------------------------------------------------

    def _commit(self, plan: Plan, now: float) -> None:
        for row, _ in plan.slices:
            sequence = self._sequences[row]
            request = row.request
            was_filling = row.computed < row.request.prompt_tokens
            self._scheduler.advance(
                row, length=sequence.length, computed=sequence.computed, pages=sequence.pages
            )
            if was_filling and sequence.computed >= sequence.prompt_length:
                self._prefix.publish_prompt(sequence, self._calls[request.id])
            if sequence.generated and request.first_token_at is None:
                request.first_token_at = now
        for row, _ in plan.slices:
            if row.seated and self._sequences[row].finish:
                self._end(row, now)

    def _end(self, row: Row, now: float) -> None:
        """A choice has ended by itself; with the last one its request."""
        sequence, request = self._sequences[row], row.request
        if sequence.finish == FAILED:
            rule = (
                "leave at least one token that can be chosen; bias, bad words and masks left none"
            )
            fault = self._guided.failure(row) or InvalidRequest(rule, param="logit_bias")
            self._fail(request, fault)
            return
        call = self._calls[request.id]
        self._prefix.publish_all(sequence, call)
        request.completion_tokens += sequence.generated
        request.reasoning_tokens += sequence.reasoning_tokens
        request.started_choices += sequence.generated > 0
        self._drop(row)
        if self._scheduler.end(row):
            self._forget(request)
            usage = self._account.finished(request, now)
            self.outbox.put(Finished(request.id, usage))

    def _fail(self, request: Request, error: EdgeserveError) -> None:
        for row in request.rows:
            self._drop(row)
        self._scheduler.remove(request)
        self._forget(request)
        self._account.ended(error)
        self.outbox.put(Failed(request.id, error.info()))

    def _forget(self, request: Request) -> None:
        del self._calls[request.id]
        self._guided.forget(request.id)

    def _drop(self, row: Row) -> None:
        self._guided.drop(row)
        sequence = self._sequences.pop(row, None)
        if sequence is not None:
            sequence.release()
