"""The scheduler alone, over numbers: fixed cases for each rule, and a random life of everything."""

from __future__ import annotations

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgeserve.engine.plan import Plan, ceil_div
from edgeserve.engine.request import Request, Row
from edgeserve.engine.scheduler import Scheduler
from edgeserve.model_info import Limits


def make_limits(
    *, seats: int = 4, pages: int = 64, step_tokens: int = 64, prefill_chunk: int = 32
) -> Limits:
    return Limits(
        max_model_len=16 * pages,
        max_input_len=16 * pages - 1,
        seats=seats,
        pages=pages,
        page_tokens=16,
        step_tokens=step_tokens,
        prefill_chunk=prefill_chunk,
    )


class Machine:
    """Does what the engine does with a plan, over numbers: rows do not share pages."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.scheduler = Scheduler(limits)
        self.left: dict[Row, int] = {}  # tokens that the row still generates
        self.wanted: dict[int, int] = {}  # the same per choice of a request
        self.rows: set[Row] = set()  # those that hold pages
        self.ended: list[int] = []
        self.preempted: list[Row] = []
        self.arrivals = 0
        self.now = 0.0

    def add(self, tokens: int, output: int, **facts: float) -> Request:
        self.arrivals += 1
        request = Request(self.arrivals, self.arrivals, tokens, arrived=self.now, **facts)
        self.wanted[request.id] = output
        self.scheduler.add(request)
        return request

    @property
    def free(self) -> int:
        return self.limits.pages - sum(row.pages for row in self.rows)

    def preempt(self, row: Row) -> None:
        self.preempted.append(row)
        self.rows.discard(row)
        self.scheduler.preempt(row)

    def step(self) -> Plan:
        self._seat()
        self._fork()
        while (plan := self.scheduler.plan(self.free)).preempt:
            self.preempt(plan.preempt)
        for row, count in plan.slices:
            self._compute(row, count)
        for row in [row for row, _ in plan.slices if self.left.get(row) == 0]:
            self.rows.discard(row)
            if self.scheduler.end(row):
                self.ended.append(row.request.id)
        return plan

    def _seat(self) -> None:
        while seating := self.scheduler.next_seating(self.free):
            if seating.preempt:
                self.preempt(seating.preempt)
            else:
                self.scheduler.seat(seating.row, computed=0, pages=0)
                seating.row.request.seated_at = self.now
                self.rows.add(seating.row)

    def _fork(self) -> None:
        for fork in self.scheduler.forks(self.free):
            for row in fork.seated:  # numbers do not share: a fork starts with its own pages
                row.computed, row.pages = 0, 0
                self.rows.add(row)
            for row in fork.leader.request.rows:
                row.copies = 0

    def _compute(self, row: Row, count: int) -> None:
        assert 0 < count <= row.pending
        pages = max(row.pages, ceil_div(row.computed + count, 16))
        samples = count == row.pending
        self.scheduler.advance(
            row, length=row.length + samples, computed=row.computed + count, pages=pages
        )
        if samples:
            self.left[row] = self.left.get(row, self.wanted[row.request.id]) - 1

    def run(self, steps: int = 2000) -> None:
        for _ in range(steps):
            if not self.scheduler.requests:
                return
            self.step()
        raise AssertionError("requests did not end")


def test_decode_and_prompts_share_a_step_within_the_budget() -> None:
    machine = Machine(make_limits(step_tokens=40, prefill_chunk=32))
    first = machine.add(5, 50)
    machine.step()
    machine.add(100, 5)
    machine.add(100, 5)
    plan = machine.step()
    assert plan.slices[0].row.request is first
    assert [tokens for _, tokens in plan.slices] == [1, 32, 7]


def test_a_long_prompt_holds_up_a_short_one_for_one_chunk() -> None:
    machine = Machine(make_limits(step_tokens=32, prefill_chunk=32))
    machine.add(900, 1)
    machine.step()
    short = machine.add(10, 1)
    machine.step()
    assert machine.ended == [short.id]


def test_prompts_take_turns() -> None:
    machine = Machine(make_limits(step_tokens=32, prefill_chunk=32))
    long = [machine.add(300, 1) for _ in range(2)]
    served = [machine.step().slices[0].row.request for _ in range(4)]
    assert served == [long[0], long[1], long[0], long[1]]


def test_a_more_urgent_request_takes_the_seat_of_the_least_urgent_last_come() -> None:
    machine = Machine(make_limits(seats=2))
    rows = [machine.add(10, 50).rows[0], machine.add(10, 50, priority=1).rows[0]]
    machine.add(10, 50, priority=1)
    machine.step()
    urgent = machine.add(10, 2, priority=-1)
    plan = machine.step()
    assert machine.preempted == [rows[1]]
    assert urgent in [row.request for row, _ in plan.slices]
    machine.run()
    assert machine.ended[0] == urgent.id


def test_equal_priority_never_preempts_for_a_seat() -> None:
    machine = Machine(make_limits(seats=2))
    for _ in range(4):
        machine.add(10, 20)
    machine.run()
    assert machine.ended == [1, 2, 3, 4]
    assert not machine.preempted


def test_short_of_pages_the_last_come_row_is_computed_again() -> None:
    machine = Machine(make_limits(seats=2, pages=4))
    first, last = machine.add(16, 40), machine.add(15, 40)
    machine.run()
    assert {row.request for row in machine.preempted} == {last}
    assert machine.ended == [first.id, last.id]


def test_the_head_of_the_queue_is_not_overtaken_when_pages_are_short() -> None:
    machine = Machine(make_limits(pages=8))
    machine.add(100, 10)
    machine.step()
    big, small = machine.add(60, 1), machine.add(1, 1)
    machine.step()
    assert big.seated_at is small.seated_at is None  # though the small one would fit
    machine.run()
    assert machine.ended[0] == 1


def test_choices_share_their_prompt_up_to_its_last_token() -> None:
    scheduler = Scheduler(make_limits(seats=2))
    request = Request(1, 1, 20, choices=4)
    scheduler.add(request)
    seating = scheduler.next_seating(64)
    assert seating is not None
    scheduler.seat(seating.row, computed=0, pages=0)
    request.seated_at = 0.0
    plan = scheduler.plan(64)
    assert [tokens for _, tokens in plan.slices] == [19]
    scheduler.advance(seating.row, length=20, computed=19, pages=2)
    (fork,) = scheduler.forks(62)
    assert [row.choice for row in fork.seated] == [1]
    assert [row.choice for row in fork.waiting] == [2, 3]
    plan = scheduler.plan(62)
    assert [tokens for _, tokens in plan.slices] == [1, 1]
    assert plan.is_decode
    assert plan.pages == 2  # the core asks for a copy for each that shares a page
    scheduler.preempt(fork.seated[0])
    assert scheduler.plan(62).pages == 0  # the last of them needs none


def test_deadlines() -> None:
    machine = Machine(make_limits(seats=1))
    seated = machine.add(10, 500, queue_deadline=1.0, deadline=5.0)
    queued = machine.add(10, 500, queue_deadline=2.0, deadline=9.0)
    machine.step()
    scheduler = machine.scheduler
    assert scheduler.next_deadline() == 2.0
    assert [(o.request, o.in_queue) for o in scheduler.overdue(2.5)] == [(queued, True)]
    scheduler.remove(queued)
    assert scheduler.next_deadline() == 5.0
    assert [(o.request, o.in_queue) for o in scheduler.overdue(5.0)] == [(seated, False)]
    scheduler.remove(seated)
    assert scheduler.next_deadline() == math.inf
    assert scheduler.requests == 0


def test_a_prompt_beyond_the_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Scheduler(make_limits(pages=2)).add(Request(1, 1, 32))


class Life(RuleBasedStateMachine):
    """Requests of all kinds come, run, are cancelled; nothing is exceeded and all of them end."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(make_limits(seats=3, pages=12, step_tokens=24, prefill_chunk=16))
        self.open: list[Request] = []
        self.cancelled: set[int] = set()

    @rule(
        tokens=st.integers(1, 120),
        output=st.integers(1, 60),
        choices=st.integers(1, 5),
        priority=st.integers(-1, 1),
    )
    def submit(self, tokens: int, output: int, choices: int, priority: int) -> None:
        output = min(output, 12 * 16 - tokens)
        request = self.machine.add(tokens, output, choices=choices, priority=priority)
        self.open.append(request)

    @rule(steps=st.integers(1, 20))
    def run(self, steps: int) -> None:
        for _ in range(steps):
            free = self.machine.free
            if self.machine.scheduler.requests:
                plan = self.machine.step()
                assert sum(tokens for _, tokens in plan.slices) <= 24
                assert all(tokens <= 16 for _, tokens in plan.slices)
                assert plan.slices, f"nothing to do with {free} pages free"

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.open))
        if self.machine.scheduler.find(request.id):
            self.cancelled.add(request.id)
            self.machine.rows -= set(request.rows)
            self.machine.scheduler.remove(request)

    @invariant()
    def nothing_is_exceeded(self) -> None:
        assert self.machine.free >= 0
        assert self.machine.scheduler.seated <= 3
        assert self.machine.scheduler.seated == len(self.machine.rows)

    def teardown(self) -> None:
        self.machine.run(steps=20_000)
        ended = self.machine.ended
        assert len(ended) == len(set(ended))
        assert set(ended) | self.cancelled == {request.id for request in self.open}
        assert self.machine.free == 12
        assert self.machine.scheduler.seated == 0


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
