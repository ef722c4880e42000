"""What is known of one HTTP request when it has ended; the source of access log and metrics."""

from __future__ import annotations

import time

from edgeserve.pipeline.answer import Answer

CLIENT_GONE = 499  # as proxies log it; never sent


class Record:
    """Filled while the request runs."""

    def __init__(self, request_id: str, method: str) -> None:
        self.request_id = request_id
        self.method = method
        self.route = "unmatched"  # the template, so that no label holds what a client wrote
        self.status = CLIENT_GONE  # until an answer is ready
        self.code: str | None = None  # of the error
        self.streams = False
        self.answer: Answer | None = None
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start
