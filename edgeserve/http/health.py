"""`/health`, `/health/live`, `/health/ready`. No key, and never a wait for a worker."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec
import orjson
from falcon.asgi import Request, Response

from edgeserve.http.serving import Serving
from edgeserve.model_info import ModelInfo
from edgeserve.stats import SchedulingStats

STATUS = {
    "loading": "loading",
    "ready": "healthy",
    "restarting": "unavailable",
    "failed": "unavailable",
}


class Live:
    """200 as long as this process answers."""

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        answer(resp, 200, {"status": "live"})

    on_head = on_get


class Ready:
    """200 when a request would be taken now."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        serving = self._serving
        body: dict[str, Any] = {
            "status": "ready" if serving.ready else "not_ready",
            "degraded": serving.degraded,
            **load(serving),
        }
        if reason := why_not(serving):
            body["reason"] = reason
        answer(resp, 200 if serving.ready else 503, body)

    on_head = on_get


class Health:
    """Everything in one body. 503 while loading and once the engine has failed."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        serving = self._serving
        front = serving.front
        model = front.model
        body: dict[str, Any] = {
            "status": status(serving),
            "degraded": serving.degraded,
            "model": front.name,
            "models": list(serving.names),
            **load(serving),
            "scheduling": msgspec.structs.asdict(scheduling(serving)),
            "capabilities": capabilities(model.info) if model else None,
            "engine": {
                "state": front.state,
                "replicas": {"ready": front.replicas.ready, "total": front.replicas.total},
                "policy": "in_flight_batching",
                **({"backend": model.info.backend, "isa": model.info.isa} if model else {}),
            },
        }
        if reason := why_not(serving):
            body["reason"] = reason
        answer(resp, 200 if front.state == "ready" else 503, body)

    on_head = on_get


def answer(resp: Response, code: int, body: dict[str, Any]) -> None:
    resp.status = code
    resp.content_type = falcon.MEDIA_JSON
    resp.data = orjson.dumps(body)
    if code == 503:
        resp.set_header("Retry-After", "1")


def status(serving: Serving) -> str:
    if serving.drain.draining:
        return "draining"
    return STATUS[serving.front.state]


def why_not(serving: Serving) -> str | None:
    if serving.drain.draining:
        return "the server is shutting down"
    if serving.front.state == "loading":
        return f"model '{serving.front.name}' is loading"
    return serving.front.reason or None


def load(serving: Serving) -> dict[str, int]:
    return {
        "active_requests": len(serving.drain.answers),
        "queued_requests": serving.front.queued,
    }


def scheduling(serving: Serving) -> SchedulingStats:
    """Summed over the replicas; latencies: the mean of their means, the largest maximum."""
    engines = [engine.scheduling for engine in serving.front.stats()]
    if len(engines) == 1:
        return engines[0]
    total = {
        name: sum(getattr(engine, name) for engine in engines)
        for name in SchedulingStats.__struct_fields__
    }
    if engines:
        total["queue_latency_avg_us"] //= len(engines)
        total["queue_latency_max_us"] = max(one.queue_latency_max_us for one in engines)
    return SchedulingStats(**total)


def capabilities(info: ModelInfo) -> dict[str, Any]:
    limits = info.limits
    return {
        "chat": "generate" in info.tasks,
        "transcription": False,
        "speech": False,
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "max_model_len": limits.max_model_len,
        "max_input_len": limits.max_input_len,
        "max_batch_size": limits.seats,
        "max_num_seqs": limits.seats,
        "kv_cache_dtype": info.kv_dtype,
        "speculative_decoding": False,
        "speculative_method": None,
        "context_reuse": info.context_reuse,
        "in_flight_batching": True,
        "notes": list(info.notes),
    }
