"""`LLM.serve`, the cache functions, and how a process with an `LLM` ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from edgeserve import LLM, clear_engine_cache, load_model, prune_engine_cache

OPTIONS = {"threads": 1, "pin": False, "max_kv_cache_capacity": 512}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def llm(scripted_checkpoint: Path, cache: Path) -> Iterator[LLM]:
    with load_model(str(scripted_checkpoint), cache_dir=cache, **OPTIONS) as llm:
        yield llm


@pytest.mark.works("`LLM.serve` is HTTP over the model in this process")
def test_serve_answers_over_the_same_engine(llm: LLM) -> None:
    urls: list[str] = []
    ready = threading.Event()

    def on_ready(url: str) -> None:
        urls.append(url)
        ready.set()

    server = threading.Thread(
        target=llm.serve,
        kwargs={"port": 0, "served_model_name": "mine", "api_key": "k", "on_ready": on_ready},
        daemon=True,
    )
    server.start()
    assert ready.wait(10)
    client = httpx.Client(base_url=urls[0], headers={"Authorization": "Bearer k"})
    assert client.get("/health/ready").status_code == 200
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["mine"]
    body = {"messages": [{"role": "user", "content": "say:hi"}]}
    answer = client.post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == "hi"
    assert httpx.get(f"{urls[0]}/v1/models").status_code == 401
    assert llm.chat("say:direct").text == "direct"  # calls of this process go on beside it
    client.close()


def test_a_bundle_that_is_served_survives_clear_and_prune(llm: LLM, cache: Path) -> None:
    assert clear_engine_cache(cache) == 0
    assert prune_engine_cache(cache, max_size_bytes=1) == 0
    assert llm.chat("say:here").text == "here"
    with pytest.raises(ValueError, match="max_size_bytes"):
        prune_engine_cache(cache, max_size_bytes=0)


def test_clear_removes_bundles_that_nobody_serves(
    scripted_checkpoint: Path, tmp_path: Path
) -> None:
    LLM(str(scripted_checkpoint), cache_dir=tmp_path, **OPTIONS).close()
    assert prune_engine_cache(tmp_path) == 0
    assert clear_engine_cache(tmp_path) == 1
    assert clear_engine_cache(tmp_path) == 0
    with LLM(
        str(scripted_checkpoint), cache_dir=tmp_path, clear_engine_cache=True, **OPTIONS
    ) as llm:
        assert llm.chat("say:again").text == "again"


def test_a_bundle_folder_is_a_model_too(llm: LLM, cache: Path) -> None:
    with LLM(llm.bundle_dir, cache_dir=cache, **OPTIONS) as again:
        assert again.chat("say:same").text == "same"
        assert again.model_id == llm.model_id


PROGRAM = """
import sys
from edgeserve import LLM
llm = LLM(sys.argv[1], cache_dir=sys.argv[2], threads=1, pin=False, max_kv_cache_capacity=512)
print(llm.chat("say:done").text)
stream = llm.generate_stream("delay_ms=1 script:endless")
next(stream)
"""


def test_a_process_that_closes_nothing_ends_at_once(scripted_checkpoint: Path, cache: Path) -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(scripted_checkpoint), str(cache)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=Path(__file__).resolve().parents[1],
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert time.monotonic() - started < 15
