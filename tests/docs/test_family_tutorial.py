"""Executes docs/family.md step by step: files, entry point, checkpoint, run, check."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```\w+ file=(\S+)( run)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def install(folder: Path) -> None:
    """What `pip install -e .` would write for the tutorial's package, without a network."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.works("A model family is a pip-installable plugin; the tutorial's steps run")
def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "family.md").read_text(encoding="utf-8")
    steps = BLOCK.findall(text)
    assert [name for name, run, _ in steps if run] == ["make_tiny.py", "try_it.py", "check_it.py"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    for name, run, code in steps:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
        if name == "pyproject.toml":
            install(tmp_path)
        if run:
            done = subprocess.run(
                [sys.executable, name],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            assert done.returncode == 0, f"{name}:\n{done.stderr}"
