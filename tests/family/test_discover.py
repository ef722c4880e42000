"""Families are found by entry points, and nothing is guessed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgeserve.errors import CheckpointError, FamilyError
from edgeserve.family import discover
from edgeserve.family.contract import CONTRACT

FAMILY = """
class Family:
    name = "{name}"
    contract = {contract}
    gguf = {{}}
    spec = tokenizer = template = sampler = graph = lambda self, *given: None

FAMILY = Family()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a package with one module and entry points, for one test."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, source: str, group: str = discover.FAMILIES, key: str = "toy") -> None:
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{key} = {module}:FAMILY\n")

    return install


def good(name: str = "toy", contract: int = CONTRACT) -> str:
    return FAMILY.format(name=name, contract=contract)


def test_the_first_party_families_are_installed() -> None:
    assert {"llama", "mistral", "qwen2", "qwen3"} <= set(discover.installed())
    assert {"llama", "qwen2", "qwen3"} <= set(discover.installed(discover.GGUF))


def test_every_entry_point_of_ours_loads() -> None:
    for group, load in (
        (discover.FAMILIES, discover.load),
        (discover.GGUF, discover.load_gguf),
    ):
        for name, point in discover.installed(group).items():
            if discover.package(point) == "edgeserve-llm":
                assert load(name).contract == CONTRACT


def test_a_plugin_is_found_and_loaded(package) -> None:
    package("toy-family", good())
    assert "toy" in discover.installed()
    assert discover.load("toy").name == "toy"


def test_listing_imports_no_plugin(package) -> None:
    package("explosive", "raise RuntimeError('imported')")
    assert "toy" in discover.installed()


def test_two_owners_are_an_error_that_names_both_packages(package) -> None:
    package("toy-one", good())
    package("toy-two", good())
    with pytest.raises(FamilyError, match="'toy' is claimed by toy-one and toy-two; uninstall"):
        discover.load("toy")
    assert "toy" not in discover.installed()


def test_one_package_found_twice_is_one_owner(package, tmp_path: Path, monkeypatch) -> None:
    package("toy-family", good())
    again = tmp_path / "again" / "toy_family.egg-info"
    again.mkdir(parents=True)
    (again / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Toy.Family\nVersion: 1.0\n")
    (again / "entry_points.txt").write_text("[edgeserve.families]\ntoy = toy_family:FAMILY\n")
    monkeypatch.syspath_prepend(again.parent)
    assert discover.load("toy").name == "toy"


def test_a_wrong_contract_is_refused_with_both_numbers(package) -> None:
    package("toy-old", good(contract=CONTRACT + 41))
    with pytest.raises(
        FamilyError, match=f"'toy-old' was made for family contract {CONTRACT + 41}, .*{CONTRACT}"
    ):
        discover.load("toy")


def test_an_unknown_model_type_lists_what_there_is() -> None:
    with pytest.raises(FamilyError, match=r"serves model type 'nope'; installed: .*llama.*qwen3"):
        discover.load("nope")
    with pytest.raises(FamilyError, match=r"serves GGUF architecture 'nope'; installed: .*llama"):
        discover.load_gguf("nope")


def test_a_plugin_that_fails_to_import_is_named(package) -> None:
    package("toy-broken", "import a_module_that_is_not_there")
    with pytest.raises(
        FamilyError, match=r"'toy-broken' does not load .*a_module_that_is_not_there"
    ):
        discover.load("toy")


def test_a_plugin_that_leaves_python_is_named(package) -> None:
    package("toy-leaving", "raise SystemExit(3)")
    with pytest.raises(FamilyError, match="'toy-leaving' does not load its family 'toy'"):
        discover.load("toy")


@pytest.mark.parametrize("part", ["spec", "tokenizer", "template", "sampler", "graph"])
def test_a_plugin_that_fails_on_a_checkpoint_is_named(package, part: str) -> None:
    package(f"toy-{part}", good() + f"\nFamily.{part} = lambda self, *given: 1 / 0\n")
    family = discover.load("toy")
    given = (None, None) if part == "graph" else (None,)
    with pytest.raises(FamilyError, match=f"'toy-{part}': '{part}' of family 'toy' .*ZeroDiv"):
        getattr(family, part)(*given)


@pytest.mark.parametrize(("part", "kind"), [("spec", "ModelSpec"), ("sampler", "Sampler")])
def test_a_part_of_another_type_is_named(package, part: str, kind: str) -> None:
    package(f"toy-empty-{part}", good())
    with pytest.raises(
        FamilyError, match=f"'{part}' of family 'toy' returns a NoneType, not a {kind}"
    ):
        getattr(discover.load("toy"), part)(None)


def test_a_refusal_of_a_family_passes_as_it_is(package) -> None:
    package(
        "toy-strict",
        good()
        + "\nfrom edgeserve.errors import CheckpointError\n"
        + "def refuse(self, *given):\n    raise CheckpointError('too odd')\n"
        + "Family.spec = refuse\n",
    )
    with pytest.raises(CheckpointError, match=r"^too odd$"):
        discover.load("toy").spec(None)


def test_an_object_that_is_not_a_family_is_refused(package) -> None:
    package("toy-number", f"class F:\n    contract = {CONTRACT}\nFAMILY = F()")
    with pytest.raises(FamilyError, match=r"'toy_number:FAMILY' .*'toy-number' is not a family"):
        discover.load("toy")


def test_a_gguf_owner_without_a_mapping_is_refused(package) -> None:
    package("toy-family", good(), group=discover.GGUF)
    with pytest.raises(FamilyError, match="'toy' registers GGUF architecture 'toy' but has no"):
        discover.load_gguf("toy")


def test_loading_a_family_imports_no_framework() -> None:
    code = (
        "import sys; from edgeserve.family import discover; discover.load('llama');"
        "print([m for m in ('torch', 'transformers', 'tensorrt', 'tokenizers', 'jinja2')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
