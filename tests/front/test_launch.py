"""What a worker gets from the front: a socket, a few words, and hardly any environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from edgeserve.front.launch import PROGRAM, worker_environment


def test_a_worker_sees_no_secrets_and_no_proxies() -> None:
    seen = worker_environment(
        {
            "PATH": "/bin",
            "LC_ALL": "C.UTF-8",
            "EDGESERVE_ISA": "avx2",
            "EDGESERVE_API_KEY": "k",
            "HF_TOKEN": "t",
            "AWS_SECRET_ACCESS_KEY": "s",
            "https_proxy": "http://proxy",
            "XDG_SESSION_TOKEN": "t",
        }
    )
    assert seen == {"PATH": "/bin", "LC_ALL": "C.UTF-8", "EDGESERVE_ISA": "avx2"}


def test_the_current_folder_never_shadows_the_package(tmp_path: Path) -> None:
    (tmp_path / "edgeserve").mkdir()
    (tmp_path / "edgeserve" / "__init__.py").write_text("raise SystemExit('shadowed')")
    program = PROGRAM.partition("from edgeserve")[0] + "import edgeserve; print(edgeserve.__file__)"
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", program, "0", "0", "loader", "info", root]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert str(tmp_path) not in done.stdout
