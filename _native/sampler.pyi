"""How the next token is chosen from a row of logits.

The core calls the sampler natively; this door is for tests, benches and tools. Steps in order:
bias, bad words and suppressed ids, min_tokens, mask, repetition, frequency and presence penalties,
temperature, top_k, typical_p, top_p, min_p, draw. Each filter sees the renormalised survivors of
the one before. A temperature below 1e-6 is greedy.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Items

from typing_extensions import Buffer

from edgeserve._native.stream import LogprobTuple
from edgeserve.sampling import SamplerSettings

def philox(counter: Items[int], key: Items[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 of four counter words and two key words."""

def uniform(seed: int, choice: int, position: int) -> float:
    """The number in [0, 1) that draws the token at an absolute position."""

class Sampler:
    def __init__(self, vocab: int) -> None: ...
    def choose(
        self,
        logits: Buffer,
        settings: SamplerSettings,
        tokens: Items[int],
        *,
        prompt_length: int | None = None,
        choice: int = 0,
        mask: Items[int] = (),
        end_ids: Iterable[int] = (),
        suppress_ids: Iterable[int] = (),
    ) -> int:
        """The chosen id, or -1 when the settings leave none.

        `logits`: float32, not changed. `tokens`: prompt and generated so far; all prompt unless
        `prompt_length` says less. `mask`: 32-bit words, or none. `end_ids`: not chosen before
        min_tokens. Raises ValueError for settings out of range, RuntimeError for NaN or +inf."""
    def logprob(self, logits: Buffer, token: int, top: int = 0) -> LogprobTuple:
        """Log-softmax of the token, and the `top` best, best first, ties by id."""
