"""The `Front` that serves: a supervisor with its replicas, and the model once it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module

from edgeserve.config import ServeOptions
from edgeserve.front.replica import Care
from edgeserve.front.status import State as Life
from edgeserve.front.status import Status
from edgeserve.front.supervisor import Supervisor
from edgeserve.http.front import ReplicaCount, State
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.stats import EngineStats

STATES: dict[Life, State] = {
    Life.LOADING: "loading",
    Life.READY: "ready",
    Life.DEGRADED: "ready",
    Life.RESTARTING: "restarting",
    Life.FAILED: "failed",
    Life.STOPPED: "failed",
}

Progress = Callable[[str, int, int], None]


class SupervisedFront:
    """Made on the loop that serves HTTP; `start` waits until requests can be served."""

    def __init__(self, options: ServeOptions, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._model: ServedModel | None = None
        self._supervisor = Supervisor(
            options.engine,
            Care(
                startup_timeout_s=options.startup_timeout_s,
                restarts=options.worker_restarts,
                log_level=options.log_level,
            ),
            on_change=self._changed,
        )

    async def start(self) -> ServedModel:
        """The model, ready. Raises why it never will be."""
        self._supervisor.start()
        importing = asyncio.to_thread(import_module, "edgeserve.pipeline.parts")
        info, _ = await asyncio.gather(self._supervisor.ready(), importing)
        options = self._options
        wishes = ModelOptions(
            name=options.model_name,
            sampler=options.sampler,
            default_max_tokens=options.default_max_tokens,
            enable_thinking=options.enable_thinking,
            tool_call_parser=options.tool_call_parser,
            reasoning_parser=options.reasoning_parser,
            chat_template=options.engine.chat_template,
        )
        self._model = await asyncio.to_thread(
            ServedModel.from_info, info, self._supervisor.generator, wishes
        )
        return self._model

    async def close(self) -> None:
        await self._supervisor.close()
        if self._model is not None:
            self._model.close()

    def _changed(self, status: Status) -> None:
        if status.stage:
            self._progress(status.stage, status.done, status.total)

    # Front -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        if self._model is not None:
            return self._model.name
        # Before the checkpoint is known: the end of what the user wrote, never a whole path.
        wanted = self._options.model_name or self._options.engine.checkpoint
        return wanted.rstrip("/").rpartition("/")[2]

    @property
    def state(self) -> State:
        state = STATES[self._supervisor.status.state]
        return "loading" if self._model is None and state != "failed" else state

    @property
    def reason(self) -> str:
        return self._supervisor.status.reason

    @property
    def model(self) -> ServedModel | None:
        return self._model

    @property
    def replicas(self) -> ReplicaCount:
        replicas = self._supervisor.replicas
        ready = sum(replica.status.state is Life.READY for replica in replicas)
        return ReplicaCount(ready, len(replicas))

    @property
    def queued(self) -> int:
        return self._supervisor.admission.queued

    def stats(self) -> list[EngineStats]:
        return self._supervisor.stats()
