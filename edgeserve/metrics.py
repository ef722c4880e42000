"""Counters and histograms of the server, with a registry of their own, as Prometheus text.

Names begin with `edgeserve_`; the names of trtmc-server that mean the same are kept beside them.
Per request: observed once, at its end. Of the engines: read from their counters at each scrape.
No label holds a prompt, a text or anything that a client wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from edgeserve.generation import Usage
from edgeserve.stats import EngineStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WAITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
STEPS = (0.0005, 0.001, 0.002, 0.004, 0.006, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1)


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the server at one moment."""

    ready: bool
    active_requests: int
    busy_replicas: int
    seats: int


class Metrics:
    """`state` and `engines` are asked at each scrape."""

    def __init__(
        self, state: Callable[[], Gauges], engines: Callable[[], Sequence[EngineStats]]
    ) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "HTTP requests", ["route", "status"])
        self._seconds = self._histogram("http_request_seconds", "HTTP request, whole", WAITS)
        self._queue = self._histogram("queue_seconds", "From arrival to a seat", WAITS)
        self._first = self._histogram(
            "time_to_first_token_seconds", "From arrival to the first token", WAITS
        )
        self._step = self._histogram(
            "inter_token_seconds", "Between tokens of a request, its mean", STEPS
        )
        self._total = self._histogram("end_to_end_seconds", "From arrival to the end", WAITS)
        self._tokens = {
            name: self._counter(f"{name}_tokens", text, [])
            for name, text in (
                ("prompt", "Prompt tokens of answered requests"),
                ("completion", "Tokens generated for answered requests"),
                ("cached", "Prompt tokens whose keys and values were reused"),
            )
        }
        self._trtmc = Aliases(self._registry)
        self._children: dict[tuple[str, int], tuple[Counter, Counter]] = {}
        self._registry.register(EngineCollector(state, engines))

    def request(self, route: str, status: int, seconds: float) -> None:
        """An HTTP request has ended, however."""
        key = (route, status)
        if key not in self._children:
            self._children[key] = (
                self._requests.labels(route, str(status)),
                self._trtmc.requests.labels(route, str(status)),
            )
        for counter in self._children[key]:
            counter.inc()
        self._seconds.observe(seconds)

    def answered(self, usage: Usage) -> None:
        """A generation has completed."""
        self._queue.observe(usage.queue_s)
        self._first.observe(usage.first_token_s)
        self._total.observe(usage.total_s)
        decode_s = max(usage.total_s - usage.first_token_s, 0.0)
        if usage.decoded_tokens:
            self._step.observe(decode_s / usage.decoded_tokens)
        self._tokens["prompt"].inc(usage.prompt_tokens)
        self._tokens["completion"].inc(usage.completion_tokens)
        self._tokens["cached"].inc(usage.cached_tokens)
        self._trtmc.answered(usage, decode_s)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(f"edgeserve_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"edgeserve_{name}", text, registry=self._registry, buckets=buckets)


class Aliases:
    """What trtmc-server measures, by its names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def summary(name: str, text: str) -> Summary:
            return Summary(f"trtmc_server_{name}_duration_seconds", text, registry=registry)

        self.requests = Counter(
            "trtmc_server_requests", "HTTP requests", ["route", "status"], registry=registry
        )
        self._queue = summary("queue", "Admission")
        self._inference = summary("inference", "Inference")
        self._setup = summary("task_setup", "Set-up of a task: always 0 here")
        self._prefill = summary("task_prefill", "Prefill of a task")
        self._decode = summary("task_decode", "Decode of a task")

    def answered(self, usage: Usage, decode_s: float) -> None:
        self._queue.observe(usage.queue_s)
        self._inference.observe(max(usage.total_s - usage.queue_s, 0.0))
        self._setup.observe(0.0)
        self._prefill.observe(max(usage.first_token_s - usage.queue_s, 0.0))
        self._decode.observe(decode_s)


class EngineCollector:
    """Engine counters, summed over the replicas."""

    def __init__(
        self, state: Callable[[], Gauges], engines: Callable[[], Sequence[EngineStats]]
    ) -> None:
        self._state = state
        self._engines = engines

    def collect(self) -> Iterator[Metric]:
        state, engines = self._state(), self._engines()
        queued = sum(engine.scheduling.queued for engine in engines)
        yield gauge("edgeserve_ready", "1 when all is ready for requests", state.ready)
        yield gauge("edgeserve_active_requests", "HTTP requests under way", state.active_requests)
        yield gauge("edgeserve_seats", "Seats of all replicas", state.seats)
        yield gauge("trtmc_server_ready", "As edgeserve_ready", state.ready)
        yield gauge("trtmc_server_queue_depth", "Requests that wait for a seat", queued)
        yield gauge("trtmc_server_active_requests", "Requests under way", state.active_requests)
        yield gauge("trtmc_server_busy_replicas", "Replicas without a seat", state.busy_replicas)
        yield from engine_metrics(engines)


GAUGES = {
    "scheduling": ("queued", "resident"),
    "cache": ("current_records", "cached_pages", "free_pages", "total_pages"),
}
SKIPPED = ("queue_latency_avg_us", "queue_latency_max_us")


def engine_metrics(engines: Iterable[EngineStats]) -> Iterator[Metric]:
    """Each number of `EngineStats`, summed: `edgeserve_engine_...` and `edgeserve_cache_...`."""
    totals: dict[tuple[str, str], int] = {}
    for engine in (*engines, EngineStats()):
        for part in GAUGES:
            for name, value in msgspec.structs.asdict(getattr(engine, part)).items():
                totals[part, name] = totals.get((part, name), 0) + value
    for (part, name), value in totals.items():
        if name in SKIPPED:
            continue
        full = f"edgeserve_{'engine' if part == 'scheduling' else part}_{name}"
        text = name.replace("_", " ")
        if name in GAUGES[part]:
            yield gauge(full, text, value)
        else:
            yield CounterMetricFamily(full, text, value=value)


def gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))
