"""The scripted family (tests/plugins/scripted) made available to tests without installing it.

An entry point is a text file beside a package. So instead of running pip for every test session,
`install` writes the `.dist-info` that pip would write into a temporary folder and puts that folder
and the plugin's source on `sys.path`, and on PYTHONPATH for the workers that tests start: no
network, no build, a millisecond. tests/plugins/test_install.py installs it with pip for real.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parent / "plugins" / "scripted"
METADATA = "Metadata-Version: 2.1\nName: edgeserve-scripted\nVersion: 0.1.0\n"
ENTRY_POINTS = "[edgeserve.families]\nscripted = edgeserve_scripted.family:FAMILY\n"


def install(folder: Path) -> None:
    """Make this process and its children find the plugin."""
    info = folder / "edgeserve_scripted-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(METADATA, encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    paths = [str(folder), str(PLUGIN)]
    sys.path[:0] = paths
    rest = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *rest])


@pytest.fixture(scope="session")
def scripted_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted family is installed, for this process and for processes it starts."""
    folder = tmp_path_factory.mktemp("plugins")
    install(folder)
    return folder


@pytest.fixture(scope="session")
def scripted_checkpoint(scripted_plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder of the scripted family with its built-in scripts."""
    del scripted_plugin
    from edgeserve_scripted import write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("scripted") / "scripted")
