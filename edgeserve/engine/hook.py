"""The Python hook of a family, which changes the logits of each token. Slow, and at its own risk:
an exception fails its request alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgeserve._native.sequence import Sequence
from edgeserve.engine.request import Request
from edgeserve.engine.runtime import LogitsHook
from edgeserve.errors import EdgeserveError


class HookFailed(NamedTuple):
    request: Request
    error: EdgeserveError

    @property
    def request_id(self) -> int:
        return self.request.id


def apply_hook(hook: LogitsHook, sequence: Sequence, logits: memoryview) -> None:
    """Let the hook change `logits` [vocab] in place, given all token ids so far."""
    hook(sequence.tokens().tolist(), sequence.prompt_length, np.asarray(logits))
