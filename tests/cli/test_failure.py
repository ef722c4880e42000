from __future__ import annotations

import subprocess
import sys

import pytest

from edgeserve.cli.failure import guarded
from edgeserve.errors import BadConfig, Busy, CheckpointError


def raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return guarded(command)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CheckpointError("no such folder"), 1),
        (BadConfig("two flags contradict"), 2),
        (Busy("all seats are taken"), 1),
        (OSError(13, "Permission denied", "/x"), 1),
        (ValueError("odd\nthing"), 1),
        (ModuleNotFoundError("No module named 'edgeserve.x'", name="edgeserve.x"), 1),
    ],
)
def test_a_failure_is_one_sentence_and_an_exit_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("edgeserve: ")
    assert len(said.err.splitlines()) == 1
    assert "Traceback" not in said.err


def test_an_interrupt_is_exit_code_130_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


INTERRUPTED_IMPORT = """
import sys
from edgeserve.cli import main
class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC())
sys.exit(main(["--version"]))
"""


@pytest.mark.parametrize(
    "module", ["argparse", "msgspec", "edgeserve.errors", "edgeserve.cli.serve"]
)
def test_an_interrupt_while_a_command_is_imported_is_one_as_well(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_traceback_is_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESERVE_TRACEBACK", "1")
    with pytest.raises(CheckpointError):
        raising(CheckpointError("no such folder"))
