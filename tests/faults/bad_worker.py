"""Loaders for workers that do it wrong."""

from __future__ import annotations

import os
import socket
import threading

from edgeserve.config import EngineOptions
from edgeserve.engine.runtime import Runtime
from tests.hash_runtime import hash_runtime


def load_babbling(options: EngineOptions, *_: object) -> Runtime:
    """Writes garbage into the wire at its first token."""

    def hook(*_: object) -> None:
        for descriptor in range(3, 64):
            try:
                wire = socket.socket(fileno=os.dup(descriptor))
            except OSError:
                continue
            if wire.family == socket.AF_UNIX:
                wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            wire.close()

    return hash_runtime(options, hook=hook)


def load_never(*_: object) -> Runtime:
    threading.Event().wait()
    raise AssertionError


def load_and_exit(*_: object) -> Runtime:
    os._exit(7)


def load_with_a_bug(*_: object) -> Runtime:
    raise KeyError("x")
