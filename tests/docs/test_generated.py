"""Pages that are made from the code are current, and pages name only files that exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
assert spec is not None and spec.loader is not None
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)


@pytest.mark.parametrize("page", ["errors.md", "operations.md", "differences.md"])
def test_the_page_is_current(page: str) -> None:
    made = generate.pages()[page]
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == made, (
        "run 'python docs/generate.py'"
    )


def test_every_error_class_is_documented_with_a_sentence() -> None:
    for error in generate.error_classes():
        assert error.__doc__ and error.__doc__.strip().endswith("."), error.__name__


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_named_in_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = r"`((?:edgeserve|tests|bench|docs|families|_native|\.ci)/[\w./-]+\.\w+)(?:::\w+)?`"
    for path in set(re.findall(named, text)) - {"tests/native/test_NAME.py"}:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_page_is_in_the_index(page: Path) -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert page.parent == ROOT or page.name == "index.md" or f"({page.name})" in index


def test_every_row_of_differences_names_a_test_that_exists() -> None:
    lines = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    rows, has_tests = [], False
    for row in cells:
        if row[0] in ("Point", "Flag"):
            has_tests = row[-1] == "Test"
        elif has_tests and row[0] != "---":
            rows.append(row)
    assert len(rows) > 30
    for row in rows:
        file, _, name = row[-1].strip("`").partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), row
