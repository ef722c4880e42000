"""What an engine is made from: a loaded network and the facts around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeserve._native.forward import Forward
from edgeserve._native.stream import Vocabulary
from edgeserve.model_info import ModelInfo

if TYPE_CHECKING:
    from edgeserve.engine.guide_tokenizer import GuideTokenizer

# Changes the raw logits [vocab] of one row in place, given all token ids so far (family/contract).
LogitsHook = Callable[[Sequence[int], int, np.ndarray], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A model that is ready to run."""

    info: ModelInfo
    forward: Forward
    vocabulary: Vocabulary
    suppress_ids: tuple[int, ...] = ()  # never sampled
    hook: LogitsHook | None = None
    # Made when the first guide comes, in a thread: it takes a while. None: no guides.
    guide_tokenizer: Callable[[], GuideTokenizer] | None = None
    cache_records: int | None = None  # most endpoints in the prefix index; None: no limit
    close: Callable[[], None] = lambda: None  # gives the bundle's lease back
