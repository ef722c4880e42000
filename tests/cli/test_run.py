"""`edgeserve run` as a process: the answer on stdout and nothing else there."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from tests.command import edgeserve


@pytest.mark.works("`edgeserve run` answers one prompt on stdout, piped input included")
def test_the_answer_is_all_that_stands_on_stdout(
    default_model: Resolved, model_cache: Path
) -> None:
    del default_model
    greedy = ("--temperature", "0", "--max-tokens", "12")
    done = edgeserve("run", "What is the capital of Japan?", *greedy, cache=model_cache)
    assert done.returncode == 0, done.stderr
    assert "Tokyo" in done.stdout
    assert done.stdout.endswith("\n")
    piped = edgeserve("run", *greedy, cache=model_cache, piped="What is the capital of Japan?")
    assert piped.stdout == done.stdout


def test_the_same_seed_gives_the_same_answer(default_model: Resolved, model_cache: Path) -> None:
    del default_model
    flags = ("--seed", "7", "--max-tokens", "16")
    texts = {
        edgeserve("run", "Tell me a story.", *flags, cache=model_cache).stdout for _ in range(2)
    }
    assert len(texts) == 1
    assert texts != {""}


def test_no_prompt_is_wrong_usage(tmp_path: Path) -> None:
    done = edgeserve("run", cache=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no prompt" in done.stderr


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = edgeserve("run", "Hi", "--model", str(tmp_path / "gone.gguf"), cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "gone.gguf" in done.stderr
