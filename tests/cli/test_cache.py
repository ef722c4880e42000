from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from edgeserve.cli import main


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with two bundles, the older of which is damaged, and one download."""
    for name in ("old-1111", "new-2222"):
        folder = tmp_path / "bundles" / name
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(bytes(1000))
    download = tmp_path / "checkpoints" / "hub" / "models--org--name"
    download.mkdir(parents=True)
    (download / "file").write_bytes(bytes(10))
    return tmp_path


def names(cache: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    capsys.readouterr()
    assert main(["cache", "list", "--json", "--cache-dir", str(cache)]) == 0
    return {Path(row["path"]).name for row in json.loads(capsys.readouterr().out)}


def test_list_shows_bundles_and_downloads(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert names(cache, capsys) == {"old-1111", "new-2222", "models--org--name"}
    assert main(["cache", "list", "--cache-dir", str(cache)]) == 0
    said = capsys.readouterr().out
    assert "org/name" in said
    assert "3 in" in said


def test_clear_keeps_downloads_unless_asked(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "clear", "--cache-dir", str(cache)]) == 0
    assert "removed 2" in capsys.readouterr().out
    assert names(cache, capsys) == {"models--org--name"}
    assert main(["cache", "clear", "--downloads", "--cache-dir", str(cache)]) == 0
    assert names(cache, capsys) == set()


def test_prune_removes_until_the_rest_fits(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "prune", "--max-size", "1500", "--cache-dir", str(cache)]) == 0
    assert "removed 1" in capsys.readouterr().out
    assert len(names(cache, capsys) & {"old-1111", "new-2222"}) == 1


def test_an_empty_cache_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("list", "prune", "clear"):
        assert main(["cache", action, "--cache-dir", str(tmp_path / "none")]) == 0
    assert "removed 0" in capsys.readouterr().out


def test_models_tells_what_is_cached(
    default_model: Resolved, model_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del default_model
    assert main(["models", "--json", "--cache-dir", str(model_cache)]) == 0
    states = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states["smollm2-135m-instruct"] == "cached"


def test_pull_prints_where_the_model_lies(
    default_model: Resolved, model_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", "--offline", "--cache-dir", str(model_cache)]) == 0
    assert capsys.readouterr().out.strip() == str(default_model.path)
