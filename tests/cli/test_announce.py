from __future__ import annotations

import json
import shlex

import pytest

from edgeserve.cli.announce import announce, example


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("model", ["smollm2", 'it\'s "odd" $HOME', "ünïcode"])
def test_the_example_can_be_pasted_into_a_shell(chat: bool, model: str) -> None:
    words = shlex.split(example("http://127.0.0.1:8000", model=model, chat=chat, key=False))
    assert words[0] == "curl"
    assert words[1].startswith("http://127.0.0.1:8000/v1/")
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == model
    assert ("messages" in body) is chat


def test_a_key_is_named_but_not_shown() -> None:
    assert "$EDGESERVE_API_KEY" in example("http://x", model="m", chat=True, key=True)


def test_the_address_stands_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    announce("http://127.0.0.1:8000", model="m")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0] == "Serving m at http://127.0.0.1:8000"
