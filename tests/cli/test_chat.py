"""The chat loop with a scripted keyboard and a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edgeserve.cli import main
from edgeserve.cli.chat import ChatLoop
from edgeserve.cli.dialogue import Dialogue
from edgeserve.errors import PromptTooLong
from edgeserve.sampling import SamplingParams


@dataclass
class Delta:
    text: str


@dataclass
class Metrics:
    prompt_tokens: int = 12
    completion_tokens: int = 8
    tokens_per_second: float = 40.0
    time_to_first_token_s: float = 0.25
    total_s: float = 0.45


class Stream:
    """Yields its pieces, then raises what it is told to raise."""

    def __init__(self, pieces: list[str], error: BaseException | None) -> None:
        self._pieces = pieces
        self._error = error
        self.closed = False

    def __iter__(self) -> Iterator[Delta]:
        yield from map(Delta, self._pieces)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self.closed = True


@dataclass
class ScriptedModel:
    answers: list[Stream]
    asked: list[list[dict[str, str]]] = field(default_factory=list)
    name: str = "scripted"
    context: int = 100

    def generate_stream(
        self,
        messages: Any,
        params: SamplingParams,
        *,
        apply_chat_template: bool,
        on_metrics: Callable[[Any], None],
    ) -> Stream:
        del params
        assert apply_chat_template
        self.asked.append(list(messages))
        stream = self.answers.pop(0)
        if stream._error is None:
            on_metrics(Metrics())
        return stream


class Lines:
    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    def read(self) -> str | None:
        return self._lines.pop(0) if self._lines else None


def chat(lines: list[str], *answers: Stream) -> ScriptedModel:
    model = ScriptedModel(list(answers))
    loop = ChatLoop(model, SamplingParams(), Dialogue(), Lines(*lines))  # type: ignore[arg-type]
    loop.run()
    return model


def answer(*pieces: str, error: BaseException | None = None) -> Stream:
    return Stream(list(pieces), error)


def test_an_answer_is_printed_with_speed_latency_and_context(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = answer("Tok", "yo.")
    chat(["Capital of Japan?"], stream)
    said = capsys.readouterr().out
    assert "Tokyo.\n" in said
    assert "40.0 tokens/s" in said
    assert "first token after 0.25 s" in said
    assert "context 20 of 100 (20%)" in said
    assert stream.closed


def test_the_first_line_names_the_model_as_serve_does(capsys: pytest.CaptureFixture[str]) -> None:
    chat([])
    assert capsys.readouterr().out == "scripted; /help lists the commands\n"


def test_the_conversation_goes_on_with_what_was_said() -> None:
    model = chat(["one", "two"], answer("first"), answer("second"))
    assert [message["content"] for message in model.asked[1]] == ["one", "first", "two"]


def test_regen_asks_the_same_again() -> None:
    model = chat(["one", "/regen"], answer("first"), answer("second"))
    assert model.asked[0] == model.asked[1]


def test_clear_forgets() -> None:
    model = chat(["one", "/clear", "two"], answer("first"), answer("second"))
    assert [message["content"] for message in model.asked[1]] == ["two"]


def test_an_interrupted_answer_is_kept_as_far_as_it_came() -> None:
    model = chat(["one", "two"], answer("begin", error=KeyboardInterrupt()), answer("second"))
    assert [message["content"] for message in model.asked[1]] == ["one", "begin", "two"]


def test_a_refused_question_is_explained_and_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    model = chat(["one", "two"], answer(error=PromptTooLong(200, 100)), answer("second"))
    assert "200 tokens" in capsys.readouterr().out
    assert [message["content"] for message in model.asked[1]] == ["two"]


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("/help", "/regen"),
        ("/regen", "no question yet"),
        ("/file /no/such/file", "No such file"),
        ("/file 'unclosed", "No closing quotation"),
        ("/fly", "unknown command /fly"),
    ],
)
def test_commands_answer(line: str, reply: str, capsys: pytest.CaptureFixture[str]) -> None:
    chat([line])
    assert reply in capsys.readouterr().out


def test_file_puts_its_text_before_the_question(tmp_path: Path) -> None:
    file = tmp_path / "a file.txt"
    file.write_text("rivers")
    model = chat([f"/file '{file}'", "Sum up"], answer("ok"))
    assert "rivers" in model.asked[0][0]["content"]


def test_exit_leaves_without_reading_on() -> None:
    assert chat(["/exit", "never asked"]).asked == []


def test_chat_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat"]) == 2
    assert "edgeserve run" in capsys.readouterr().err
