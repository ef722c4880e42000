"""What front and worker say to each other. The front sends Start, Submit, Cancel, ClearCache, Ping
and Stop; the worker everything else."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeserve.config import EngineOptions
from edgeserve.errors import ErrorInfo
from edgeserve.generation import Event, GenerationRequest
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats

PROTOCOL = 1


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The worker's first message."""

    protocol: int
    version: str
    pid: int


class Start(msgspec.Struct, frozen=True, array_like=True, tag="start"):
    """The front's first message: what to load; `checkpoint` is a path of this machine."""

    protocol: int
    options: EngineOptions
    identity: str  # of the checkpoint
    name: str  # the default served name


class Progress(msgspec.Struct, frozen=True, array_like=True, tag="progress"):
    stage: str
    done: int
    total: int


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    info: ModelInfo


class Fault(msgspec.Struct, frozen=True, array_like=True, tag="fault"):
    """The worker cannot start or go on, and is about to leave."""

    error: ErrorInfo


class Submit(msgspec.Struct, frozen=True, array_like=True, tag="submit"):
    request: GenerationRequest


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    id: int


class ClearCache(msgspec.Struct, frozen=True, array_like=True, tag="clear_cache"):
    pass


class Events(msgspec.Struct, frozen=True, array_like=True, tag="events"):
    """All that a step gave."""

    events: tuple[Event, ...]


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping"):
    pass


class Pong(msgspec.Struct, frozen=True, array_like=True, tag="pong"):
    stats: EngineStats
    stalled_s: float  # how long the engine has made no progress though it has work


class Stop(msgspec.Struct, frozen=True, array_like=True, tag="stop"):
    """Leave now; open requests fail."""


Message = (
    Hello
    | Start
    | Progress
    | Ready
    | Fault
    | Submit
    | Cancel
    | ClearCache
    | Events
    | Ping
    | Pong
    | Stop
)


def encode_hook(value: object) -> object:
    """msgspec knows no paths."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def decode_hook(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)
