from __future__ import annotations

from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from edgeserve.cli import main
from tests.command import edgeserve


@pytest.mark.works("`edgeserve build` makes a bundle folder that is served like a checkpoint")
def test_a_bundle_is_a_model_of_its_own(
    default_model: Resolved, model_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    source, cache = str(default_model.path), ["--cache-dir", str(model_cache)]
    assert main(["build", source, "--output", str(bundle), *cache]) == 0
    assert capsys.readouterr().out.strip() == str(bundle)
    greedy = ("--temperature", "0", "--max-tokens", "12")
    question = "What is the capital of Japan?"
    done = edgeserve("run", question, "--model", str(bundle), *greedy, cache=tmp_path / "empty")
    assert "Tokyo" in done.stdout, done.stderr


def test_an_output_that_exists_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "--output", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
