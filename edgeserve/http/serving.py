"""What the resources share: the front, the served model by name, limits, counters."""

from __future__ import annotations

import time

from edgeserve.config import ServeOptions
from edgeserve.errors import ModelLoading, ModelNotFound
from edgeserve.http.drain import Drain
from edgeserve.http.front import Front
from edgeserve.metrics import Gauges, Metrics
from edgeserve.pipeline.model import ServedModel
from edgeserve.protocol.vocabulary import Vocabulary


class Serving:
    """Made once, by `create_app`."""

    def __init__(self, front: Front, options: ServeOptions) -> None:
        self.front = front
        self.options = options
        self.drain = Drain()
        self.metrics = Metrics(self.gauges, front.stats)
        self.created = int(time.time())
        self._vocabulary: tuple[ServedModel, Vocabulary] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.front.name, *self.options.aliases)

    def model(self, name: str | None) -> ServedModel:
        """The model that a request names; with one model served it need not name it."""
        if name and name not in self.names:
            raise ModelNotFound(name, list(self.names))
        model = self.front.model
        if model is None:
            raise ModelLoading(self.front.name)
        return model

    async def vocabulary(self, model: ServedModel) -> Vocabulary:
        """The names of a model's tokens; made when they are first asked for, off the loop."""
        if self._vocabulary is None or self._vocabulary[0] is not model:
            pieces = await model.load_token_bytes()
            self._vocabulary = (model, Vocabulary(pieces, model.tokenizer.special_ids))
        return self._vocabulary[1]

    @property
    def ready(self) -> bool:
        return self.front.state == "ready" and not self.drain.draining

    @property
    def degraded(self) -> bool:
        replicas = self.front.replicas
        return 0 < replicas.ready < replicas.total

    def gauges(self) -> Gauges:
        seats = self.front.model.info.limits.seats if self.front.model else 0
        return Gauges(
            ready=self.ready,
            active_requests=len(self.drain.answers),
            busy_replicas=sum(
                seats <= engine.scheduling.resident for engine in self.front.stats() if seats
            ),
            seats=seats * self.front.replicas.ready,
        )
