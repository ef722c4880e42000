"""One `Generator` over the replicas of a model: admission, then the replica with the least work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError
from edgeserve.front.admission import Admission, Pass
from edgeserve.front.replica import Replica
from edgeserve.front.status import State
from edgeserve.generation import GenerationRequest
from edgeserve.ticket import Ticket


class Router:
    def __init__(
        self,
        replicas: Sequence[Replica],
        admission: Admission,
        options: EngineOptions,
        refusal: Callable[[], EdgeserveError],
    ) -> None:
        """`refusal`: why no replica is ready, when none is."""
        self._replicas = replicas
        self._admission = admission
        self._options = options
        self._refusal = refusal
        self._last_id = 0

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def submit(self, request: GenerationRequest) -> Ticket:
        replica = self._choose()
        admitted = self._admission.take(request)
        try:
            ticket = await replica.submit(self._with_limits(request))
        except EdgeserveError as error:
            admitted.give()
            if error.code == "server_busy" and error.retry_after_s is None:
                error.retry_after_s = self._admission.retry_after_s()
            raise
        except BaseException:  # whoever waited has left
            admitted.give()
            raise
        self._hold(admitted, ticket)
        return ticket

    def _hold(self, admitted: Pass, ticket: Ticket) -> None:
        self._admission.seated(admitted)
        if ticket.has_ended:
            admitted.give()
        else:
            ticket.on_end(admitted.give)

    def _choose(self) -> Replica:
        ready = [r for r in self._replicas if r.status.state is State.READY]
        if not ready:
            raise self._refusal()
        return min(ready, key=len)

    def _with_limits(self, request: GenerationRequest) -> GenerationRequest:
        """The server's time limits, where the request sets none."""
        queue_s, total_s = request.queue_timeout_s, request.timeout_s
        return msgspec.structs.replace(
            request,
            queue_timeout_s=self._options.queue_timeout_s if queue_s is None else queue_s,
            timeout_s=self._options.request_timeout_s if total_s is None else total_s,
        )
