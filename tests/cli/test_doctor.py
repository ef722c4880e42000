from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeserve.cli import main
from edgeserve.cli.checkup import cache, families
from edgeserve.cli.doctor import Finding, _guarded


def test_this_machine_can_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json", "--cache-dir", str(tmp_path)])
    findings = [Finding(**row) for row in json.loads(capsys.readouterr().out)]
    assert [finding for finding in findings if finding.mark == "FAIL"] == []
    assert code == 0
    topics = {finding.topic for finding in findings}
    assert {"edgeserve", "cpu", "native", "memory", "cache", "family llama"} <= topics


def test_an_unusable_cache_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    assert main(["doctor", "--cache-dir", str(file)]) == 1
    said = capsys.readouterr()
    assert "FAIL  cache" in said.out
    assert said.err == "unusable: cache\n"


def test_a_check_that_breaks_is_a_finding() -> None:
    def broken() -> list[Finding]:
        raise OSError(5, "Input/output error", "/proc/cpuinfo")

    found = list(_guarded("cpu", broken))  # type: ignore[arg-type]
    assert found == [Finding("FAIL", "cpu", "Input/output error (/proc/cpuinfo)")]


def test_families_are_listed_with_their_package() -> None:
    found = {finding.topic: finding.text for finding in families()}
    assert found["family qwen2"] == "edgeserve_families.qwen2:FAMILY of edgeserve-llm"


def test_the_cache_check_leaves_nothing(tmp_path: Path) -> None:
    assert next(cache(tmp_path)).mark in ("ok", "note")
    assert list(tmp_path.iterdir()) == []
