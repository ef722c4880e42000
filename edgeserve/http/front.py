"""What HTTP needs of the part that runs the models. `edgeserve.front` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from edgeserve.stats import EngineStats

if TYPE_CHECKING:
    from edgeserve.pipeline.model import ServedModel

State = Literal["loading", "ready", "restarting", "failed"]


class ReplicaCount(msgspec.Struct, frozen=True):
    ready: int
    total: int


class Front(Protocol):
    """One served model and its replicas. Lives on the loop that HTTP runs on."""

    @property
    def name(self) -> str:
        """The served name, known before the model is."""
        ...

    @property
    def state(self) -> State: ...

    @property
    def reason(self) -> str:
        """Why the state is `restarting` or `failed`, in a sentence; else empty."""
        ...

    @property
    def model(self) -> ServedModel | None:
        """None until the first replica is ready."""
        ...

    @property
    def replicas(self) -> ReplicaCount: ...

    @property
    def queued(self) -> int:
        """Requests that wait for a seat."""
        ...

    def stats(self) -> Sequence[EngineStats]:
        """The newest counters of each replica that is up."""
        ...
