"""Grammars at work: which tokens may come next, for each constrained sequence.

`Guides` belongs to an engine; a `Follower` belongs to one sequence. How the turn uses them:

    # accept: the grammar compiles in a thread before the request queues for a seat.
    follower = guides.open(call.guide); follower.on_ready(queue the request)
    # seat; fork:
    sequence.constrained = True; followers[row] = follower.fork() for each further choice
    # turn: constrained rows make one step at a time (horizon 1).
    round = guides.begin([followers of the rows that will be sampled])   # masks start in a thread
    outcome = core.run(work, horizon=1)                    # without the GIL, in parallel with them
    if outcome.reason == Reason.LOGITS:                    # the step waits for its masks
        for row, mask in zip(rows, round.masks()): sequence.set_mask(mask)
        core.sample()
    for row in rows: follower.accept(token)                # each token that was sampled

`Follower.failed` says why a row cannot go on; its request fails and no other. A follower is used by
one thread at a time: the engine's, or a round's while it runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from llguidance import LLExecutor, LLMatcher, LLParserLimits
from llguidance.numpy import fill_next_token_bitmask, fill_next_token_bitmask_par
from numpy.typing import NDArray

from edgeserve.engine.digits import START, DigitBound, Place, move
from edgeserve.engine.guide_tokenizer import GuideTokenizer
from edgeserve.errors import EdgeserveError, InternalError, InvalidRequest
from edgeserve.guide import FUEL, Guide

CACHED = 128  # compiled grammars
CACHED_CHARS = 8 * 1024**2  # and the text of them

Masks = NDArray[np.int32]  # [rows, words]


class Guides:
    """`threads`: for the masks of one round; they are short, so a few are enough."""

    def __init__(self, tokenizer: GuideTokenizer, *, threads: int = 2) -> None:
        self.tokenizer = tokenizer
        self._limits = LLParserLimits(verbose_errors=False, **cast(Any, FUEL))
        self._executor = LLExecutor(num_threads=threads)
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="guide-compile")
        self._rounds = ThreadPoolExecutor(1, thread_name_prefix="guide-masks")
        self._compiled: OrderedDict[str, Future[LLMatcher]] = OrderedDict()
        self._handle = self._pool.submit(lambda: tokenizer.handle)
        self._digits = self._pool.submit(DigitBound, tokenizer)

    def open(self, guide: Guide) -> Follower:
        """At the start of the grammar. It compiles in a thread, once while it stays cached."""
        compiled = self._compiled.get(guide.grammar)
        if compiled is None:
            compiled = self._pool.submit(self._compile, guide.grammar)
            self._compiled[guide.grammar] = compiled
            while len(self._compiled) > CACHED or self._chars() > CACHED_CHARS:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(guide.grammar)
        return Follower(guide, self.tokenizer, compiled, self._digits)

    def wait(self) -> None:
        """Until what all grammars share is made, which the first of them would wait for."""
        self._handle.result()
        self._digits.result()

    def begin(self, followers: Sequence[Follower]) -> Round:
        """Compute the next masks of all of them in a thread. They may not change before it ends."""
        rows = list(followers)
        return Round(self._rounds.submit(self.masks, rows))

    def masks(self, followers: Sequence[Follower]) -> Masks:
        """The next masks [rows, words], in the calling thread and the executor's. A row that cannot
        go on has an empty mask and `failed` set."""
        out = np.zeros((len(followers), self.tokenizer.words), dtype=np.int32)
        work = []
        for row, follower in enumerate(followers):
            matcher = follower.prepare(out[row])
            if matcher is not None:
                work.append((matcher, row))
        if len(work) == 1:
            fill_next_token_bitmask(work[0][0], out, work[0][1])
        elif work:
            fill_next_token_bitmask_par(self._executor, work, out)
        for _, row in work:
            followers[row].finish(out[row])
        return out

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._rounds.shutdown(wait=False, cancel_futures=True)

    def _compile(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self._handle.result(), grammar, log_level=0, limits=self._limits)
        matcher.compute_bitmask()  # the first one of a grammar is the slow one
        return matcher

    def _chars(self) -> int:
        return sum(map(len, self._compiled))


class Round:
    """Masks that are being computed."""

    def __init__(self, future: Future[Masks]) -> None:
        self._future = future

    def masks(self) -> Masks:
        """Waits for them."""
        return self._future.result()


class Follower:
    """Where one sequence stands in its grammar."""

    def __init__(
        self,
        guide: Guide,
        tokenizer: GuideTokenizer,
        compiled: Future[LLMatcher],
        digits: Future[DigitBound],
    ) -> None:
        self.failed: EdgeserveError | None = None
        self._guide = guide
        self._tokenizer = tokenizer
        self._compiled = compiled
        self._digits = digits
        self._matcher: LLMatcher | None = None
        self._waiting = guide.start_after is not None
        self._free: list[int] = []  # tokens before the grammar began, with the mark
        self._places: list[Place] = [START]  # after each token of the grammar
        self._ended = 0  # end-of-sequence tokens, which the matcher never sees

    def on_ready(self, then: Callable[[BaseException | None], None]) -> None:
        """Call back, from any thread, once the grammar is compiled, or with what prevented it."""
        self._compiled.add_done_callback(lambda compiled: then(compiled.exception()))

    @property
    def is_waiting(self) -> bool:
        """Whether the mark that starts the grammar has not come yet: any token may follow."""
        return self._waiting

    @property
    def is_complete(self) -> bool:
        """Whether nothing but an end-of-sequence token may follow."""
        return not self._waiting and (self._ended > 0 or self._open().is_stopped())

    @property
    def may_end(self) -> bool:
        """Whether the text so far satisfies the grammar."""
        return self._waiting or self._open().is_accepting()

    def mask(self, out: Masks) -> None:
        """Write the next mask into `out` [words], in the calling thread."""
        matcher = self.prepare(out)
        if matcher is not None:
            fill_next_token_bitmask(matcher, out[None, :], 0)
            self.finish(out)

    def prepare(self, out: Masks) -> LLMatcher | None:
        """The matcher to fill `out` from; None when `out` is final already."""
        if self.failed is not None:
            return None
        if self._waiting:  # anything but an end, so that no answer ends before its grammar began
            out[:] = (~self._tokenizer.eos_mask).view(np.int32)
            return None
        if self._ended:
            out[:] = self._tokenizer.eos_mask.view(np.int32)
            return None
        matcher = self._open()
        if not matcher.is_error():
            return matcher
        self._fail(matcher)
        return None

    def finish(self, out: Masks) -> None:
        """After `out` was filled: bound numbers, notice a dead end."""
        matcher = self._open()
        if matcher.is_error() or not out.any():
            out[:] = 0
            self._fail(matcher)
        elif self._guide.is_json:
            self._digits.result().apply(self._places[-1], out.view(np.uint32))

    def accept(self, token: int) -> None:
        """A token was appended. Sets `failed` when the grammar does not allow it."""
        if self._waiting:
            self._free.append(token)
            self._waiting = token != self._guide.start_after
            return
        matcher = self._open()
        if token in self._tokenizer.eos_ids and (self._ended or matcher.is_accepting()):
            self._ended += 1
            return
        if self.failed is None and not matcher.consume_token(token):
            self._fail(matcher, f"token {token} is not allowed")
        self._places.append(move(self._places[-1], self._tokenizer.pieces[token]))

    def rollback(self, tokens: int) -> None:
        """Take back the last accepted tokens."""
        ends = min(tokens, self._ended)
        self._ended -= ends
        tokens -= ends
        inside = min(tokens, len(self._places) - 1)
        if inside and not self._open().rollback(inside):
            self._fail(self._open())
        del self._places[len(self._places) - inside :]
        before = tokens - inside
        if before:
            del self._free[-before:]
            self._waiting = True

    def allowed(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` could be accepted in a row. Changes nothing."""
        if self._waiting:
            return len(tokens)
        return self._open().validate_tokens(list(tokens))

    def forced(self) -> list[int]:
        """The tokens that must come next, for a guide with `jump_forward`; else none. Only those
        whose spelling is certain: text that a longer token might still take in is left out."""
        if self._waiting or not self._guide.jump_forward or self.failed is not None:
            return []
        return list(self._open().compute_ff_tokens())

    def fork(self) -> Follower:
        """Another choice that stands at the same place."""
        other = Follower(self._guide, self._tokenizer, self._compiled, self._digits)
        other.failed, other._waiting = self.failed, self._waiting
        other._free, other._places = list(self._free), list(self._places)
        other._ended = self._ended
        if self._matcher is not None:
            other._matcher = self._matcher.deep_copy()
        return other

    def _open(self) -> LLMatcher:
        if self._matcher is None:
            self._matcher = self._compiled.result().deep_copy()
        return self._matcher

    def _fail(self, matcher: LLMatcher, why: str = "") -> None:
        if self.failed is not None:
            return
        error = str(matcher.get_error())
        refused = "NoExtension" in error or "doesn't satisfy" in error
        if error and not refused:  # a limit of its automaton
            reason = error.splitlines()[0][:200]
            text = f"the guide is too complex to enforce: {reason}"
            self.failed = InvalidRequest(text, param=self._guide.param)
            return
        text = why or "no token can continue the text that the grammar asks for"
        self.failed = InternalError(f"the structured output came to a dead end: {text}")
