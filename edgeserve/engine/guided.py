"""The rows of an engine whose text follows a guide: their masks, and where each of them stands.

A request's grammar compiles in a thread before it is queued, so that it never holds a seat, or
the head of the queue, meanwhile. Engine thread only; other threads report through `opened`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edgeserve._native.core import Core
from edgeserve._native.sequence import Sequence
from edgeserve.engine.hook import HookFailed
from edgeserve.engine.plan import Slice
from edgeserve.engine.request import Row
from edgeserve.errors import EdgeserveError, InternalError, InvalidRequest
from edgeserve.generation import GenerationRequest
from edgeserve.guide import Guide
from edgeserve.log import Log

if TYPE_CHECKING:  # the grammar library takes a while to import: not before a guide comes
    from edgeserve.engine.guide_tokenizer import GuideTokenizer
    from edgeserve.engine.guides import Follower, Guides, Round

log = Log("engine")


class Opening(NamedTuple):
    """A request whose grammar compiles."""

    call: GenerationRequest
    rank: int  # of its arrival
    arrived: float


class Opened(NamedTuple):
    request_id: int
    follower: Follower | None
    error: EdgeserveError | None = None


@dataclass(slots=True, eq=False)
class Guided:
    """One row."""

    row: Row
    sequence: Sequence
    follower: Follower
    followed: int  # tokens of the sequence that its follower knows of, the prompt among them

    def is_due(self, count: int) -> bool:
        """Whether the next token needs a mask, once `count` pending ones are computed."""
        sequence = self.sequence
        return sequence.pending == count and not sequence.finish and sequence.needs_mask

    def follow(self) -> None:
        """Tell the follower of the tokens that came since; those of reasoning are not its own."""
        sequence = self.sequence
        if sequence.length == self.followed:
            return
        start = max(self.followed, sequence.constraint_start)
        for token in sequence.tokens()[start:]:
            self.follower.accept(token)
        self.followed = sequence.length

    def jump(self, core: Core) -> None:
        sequence = self.sequence
        if sequence.finish or sequence.forced or not sequence.generated or not sequence.needs_mask:
            return
        forced = self.follower.forced()
        if forced:
            core.force(sequence, forced)
            self.follow()


class Masking(NamedTuple):
    """The masks of one step, on their way."""

    rows: list[Guided]
    round: Round

    def set(self) -> None:
        """Wait for the masks and hand them to the sequences."""
        for guided, mask in zip(self.rows, self.round.masks(), strict=True):
            guided.sequence.set_mask(mask)


class GuidedRows:
    def __init__(self, make_tokenizer: Callable[[], GuideTokenizer] | None) -> None:
        """`make_tokenizer` is called in a thread, when the first guide comes."""
        self.wake: Callable[[], None] = lambda: None  # called from a thread once one is opened
        self._make_tokenizer = make_tokenizer
        self._guides: Guides | None = None
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="guide-open")
        self._opening: dict[int, Opening] = {}
        self._opened: deque[Opened] = deque()
        self._origins: dict[int, Follower] = {}  # by request: its grammar at the start
        self._rows: dict[Row, Guided] = {}

    # Before the queue ------------------------------------------------------------------------

    def open(self, guide: Guide, opening: Opening) -> None:
        self._opening[opening.call.id] = opening
        if opening.call.reasoning is not None:  # the native core knows where it begins
            guide = msgspec.structs.replace(guide, start_after=None)
        self._opener.submit(self._open, guide, opening.call.id)

    def opened(self) -> list[tuple[Opening, EdgeserveError | None]]:
        """Requests that may be queued now, or that must fail; each is told once."""
        told: list[tuple[Opening, EdgeserveError | None]] = []
        while self._opened:
            opened = self._opened.popleft()
            opening = self._opening.pop(opened.request_id, None)
            if opening is None:  # cancelled
                continue
            if opened.follower is not None:
                self._origins[opened.request_id] = opened.follower
            told.append((opening, opened.error))
        return told

    def abandon(self, request_id: int) -> GenerationRequest | None:
        """Take back a request that is not queued yet."""
        opening = self._opening.pop(request_id, None)
        return None if opening is None else opening.call

    @property
    def opening(self) -> list[int]:
        return list(self._opening)

    @property
    def has_opened(self) -> bool:
        return bool(self._opened)

    def _open(self, guide: Guide, request_id: int) -> None:
        try:
            if self._guides is None:
                self._guides = self._make()
            follower = self._guides.open(guide)
        except Exception as error:
            self._tell(request_id, None, error)
            return
        follower.on_ready(partial(self._tell, request_id, follower))

    def _make(self) -> Guides:
        from edgeserve.engine.guides import Guides

        if self._make_tokenizer is None:
            raise InvalidRequest("this model cannot follow a grammar")
        guides = Guides(self._make_tokenizer())
        guides.wait()
        return guides

    def _tell(
        self, request_id: int, follower: Follower | None, error: BaseException | None
    ) -> None:
        if error is not None and not isinstance(error, EdgeserveError):
            log.fault("guide_failed", error)
            error = InternalError("the guide of this request could not be prepared")
        self._opened.append(Opened(request_id, follower, error))
        self.wake()

    # Rows ------------------------------------------------------------------------------------

    def add(self, row: Row, sequence: Sequence) -> None:
        """The row has a sequence from now on. Harmless for one without a guide."""
        origin = self._origins.get(row.request.id)
        if origin is not None:
            sequence.constrained = True
            self._rows[row] = Guided(row, sequence, origin.fork(), sequence.length)

    def drop(self, row: Row) -> None:
        self._rows.pop(row, None)

    def forget(self, request_id: int) -> None:
        """The request has ended."""
        self._origins.pop(request_id, None)

    def begin(self, slices: Iterable[Slice]) -> Masking | None:
        """Before a step: start the masks of the rows that it will sample; None when none needs
        one."""
        planned = ((self._rows.get(row), count) for row, count in slices) if self._rows else ()
        return self._masking([one for one, count in planned if one and one.is_due(count)])

    def waiting(self, slices: Iterable[Slice]) -> Masking | None:
        """In a step that waits: of the rows whose constraint began while native code ran."""
        planned = (self._rows.get(row) for row, _ in slices)
        rows = [one for one in planned if one and one.is_due(0)]
        for one in rows:
            one.follow()
        return self._masking(rows)

    def _masking(self, rows: list[Guided]) -> Masking | None:
        if not rows:
            return None
        assert self._guides is not None, "a row has a follower"
        return Masking(rows, self._guides.begin([one.follower for one in rows]))

    def follow(self, slices: Iterable[Slice], core: Core) -> list[HookFailed]:
        """After a step: tell each follower what came, and append what must come next. Returns the
        requests that cannot go on."""
        failed = []
        planned = (self._rows.get(row) for row, _ in slices) if self._rows else ()
        for one in filter(None, planned):
            one.follow()
            one.jump(core)
            if one.follower.failed is not None:
                failed.append(HookFailed(one.row.request, one.follower.failed))
        return failed

    def failure(self, row: Row) -> EdgeserveError | None:
        """Why the row cannot go on, when its guide is the reason."""
        one = self._rows.get(row)
        if one is None:
            return None
        if one.follower.failed is not None:
            return one.follower.failed
        if one.sequence.finish and one.follower.is_complete:
            rule = "at most the tokens that the structured output has; it was complete before"
            return InvalidRequest(f"'min_tokens' must be {rule}", param="min_tokens")
        return None

    def close(self) -> None:
        self._opener.shutdown(wait=False, cancel_futures=True)
        if self._guides is not None:
            self._guides.close()
