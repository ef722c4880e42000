"""Who computes which tokens in the next step. Pure Python over ints; engine thread only.

It holds no device, no page and no token: it is told how many pages are free and what became of
the last plan. Rules:

- Order is (priority, arrival, choice). The head of the queue is never overtaken.
- A row gets a seat when one is free and the pool has room for all of its tokens and one more,
  beyond what seated rows still need for theirs. A more urgent row takes the seat of the least
  urgent, last-come one, which is computed again later (preemption by recompute).
- A step holds at most `step_tokens`. Decoding rows come first, one token each; prompts get chunks
  of at most `prefill_chunk`, those that waited longest since their last chunk first, so one long
  prompt holds up another for a chunk at most.
- When pages do not suffice for a step, the least urgent, last-come row loses its pages. The most
  urgent row can always take what it needs, so every row ends.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort

from edgeserve.engine.plan import Fork, Overdue, Plan, Seating, Slice, ceil_div
from edgeserve.engine.request import Request, Row
from edgeserve.model_info import Limits


def urgency(row: Row) -> tuple[int, int, int]:
    return row.urgency


class Scheduler:
    def __init__(self, limits: Limits) -> None:
        if limits.step_tokens < limits.seats or limits.prefill_chunk < 1:
            raise ValueError("a step must have room for one token of each seat")
        self._limits = limits
        self._waiting: list[Row] = []  # by urgency
        self._seated: list[Row] = []  # by urgency
        self._open: dict[int, Request] = {}
        self._timers: list[tuple[float, int, bool]] = []  # heap of (when, request id, in queue)
        self._steps = 0

    # Membership ------------------------------------------------------------------------------

    @property
    def requests(self) -> int:
        return len(self._open)

    @property
    def seated(self) -> int:
        return len(self._seated)

    @property
    def queued(self) -> int:
        """Requests that have not had a seat."""
        return sum(row.request.seated_at is None for row in self._waiting)

    def find(self, request_id: int) -> Request | None:
        return self._open.get(request_id)

    def add(self, request: Request) -> None:
        if ceil_div(request.prompt_tokens + 1, self._limits.page_tokens) > self._limits.pages:
            raise ValueError("the prompt does not fit in the pool; limits must prevent this")
        self._open[request.id] = request
        insort(self._waiting, request.rows[0], key=urgency)
        self._set_timers(request)

    def end(self, row: Row) -> bool:
        """The row has ended. True when it was the last one of its request, which is then gone."""
        self._leave(row)
        row.request.rows.remove(row)
        if row.request.rows or not row.request.is_forked:
            return False
        del self._open[row.request.id]
        return True

    def remove(self, request: Request) -> None:
        """The request ends early, with all of its rows."""
        for row in request.rows:
            self._leave(row)
        request.rows.clear()
        del self._open[request.id]

    def _leave(self, row: Row) -> None:
        (self._seated if row.seated else self._waiting).remove(row)
        row.seated = False
        self._unshare(row)

    # Deadlines -------------------------------------------------------------------------------

    def _set_timers(self, request: Request) -> None:
        if len(self._timers) > 4 * len(self._open) + 64:  # most are of requests that have ended
            self._timers = [timer for timer in self._timers if timer[1] in self._open]
            heapq.heapify(self._timers)
        if request.queue_deadline < math.inf:
            heapq.heappush(self._timers, (request.queue_deadline, request.id, True))
        if request.deadline < math.inf:
            heapq.heappush(self._timers, (request.deadline, request.id, False))

    def next_deadline(self) -> float:
        """The next time at which `overdue` has something to say; infinity when never."""
        while self._timers:
            when, request_id, in_queue = self._timers[0]
            request = self._open.get(request_id)
            if request is not None and not (in_queue and request.seated_at is not None):
                return when
            heapq.heappop(self._timers)
        return math.inf

    def overdue(self, now: float) -> list[Overdue]:
        found: dict[int, Overdue] = {}
        while self.next_deadline() <= now:
            _, request_id, in_queue = heapq.heappop(self._timers)
            found[request_id] = Overdue(self._open[request_id], in_queue)
        return list(found.values())

    # Seats -----------------------------------------------------------------------------------

    def next_seating(self, free_pages: int) -> Seating | None:
        """Who gets a seat now. Nothing changes until `seat` or `preempt` is called."""
        if not self._waiting:
            return None
        row = self._waiting[0]
        if len(self._seated) < self._limits.seats and self._fits(row, free_pages):
            return Seating(row)
        if self._seated and self._seated[-1].request.priority > row.request.priority:
            return Seating(row, preempt=self._seated[-1])
        return None

    def _fits(self, row: Row, free_pages: int) -> bool:
        return self._needed(row) + sum(map(self._needed, self._seated)) <= free_pages

    def _needed(self, row: Row) -> int:
        """Pages to hold all tokens of the row and one more, beyond those it has."""
        held = row.pages - row.copies
        return max(0, ceil_div(row.length + 1, self._limits.page_tokens) - held)

    def seat(self, row: Row, *, computed: int, pages: int) -> None:
        """The row has a seat; a prefix of `computed` tokens in `pages` pages was found for it."""
        self._waiting.remove(row)
        row.computed, row.pages, row.seated = computed, pages, True
        insort(self._seated, row, key=urgency)

    def preempt(self, row: Row) -> None:
        """The row has lost its seat and its pages; its place in the queue is by its arrival."""
        self._seated.remove(row)
        row.computed, row.pages, row.seated = 0, 0, False
        self._unshare(row)
        row.request.preemptions += 1
        insort(self._waiting, row, key=urgency)

    def forks(self, free_pages: int) -> list[Fork]:
        """Choices to make now of prompts that are computed up to their last token."""
        ready = [r for r in self._seated if not r.request.is_forked and r.computed >= r.target]
        forks = []
        for leader in ready:
            seats = min(self._limits.seats - len(self._seated), free_pages)
            fork = self._fork(leader, seats)
            free_pages -= len(fork.seated)
            forks.append(fork)
        return forks

    def _fork(self, leader: Row, seats: int) -> Fork:
        request = leader.request
        request.is_forked = True
        rows = [Row(request, i, request.prompt_tokens) for i in range(1, request.choices)]
        request.rows.extend(rows)
        seated, waiting = tuple(rows[:seats]), tuple(rows[seats:])
        for row in seated:
            row.computed, row.pages, row.seated = leader.computed, leader.pages, True
            insort(self._seated, row, key=urgency)
        if seated and leader.computed % self._limits.page_tokens:
            for row in (leader, *seated):
                row.copies = 1
        for row in waiting:
            insort(self._waiting, row, key=urgency)
        return Fork(leader, seated, waiting)

    @staticmethod
    def _unshare(row: Row) -> None:
        """The row writes to no shared page any more; the last that does needs no copy either."""
        row.copies = 0
        sharing = [other for other in row.request.rows if other.copies]
        if len(sharing) == 1:
            sharing[0].copies = 0

    # Steps -----------------------------------------------------------------------------------

    def plan(self, free_pages: int) -> Plan:
        """The next step, for `free_pages` pages that are free or can be made so."""
        slices = self._slices()
        needed = sum(self._growth(row, count) for row, count in slices)
        if needed > free_pages:
            if len(self._seated) == 1:
                raise RuntimeError(f"one row needs {needed} pages, the pool has {free_pages} free")
            return Plan(preempt=self._seated[-1])
        self._steps += 1
        for row, _ in slices:
            row.served = self._steps
        return Plan(slices, needed)

    def _slices(self) -> tuple[Slice, ...]:
        decoding = [row for row in self._seated if row.pending == 1 and row.target == row.length]
        slices = [Slice(row, 1) for row in decoding]
        budget = self._limits.step_tokens - len(slices)
        filling = [row for row in self._seated if row.computed < row.target and row.pending > 1]
        filling.sort(key=lambda row: (row.request.priority, row.served, row.urgency))
        for row in filling:
            count = min(row.target - row.computed, self._limits.prefill_chunk, budget)
            if count <= 0:
                break
            slices.append(Slice(row, count))
            budget -= count
        return tuple(slices)

    def _growth(self, row: Row, count: int) -> int:
        held = row.pages - row.copies
        return max(0, ceil_div(row.computed + count, self._limits.page_tokens) - held)

    def advance(self, row: Row, *, length: int, computed: int, pages: int) -> None:
        """What became of a row of the last plan."""
        row.length, row.computed, row.pages, row.copies = length, computed, pages, 0
