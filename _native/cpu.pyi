"""The CPU backend's doors: packed weights in memory, and the network that runs on them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgeserve._native.forward import Forward
from edgeserve.backends.cpu.program import Program

def available_cpus() -> tuple[int, ...]:
    """Ids of the CPUs that this process may use."""

class CpuWeights:
    """A packed file in private huge pages. Read-only once loaded; shared by the networks on it."""

    bytes: int
    def __init__(self, path: str, size: int, threads: int = 1) -> None: ...

class CpuForward(Forward):
    """A compiled network with its threads and its storage of keys and values.

    `cpus`: where the threads are pinned, the calling thread first; empty is not pinned. The main
    thread of the process is never pinned. Threads that have nothing to do use no CPU.
    """

    isa: str
    threads: int
    def __init__(
        self,
        weights: CpuWeights,
        program: Program,
        *,
        pages: int,
        page_tokens: int,
        step_tokens: int,
        threads: int,
        cpus: Sequence[int] = (),
        isa: str | None = None,
    ) -> None: ...
    def run(
        self,
        ids: npt.NDArray[np.int32],
        spans: Sequence[tuple[int, int, npt.ArrayLike]],
        outputs: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.float32]:
        """Logits [outputs, vocab] of one step. A span is (start, count, page ids). The core calls
        the C++ interface instead."""

    def copy_page(self, source: int, target: int) -> None:
        """Keys and values of page `source`, all layers, become those of page `target`."""
