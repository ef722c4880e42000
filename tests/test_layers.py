"""Imports go one way, files and functions stay small. Reads the source with `ast`; imports nothing.

`MAY_IMPORT` says, for each part of the package, which other parts it may name. Imports for type
checkers (`if TYPE_CHECKING`) follow the same arrows: a type is a dependency too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "edgeserve"

LEAVES = frozenset(
    (
        *("config", "errors", "log", "metrics"),
        *("sampling", "generation", "guide", "ticket", "model_info", "stats"),
    )
)
# Below pipeline and worker, one storey: they describe a model and its files, and know each other.
MODEL = frozenset(["text", "media", "family", "checkpoint", "bundle", "graph"])

MAY_IMPORT: dict[str, frozenset[str]] = {
    **dict.fromkeys(LEAVES, LEAVES),
    "_native": frozenset(),
    "graph": LEAVES,
    "text": LEAVES | MODEL,
    "media": LEAVES | MODEL,
    "family": LEAVES | MODEL,
    "checkpoint": LEAVES | MODEL,
    "bundle": LEAVES | MODEL | {"backends.contract"},
    "backends": LEAVES | MODEL | {"_native"},
    "engine": LEAVES | {"graph", "backends", "_native"},
    "worker": LEAVES | MODEL | {"engine", "backends", "_native"},
    # The front speaks the worker's wire and starts its process; it never holds an engine.
    "front": LEAVES | MODEL | {"worker.wire"},
    "pipeline": LEAVES | MODEL | {"front"},
    "protocol": LEAVES | MODEL | {"pipeline"},
    "http": LEAVES | MODEL | {"protocol", "pipeline", "front"},
    "llm": LEAVES | MODEL | {"pipeline", "worker", "http"},  # http: LLM.serve
    "cli": LEAVES
    | MODEL
    | {"http", "protocol", "pipeline", "front", "worker", "llm"}
    | {"backends", "_native"},
    "__main__": frozenset({"cli"}),
    "__init__": LEAVES | {"llm", "family", "pipeline"},  # the public names
}

FILE_LINES = 400
FUNCTION_LINES = 60
# Longer on purpose: file or "file::function" -> the reason.
LONGER: dict[str, str] = {}


def modules() -> Iterator[tuple[str, Path]]:
    """Each of our Python files with its module path below the package, e.g. `worker.wire`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_native" in path.relative_to(PACKAGE).parts:
            continue
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        if len(parts) > 1 and parts[-1] == "__init__":
            parts.pop()
        yield ".".join(parts), path


def python_files() -> list[Path]:
    ours = [path for _, path in modules()]
    return ours + sorted((ROOT / "families").rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What is imported from `edgeserve`, as a module path below it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "edgeserve":
                    yield alias.name.partition(".")[2] or "__init__", node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level:
            head, _, rest = (node.module or "").partition(".")
            if head != "edgeserve":
                continue
            for alias in node.names:
                if rest:
                    yield f"{rest}.{alias.name}", node.lineno
                else:
                    yield alias.name if alias.name != "__version__" else "__init__", node.lineno


def without_types(tree: ast.Module) -> ast.Module:
    """The module as it runs: no `if TYPE_CHECKING` blocks."""
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    return tree


def is_allowed(source: str, target: str) -> bool:
    part = source.split(".")[0]
    if target.split(".")[0] == part or target == "__init__":
        return True
    allowed = MAY_IMPORT.get(part, frozenset())
    steps = target.split(".")
    return any(".".join(steps[: i + 1]) in allowed for i in range(len(steps)))


def test_every_part_of_the_package_has_a_place() -> None:
    parts = {name.split(".")[0] for name, _ in modules()}
    assert parts <= set(MAY_IMPORT), "add the new part, with what it may import, to MAY_IMPORT"


def test_imports_go_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name.split('.')[0]} may not import {target}"
        for name, path in modules()
        for target, line in imports(ast.parse(path.read_text(encoding="utf-8")))
        if not is_allowed(name, target)
    ]
    assert not wrong, "\n".join(wrong)


def test_relative_imports_are_not_used() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for _, path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not wrong, "\n".join(wrong)


def test_the_front_never_reaches_an_engine() -> None:
    """Not even through what it imports: nothing of http or front pulls in engine or backends."""
    graph: dict[str, set[str]] = {}
    known = {name for name, _ in modules()}
    for name, path in modules():
        reached = set()
        for target, _ in imports(without_types(ast.parse(path.read_text(encoding="utf-8")))):
            steps = target.split(".")
            reached |= {".".join(steps[: i + 1]) for i in range(len(steps))} & known
        graph[name] = reached
    seen: set[str] = set()
    todo = [name for name in known if name.split(".")[0] in {"http", "front", "protocol"}]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    assert not {name for name in seen if name.split(".")[0] == "engine"}
    assert not {name for name in seen if name.startswith("backends.cpu")}


def test_families_import_only_what_a_plugin_may() -> None:
    """First-party families are plugins: graph language, contract, text and leaves; no backend."""
    allowed = {"graph", "family", "text", "checkpoint", "sampling", "errors"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: a family may not import edgeserve.{target}"
        for path in sorted((ROOT / "families").rglob("*.py"))
        for target, line in imports(ast.parse(path.read_text(encoding="utf-8")))
        if target.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "manager", "base", "misc"])
def test_no_file_is_a_drawer(name: str) -> None:
    assert not [path for path in python_files() if path.stem == name or path.parent.name == name]


def test_files_stay_short() -> None:
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in python_files()
    }
    wrong = [
        f"{path}: {lines} lines"
        for path, lines in sizes.items()
        if lines > FILE_LINES and path not in LONGER
    ]
    assert not wrong, f"over {FILE_LINES} lines:\n" + "\n".join(wrong)


def test_functions_stay_short() -> None:
    wrong = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            key = f"{path.relative_to(ROOT)}::{node.name}"
            if lines > FUNCTION_LINES and key not in LONGER:
                wrong.append(f"{key}: {lines} lines")
    assert not wrong, f"over {FUNCTION_LINES} lines:\n" + "\n".join(wrong)


def test_listed_exceptions_exist() -> None:
    for key in LONGER:
        assert (ROOT / key.split("::")[0]).exists(), f"{key} is gone; take it off the list"
