"""Runs steps: tokens through the network, sampling, text into the ring; without the GIL until the
next decision. Owned by the engine thread; only `interrupt` may be called from another."""

from collections.abc import Sequence as Items
from enum import IntEnum

from edgeserve._native.forward import Forward
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring

class Reason(IntEnum):
    """Why `run` returned. The first that holds, in the order of checking after a step:
    LOGITS (before sampling), FINISHED, STEP, INTERRUPTED, HORIZON; PAGES before a step."""

    STEP = 0  # a prompt has tokens left to compute
    FINISHED = 1  # at least one sequence finished
    INTERRUPTED = 2
    PAGES = 3  # too few free pages for the next step, of which nothing was done
    LOGITS = 4  # the step ran; a sequence with a hook or without its mask waits for `sample`
    HORIZON = 5

class Outcome:
    @property
    def steps(self) -> int:
        """Steps done."""
    @property
    def tokens(self) -> int:
        """Tokens computed in them, over all sequences."""
    @property
    def sampled(self) -> int:
        """Tokens generated, over all sequences; forced ones among them."""
    @property
    def reason(self) -> Reason: ...

class Core:
    def __init__(self, forward: Forward, pool: PagePool, ring: Ring, *, max_rows: int) -> None: ...
    def run(self, work: list[tuple[Sequence, int]], horizon: int) -> Outcome:
        """One step with `count` pending tokens of each sequence; then, when all of them decode,
        more steps of one token each, up to `horizon` altogether. Forced tokens are computed as a
        chunk with the token before them.

        A sequence with nothing pending after a step is sampled; its token is appended and its text
        goes to the ring. Raises ValueError for a finished sequence, a count out of range, more
        tokens than the forward's step_tokens or more rows than max_rows, and while `sample` is due.
        An exception from the network breaks the core: it is raised again by each later call."""
    def sample(self) -> Outcome:
        """After LOGITS: sample the step that waits. `reason` is FINISHED or STEP."""
    def drop(self, sequence: Sequence | None = None) -> None:
        """After LOGITS: one sequence (default: all) leaves the step unsampled, and computes its
        last token again later."""
    def force(self, sequence: Sequence, ids: Items[int]) -> int:
        """`ids` are what the sequence generates next, whatever the network says; they are tokens
        like any other: streamed, counted, computed, able to end it.

        Between two runs they are appended at once, and the next run computes them as one chunk.
        They take the place of sampling one by one where a row is needed: before the first generated
        token (for that one), in a step that waits for `sample`, and with logprobs. No mask or hook
        is asked for meanwhile. Returns how many were appended now. Closing ids of a reasoning
        budget drop what is still to come. Raises ValueError for a finished sequence, IndexError for
        an id beyond the vocabulary, and then forces none."""
    def logits(self, sequence: Sequence) -> memoryview:
        """After LOGITS: the sequence's row, format "f", writable, valid until `sample`.

        -inf forbids a token. Raises ValueError when the sequence waits for no sampling."""
    def interrupt(self) -> None:
        """Make `run` return after the step it is in. From any thread."""
    @property
    def broken(self) -> bool:
        """Whether the network failed."""
