"""The state of a model or a replica, as health shows it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from edgeserve.errors import EdgeserveError, EngineUnavailable, ModelLoading, ShuttingDown


class State(str, Enum):
    LOADING = "loading"
    READY = "ready"
    DEGRADED = "degraded"  # of a model: some of its replicas are down
    RESTARTING = "restarting"  # its worker is being replaced
    FAILED = "failed"  # it will not come back
    STOPPED = "stopped"


class Status(NamedTuple):
    state: State
    reason: str = ""  # of anything but ready
    stage: str = ""  # of loading: what is being done
    done: int = 0  # bytes of `total`
    total: int = 0


def refusal(status: Status, name: str) -> EdgeserveError:
    """Why a model that is not ready takes no request."""
    if status.state is State.LOADING:
        return ModelLoading(name)
    if status.state is State.STOPPED:
        return ShuttingDown()
    retry_after_s = 1 if status.state is State.RESTARTING else None
    return EngineUnavailable(status.reason, retry_after_s=retry_after_s)
