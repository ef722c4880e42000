from __future__ import annotations

import subprocess
import sys

import pytest

from edgeserve import __version__
from edgeserve.cli import main
from edgeserve.cli.parser import COMMANDS

HEAVY = ("numpy", "falcon", "uvicorn", "rich", "prompt_toolkit", "tokenizers")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_names_every_flag_with_a_meaning(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert "usage: edgeserve" in capsys.readouterr().out


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from edgeserve.cli import main; main(['serve', '--help']);"
        f"sys.exit(bool(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"edgeserve {__version__}"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["serve", "--no-such-flag"], "--no-such-flag"),
        (["serve", "--port", "70000"], "70000"),
        (["serve", "--queue-timeout", "0"], "above 0"),
        (["serve", "--kv-pool-size", "lots"], "lots"),
        (["serve", "--top-p", "1.5"], "above 0 and at most 1"),
        (["serve", "--mod", "x=y"], "--mod"),
        (["cache"], "ACTION"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert len(said.strip().splitlines()) == 1
