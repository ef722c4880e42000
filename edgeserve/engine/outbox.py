"""Events on their way from the engine thread to the one thread that drains them.

Text comes through the native ring, which needs no GIL to write; everything else through a queue
beside it. `drain` puts the two in order: a request's admission before its first piece, its end
after its last.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from edgeserve._native.stream import Ring
from edgeserve.generation import (
    Admitted,
    Event,
    Failed,
    Finish,
    Finished,
    Piece,
    Pieces,
    PromptLogprobs,
    TokenLogprob,
)

if TYPE_CHECKING:  # shapes that only the stub knows
    from edgeserve._native.stream import PieceTuple, PromptTuple

# A sequence id is its request's id and its choice; choices are fewer than 2 ** CHOICE_BITS.
CHOICE_BITS = 16
CHOICE_MASK = (1 << CHOICE_BITS) - 1
FINISHES = {0: None, int(Finish.STOP): Finish.STOP, int(Finish.LENGTH): Finish.LENGTH}


def sequence_id(request_id: int, choice: int) -> int:
    return request_id << CHOICE_BITS | choice


class Outbox:
    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._events: deque[Admitted | Finished | Failed] = deque()

    def fileno(self) -> int:
        """Readable while `drain` would return something."""
        return self._ring.fileno()

    def put(self, event: Admitted | Finished | Failed) -> None:
        """From the engine thread: after all pieces before an end, before all after an admission."""
        self._events.append(event)
        self.wake()

    def wake(self) -> None:
        """Make `fileno` readable."""
        os.eventfd_write(self._ring.fileno(), 1)

    def drain(self) -> list[Event]:
        """Everything since the last call, in order. One thread only."""
        events: list[Event] = []
        ends = self._take(events)
        while True:
            written = self._ring.drain()  # holds all pieces of `ends`
            more = self._take(events)  # the admissions of all of `written` are here by now
            events += pieces_of(written)
            events += ends
            if not more:
                return events
            ends = more

    def _take(self, events: list[Event]) -> list[Event]:
        """Move admissions into `events`; returns the ends."""
        ends: list[Event] = []
        while self._events:
            event = self._events.popleft()
            (events if isinstance(event, Admitted) else ends).append(event)
        return ends


def pieces_of(written: Iterable[PieceTuple | PromptTuple]) -> list[Event]:
    """Ring entries as events: the pieces of a request together, requests by first appearance."""
    events: list[Event] = []
    pieces: dict[int, list[Piece]] = {}
    for entry in written:
        request_id = entry[0] >> CHOICE_BITS
        if len(entry) == 2:
            events.append(PromptLogprobs(request_id, logprobs_of(entry[1])))
        else:
            pieces.setdefault(request_id, []).append(piece_of(entry))
    events += [Pieces(request_id, tuple(found)) for request_id, found in pieces.items()]
    return events


def piece_of(entry: PieceTuple) -> Piece:
    id_, text, tokens, logprobs, marks, finish, stop, phase = entry
    return Piece(
        id_ & CHOICE_MASK,
        text,
        tokens,
        logprobs_of(logprobs),
        marks,
        FINISHES.get(finish),  # 3, no token could be chosen, becomes a Failed of its request
        stop,
        phase,
    )


def logprobs_of(
    entries: Iterable[tuple[int, float, tuple[tuple[int, float], ...]]],
) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(*entry) for entry in entries)
