"""Admission counts seats and places, and says when to come back."""

from __future__ import annotations

import pytest

from edgeserve.errors import Busy, ShuttingDown
from edgeserve.front.admission import Admission
from edgeserve.generation import GenerationRequest
from edgeserve.sampling import SamplerSettings


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_request(choices: int = 1) -> GenerationRequest:
    return GenerationRequest(
        id=1, prompt=(1,), sampler=SamplerSettings(), max_tokens=1, choices=choices
    )


def test_seats_then_queue_then_busy() -> None:
    admission = Admission(max_queued=1, seats=2)
    passes = [admission.take(make_request()) for _ in range(2)]
    for given in passes:
        admission.seated(given)
    queued = admission.take(make_request())
    assert (admission.active, admission.queued) == (2, 1)
    with pytest.raises(Busy) as refusal:
        admission.take(make_request())
    assert refusal.value.retry_after_s is not None
    passes[0].give()
    admission.seated(queued)
    assert (admission.active, admission.queued) == (2, 0)


def test_no_queue_refuses_when_all_seats_are_taken() -> None:
    admission = Admission(max_queued=0, seats=1)
    given = admission.take(make_request())
    with pytest.raises(Busy):
        admission.take(make_request())
    given.give()
    given.give()
    admission.take(make_request()).give()
    assert (admission.active, admission.queued) == (0, 0)


def test_choices_take_a_seat_each_but_never_more_than_there_are() -> None:
    admission = Admission(max_queued=0, seats=4)
    given = admission.take(make_request(choices=3))
    with pytest.raises(Busy):
        admission.take(make_request(choices=2))
    admission.take(make_request()).give()
    given.give()
    admission.take(make_request(choices=100)).give()


@pytest.mark.parametrize(("duration_s", "expected"), [(0.001, 1), (20.0, 20), (10_000.0, 60)])
def test_retry_after_follows_the_measured_rate_within_1_to_60(
    duration_s: float, expected: int
) -> None:
    clock = Clock()
    admission = Admission(max_queued=0, clock=clock, seats=1)
    for _ in range(60):
        given = admission.take(make_request())
        admission.seated(given)
        clock.now += duration_s
        given.give()
    assert admission.retry_after_s() == expected


def test_a_closed_door_lets_nobody_in() -> None:
    admission = Admission(max_queued=4, seats=1)
    admission.is_closed = True
    with pytest.raises(ShuttingDown):
        admission.take(make_request())
