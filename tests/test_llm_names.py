"""Importing `edgeserve`: cheap, complete, and never hiding an installed package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import edgeserve

HOME = Path(edgeserve.__file__).parent
COMPILED = f"forward{EXTENSION_SUFFIXES[0]}"


def python(code: str, cwd: Path, *, path: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=cwd,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_costs_next_to_nothing() -> None:
    heavy = ["typing", "msgspec", "numpy", "asyncio", "tokenizers", "jinja2", "importlib.metadata"]
    code = f"import sys, edgeserve; print([m for m in {heavy} if m in sys.modules])"
    assert python(code, HOME.parent) == "[]"


def test_every_public_name_is_there() -> None:
    for name in edgeserve.__all__:
        assert getattr(edgeserve, name) is not None
        assert name in dir(edgeserve)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = edgeserve.nothing  # type: ignore[attr-defined]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A source folder as a fresh clone has it: nothing compiled."""
    package = tmp_path / "clone" / "edgeserve"
    (package / "_native").mkdir(parents=True)
    shutil.copy(HOME / "__init__.py", package)
    (package / "place.py").write_text("PLACE = 'clone'\n")
    return package.parent


def install(folder: Path) -> Path:
    """A site-packages with a compiled edgeserve."""
    package = folder / "site" / "edgeserve"
    (package / "_native").mkdir(parents=True)
    shutil.copy(HOME / "__init__.py", package)
    (package / "place.py").write_text("PLACE = 'site'\n")
    (package / "_native" / COMPILED).touch()
    return package.parent


PLACE = "from edgeserve import place; print(place.PLACE)"


def test_inside_an_uncompiled_clone_the_installed_package_is_used(
    clone: Path, tmp_path: Path
) -> None:
    site = install(tmp_path)
    assert python(PLACE, clone, path=str(site)) == "site"
    spec = "import edgeserve; print(edgeserve.__spec__.submodule_search_locations)"
    assert python(spec, clone, path=str(site)) == f"['{site / 'edgeserve'}']"


def test_a_clone_that_was_compiled_in_place_is_used_itself(clone: Path, tmp_path: Path) -> None:
    site = install(tmp_path)
    (clone / "edgeserve" / "_native" / COMPILED).touch()
    assert python(PLACE, clone, path=str(site)) == "clone"


def test_a_clone_compiled_for_another_python_counts_as_uncompiled(
    clone: Path, tmp_path: Path
) -> None:
    site = install(tmp_path)
    (clone / "edgeserve" / "_native" / "forward.cpython-27-other.so").touch()
    assert python(PLACE, clone, path=str(site)) == "site"


def test_an_uncompiled_clone_alone_is_used_itself(clone: Path, tmp_path: Path) -> None:
    """Also when a foreign package of the same name is installed."""
    assert python(PLACE, clone) == "clone"
    foreign = tmp_path / "foreign" / "edgeserve"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("")
    assert python(PLACE, clone, path=str(foreign.parent)) == "clone"


def test_a_zip_of_the_source_can_be_imported(clone: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "source"), "zip", clone)
    assert python(PLACE, tmp_path, path=archive) == "clone"
