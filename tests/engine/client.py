"""A client of a service in this process: submits, drains, and keeps what came."""

from __future__ import annotations

import select
import time
from collections import defaultdict
from collections.abc import Callable

from edgeserve.engine.runtime import Runtime
from edgeserve.engine.service import Service
from edgeserve.generation import Event, Failed, Finished, GenerationRequest, Piece, Pieces, Usage
from edgeserve.sampling import SamplerSettings
from edgeserve.stats import EngineStats

Result = tuple[tuple[int, ...], tuple[tuple[int, float], ...]]


class Client:
    """Drains a service and keeps what came, by request."""

    def __init__(self, runtime: Runtime) -> None:
        self.service = Service(runtime)
        self.events: dict[int, list[Event]] = defaultdict(list)
        self.service.start()
        self._last = 0

    def make(self, prompt: tuple[int, ...] | str, **fields: object) -> GenerationRequest:
        self._last += 1
        tokens = tuple(prompt.encode()) if isinstance(prompt, str) else prompt
        settings = {"max_tokens": 20, "ignore_eos": True, "logprobs": 0, **fields}
        seed = settings.pop("seed", None)
        sampler = SamplerSettings(temperature=0.0) if seed is None else SamplerSettings(seed=seed)
        settings.setdefault("sampler", sampler)
        return GenerationRequest(id=self._last, prompt=tokens, **settings)

    def submit(self, prompt: tuple[int, ...] | str, **fields: object) -> int:
        request = self.make(prompt, **fields)
        self.service.submit(request)
        return request.id

    def until(self, done: Callable[[], bool], timeout_s: float = 20.0) -> None:
        while not done():
            ready, _, _ = select.select([self.service.fileno()], [], [], timeout_s)
            assert ready, "the engine fell silent"
            for event in self.service.drain():
                self.events[event.id].append(event)

    def end(self, *ids: int) -> None:
        self.until(lambda: all(map(self.has_ended, ids)))

    def has_ended(self, id_: int) -> bool:
        events = self.events[id_]
        return bool(events) and isinstance(events[-1], (Finished, Failed))

    def run(self, prompt: tuple[int, ...] | str, **fields: object) -> int:
        id_ = self.submit(prompt, **fields)
        self.end(id_)
        return id_

    def stats(self) -> EngineStats:
        """Counters, once they tell of every request that has ended."""
        ended = sum(map(self.has_ended, list(self.events)))
        while True:
            stats = self.service.stats()
            counts = stats.scheduling
            if counts.completed + counts.cancelled + counts.failed >= ended:
                return stats
            time.sleep(0.001)

    def pieces(self, id_: int, choice: int = 0) -> list[Piece]:
        groups = [e.pieces for e in self.events[id_] if isinstance(e, Pieces)]
        return [piece for pieces in groups for piece in pieces if piece.choice == choice]

    def tokens(self, id_: int, choice: int = 0) -> tuple[int, ...]:
        return tuple(token for piece in self.pieces(id_, choice) for token in piece.tokens)

    def result(self, id_: int, choice: int = 0) -> Result:
        """Tokens and bits of their logprobs: what the determinism contract is about."""
        logprobs = [(e.token, e.logprob) for p in self.pieces(id_, choice) for e in p.logprobs]
        assert isinstance(self.events[id_][-1], Finished), self.events[id_][-1]
        return self.tokens(id_, choice), tuple(logprobs)

    def error(self, id_: int) -> Failed:
        failed = self.events[id_][-1]
        assert isinstance(failed, Failed)
        return failed

    def usage(self, id_: int) -> Usage:
        finished = self.events[id_][-1]
        assert isinstance(finished, Finished)
        return finished.usage
