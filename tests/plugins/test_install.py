"""The scripted plugin installed by pip, the way its users would: found, loaded, gone again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.scripted import PLUGIN

ROOT = Path(__file__).resolve().parents[2]
LOAD = "from edgeserve.family import discover; print(discover.load('scripted').name)"


def python(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that sees the given folders and nothing of this one's plugins."""
    prepare = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\n"
    return subprocess.run(
        [sys.executable, "-c", prepare + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
    )


def test_pip_installs_it_and_its_removal_leaves_no_trace(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "site"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)],
        check=True,
        capture_output=True,
    )
    assert python(LOAD, target, ROOT).stdout.strip() == "scripted"
    shutil.rmtree(target)
    gone = python(LOAD, target, ROOT)
    assert "no installed family serves model type 'scripted'" in gone.stderr
