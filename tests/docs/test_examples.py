"""The examples of README run as they are pasted, against a real server with the default model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from tests.serving import serving

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(command: list[str], cache: Path) -> str:
    environment = os.environ | {"EDGESERVE_CACHE": str(cache)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=180, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.works("The examples in this file run: curl, the `openai` client, `edgeserve.LLM`")
def test_the_examples_of_readme_run(default_model: Resolved, model_cache: Path) -> None:
    del default_model
    curl = next(block for block in blocks("bash") if block.startswith("curl "))
    client, in_process = blocks("python")
    with serving(cache=model_cache) as server:
        server.wait_ready()
        answer = run(["bash", "-c", curl.replace("http://127.0.0.1:8000", server.url)], model_cache)
        assert '"content"' in answer
        code = client.replace("http://127.0.0.1:8000", server.url)
        assert run([sys.executable, "-c", code], model_cache).strip()
    code = in_process.replace("LLM(", f"LLM(cache_dir={str(model_cache)!r}, model=")
    assert run([sys.executable, "-c", code], model_cache).strip()
