"""One `edgeserve serve` of the scripted family: real process, worker, wire and engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.serving import Server, serving

OPTIONS = ("--max-kv-cache-capacity", "1024", "--max-batch-size", "8")


@pytest.fixture(scope="session")
def wire_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wire-cache")


@pytest.fixture(scope="session")
def served(scripted_checkpoint: Path, wire_cache: Path) -> Iterator[Server]:
    with serving(str(scripted_checkpoint), *OPTIONS, cache=wire_cache) as server:
        server.wait_ready()
        yield server


@pytest.fixture(scope="session")
def http(served: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def client(served: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id
