"""Every fenced block marked `run` in docs/ runs: bash line by line, Python as a script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(bash|python) run\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(language, code, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, (language, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_the_block_runs(language: str, code: str, model_cache: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "edgeserve"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m edgeserve "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = f"{command.parent}:{os.environ['PATH']}"
    program = ["bash", "-euc"] if language == "bash" else [sys.executable, "-c"]
    done = subprocess.run(
        [*program, code],
        cwd=tmp_path,
        env=os.environ | {"EDGESERVE_CACHE": str(model_cache), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
