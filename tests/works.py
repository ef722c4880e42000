"""The README's table of what works, made from tests that passed.

A front-door test is marked `@pytest.mark.works("what a user can do")`. `pytest --write-works`
rewrites the table from the marked tests that passed in that run; `tests/docs/test_readme.py`
fails when the table and the marks differ. So a row without a passing test does not exist.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- works: begin -->", "<!-- works: end -->"

Row = tuple[str, str]  # what works, the file of its test


def marked_rows() -> list[Row]:
    """Every mark in the tests, read without importing them."""
    rows = {
        (text, str(path.relative_to(ROOT)))
        for path in (ROOT / "tests").rglob("test_*.py")
        for text in _marks(ast.parse(path.read_text(encoding="utf-8")))
    }
    return sorted(rows)


def _marks(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.works":
                yield ast.literal_eval(mark.args[0])


def readme_rows() -> list[Row]:
    block = README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    cells = [line.strip("| ").split(" | ") for line in block.splitlines() if " | " in line]
    return sorted((text, test.strip("`")) for text, test in cells[2:])  # after the head


def table(rows: list[Row]) -> str:
    lines = [f"| {text} | `{test}` |" for text, test in sorted(rows)]
    return "\n".join(["| What works | Its test |", "| --- | --- |", *lines])


def write(rows: list[Row]) -> None:
    text = README.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    README.write_text(f"{head}{BEGIN}\n{table(rows)}\n{END}{tail}", encoding="utf-8")


# The pytest plugin -----------------------------------------------------------------------------


class Works:
    """Collects marked tests as their reports come in; a row needs all of its tests to pass."""

    def __init__(self) -> None:
        self.passed: set[Row] = set()
        self.failed: set[Row] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, text in report.user_properties:
            if name != "works":
                continue
            row = (str(text), report.nodeid.partition("::")[0])
            if not report.passed:
                self.failed.add(row)
            elif report.when == "call":
                self.passed.add(row)

    def pytest_sessionfinish(self) -> None:
        write(sorted(self.passed - self.failed))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-works", action="store_true", help="rewrite README's table from tests that pass"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-works") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Works())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("works"):
            item.user_properties.append(("works", mark.args[0]))
