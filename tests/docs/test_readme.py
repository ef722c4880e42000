"""README's promises: two set-up commands, and a table with nothing but tested rows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.works import README, marked_rows, readme_rows, table

ROOT = Path(__file__).resolve().parents[2]


def bash_blocks() -> list[str]:
    return re.findall(r"```bash\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_two_set_up_commands() -> None:
    installs = [block.strip() for block in bash_blocks() if "pip install" in block]
    assert installs == ["pip install . && edgeserve serve", "pip install -e '.[test]' && pytest"]


def test_ci_runs_both() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "pip install -v ." in script
    assert "pip install -q -e '.[test]'" in script


def test_the_table_has_exactly_the_marked_tests() -> None:
    assert readme_rows() == marked_rows(), "run 'pytest --write-works'"


def test_rows_are_written_once() -> None:
    texts = [text for text, _ in marked_rows()]
    assert len(texts) == len(set(texts))


def test_a_table_is_read_back_as_it_was_written() -> None:
    rows = [("b works", "tests/b.py"), ("a works", "tests/a.py")]
    lines = table(rows).splitlines()
    assert lines[2:] == ["| a works | `tests/a.py` |", "| b works | `tests/b.py` |"]
