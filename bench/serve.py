"""Load over HTTP: time to first token, time between tokens, throughput; texts are checked.

    python bench/serve.py URL [--requests N] [--concurrency N] [--tokens N]

The same greedy requests run first one after another, then at the given concurrency. A text that
differs between the two runs ends the benchmark with an error: it would be fast and wrong. Refuses
every address but this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import statistics
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

TOPICS = ("rivers", "bridges", "clocks", "bread", "maps", "trees", "salt", "music")


@dataclass
class Sample:
    """One streamed answer. Times in seconds from the sending of the request."""

    text: str = ""
    chunks_s: list[float] = field(default_factory=list)
    tokens: int = 0
    total_s: float = 0.0

    @property
    def first_s(self) -> float:
        return self.chunks_s[0] if self.chunks_s else self.total_s

    @property
    def gaps_s(self) -> list[float]:
        return [b - a for a, b in zip(self.chunks_s, self.chunks_s[1:], strict=False)]


def body(number: int, tokens: int) -> dict[str, object]:
    topic = TOPICS[number % len(TOPICS)]
    return {
        "messages": [{"role": "user", "content": f"Question {number}: tell me about {topic}."}],
        "temperature": 0,
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def ask(client: httpx.AsyncClient, request: dict[str, object]) -> Sample:
    sample, started = Sample(), time.perf_counter()
    async with client.stream("POST", "/v1/chat/completions", json=request) as answer:
        if answer.status_code != 200:
            raise SystemExit(f"status {answer.status_code}: {(await answer.aread()).decode()}")
        async for line in answer.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            read(json.loads(line[6:]), sample, time.perf_counter() - started)
    sample.total_s = time.perf_counter() - started
    return sample


def read(chunk: dict, sample: Sample, now_s: float) -> None:
    if error := chunk.get("error"):
        raise SystemExit(f"the stream broke: {error['message']}")
    for choice in chunk["choices"]:
        if piece := choice["delta"].get("content"):
            sample.text += piece
            sample.chunks_s.append(now_s)
    if usage := chunk.get("usage"):
        sample.tokens = usage["completion_tokens"]


async def run(url: str, requests: int, concurrency: int, tokens: int) -> tuple[list[Sample], float]:
    seats = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=concurrency)

    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:

        async def one(number: int) -> Sample:
            async with seats:
                return await ask(client, body(number, tokens))

        started = time.perf_counter()
        samples = await asyncio.gather(*(one(number) for number in range(requests)))
        return samples, time.perf_counter() - started


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def report(name: str, samples: list[Sample], seconds: float) -> None:
    first = [sample.first_s for sample in samples]
    gaps = [gap for sample in samples for gap in sample.gaps_s]
    tokens = sum(sample.tokens for sample in samples)
    print(
        f"{name:14} first token {statistics.median(first) * 1e3:8.1f} ms"
        f" (p95 {quantile(first, 0.95) * 1e3:8.1f}), between"
        f" {statistics.median(gaps or [0.0]) * 1e3:7.2f} ms (p95 {quantile(gaps, 0.95) * 1e3:7.2f})"
        f", {tokens / seconds:8.1f} tokens/s"
    )


def local(url: str) -> str:
    host = urlsplit(url).hostname or ""
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise SystemExit(f"{host} is not this machine")
    return url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", type=local)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    alone, alone_s = asyncio.run(run(args.url, args.requests, 1, args.tokens))
    load, load_s = asyncio.run(run(args.url, args.requests, args.concurrency, args.tokens))
    wrong = [i for i, (a, b) in enumerate(zip(alone, load, strict=True)) if a.text != b.text]
    if wrong:
        raise SystemExit(f"{len(wrong)} answers differ between the two runs, first: {wrong[0]}")
    report("one by one", alone, alone_s)
    report(f"{args.concurrency} at a time", load, load_s)
    print(f"throughput ratio {alone_s / load_s:.2f}; all texts equal")


if __name__ == "__main__":
    main()
