"""A request as the scheduler sees it: numbers only. Owned by the engine thread.

A `Request` has one `Row` per choice. The rows of a request share its prompt: the first one
computes it, the others are forked from it. A row is waiting, seated or ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Row:
    """One choice. Positions `[0, computed)` have their keys and values in `pages` pages."""

    request: Request
    choice: int
    length: int  # tokens of the prompt and those sampled so far
    computed: int = 0
    pages: int = 0
    copies: int = 0  # 1 while others share its last page, which it copies before it writes
    seated: bool = False
    served: int = 0  # number of the last step that computed a chunk of it

    @property
    def pending(self) -> int:
        return self.length - self.computed

    @property
    def urgency(self) -> tuple[int, int, int]:
        """Smaller is first: by priority, then first come, first served."""
        return (self.request.priority, self.request.arrival, self.choice)

    @property
    def target(self) -> int:
        """Where prefill stops: before the last prompt token while there are choices to fork."""
        request = self.request
        return self.length if request.is_forked else request.prompt_tokens - 1


@dataclass(slots=True, eq=False)
class Request:
    """One prompt with its choices."""

    id: int
    arrival: int  # rank of arrival in this engine
    prompt_tokens: int
    choices: int = 1
    priority: int = 0  # lower is more urgent
    arrived: float = 0.0  # monotonic seconds, as all times here
    queue_deadline: float = math.inf  # to have a seat
    deadline: float = math.inf  # to be finished
    is_forked: bool = False
    seated_at: float | None = None  # when its first row got its first seat
    first_token_at: float | None = None
    cached_tokens: int = 0  # prompt tokens whose keys and values were reused at the first seat
    completion_tokens: int = 0  # of ended rows
    reasoning_tokens: int = 0  # among them
    started_choices: int = 0  # ended rows with at least one token
    preemptions: int = 0
    rows: list[Row] = field(default_factory=list)  # those not ended

    def __post_init__(self) -> None:
        self.is_forked = self.choices == 1
        self.rows.append(Row(self, 0, self.prompt_tokens))
