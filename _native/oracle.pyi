"""Networks behind the core's interface that are not a backend: Python, and a test double."""

from collections.abc import Callable

from edgeserve._native.forward import Forward

class CallbackForward(Forward):
    """Runs a Python callable per step: slow, for the NumPy reference interpreter and for tests."""

    def __init__(
        self,
        call: Callable[
            [memoryview, list[tuple[int, int, memoryview]], memoryview, memoryview], None
        ],
        copy_page: Callable[[int, int], None] | None = None,
        *,
        vocab: int,
        page_tokens: int,
        pages: int,
        step_tokens: int,
    ) -> None:
        """`call(ids, spans, outputs, logits)`: ids int32 [tokens]; spans (start, count, page ids
        int32); outputs int32 indices into ids; logits float32 [outputs, vocab], to be written.
        The views are valid during the call only. What it raises comes out of `Core.run`."""

class HashForward(Forward):
    """A deterministic network without weights: logits are a hash of all token ids up to a position,
    read back from the pages it is told of. A wrong page table gives other tokens."""

    def __init__(
        self,
        *,
        vocab: int,
        page_tokens: int,
        pages: int,
        step_tokens: int,
        step_us: int = 0,
        fault_after: int = -1,
    ) -> None:
        """`step_us`: least duration of a step. `fault_after`: steps until one throws (-1 never)."""
    @property
    def steps(self) -> int:
        """Steps run."""
    @property
    def max_tokens(self) -> int:
        """Most tokens seen in one step."""
    @property
    def copies(self) -> int:
        """Pages copied."""
