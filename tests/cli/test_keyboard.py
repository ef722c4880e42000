from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from edgeserve.cli.keyboard import Keyboard

ENTER, ALT_ENTER, CTRL_C, CTRL_D, UP = "\r", "\x1b\r", "\x03", "\x04", "\x1b[A"


@pytest.fixture
def pipe() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def keyboard(pipe: PipeInput, folder: Path) -> Keyboard:
    return Keyboard(folder / "cache" / "history", source=pipe, screen=DummyOutput())


def test_enter_sends_and_alt_enter_starts_a_new_line(pipe: PipeInput, tmp_path: Path) -> None:
    pipe.send_text(f"one{ALT_ENTER}two{ENTER}")
    assert keyboard(pipe, tmp_path).read() == "one\ntwo"


def test_control_c_abandons_a_line_and_control_d_leaves(pipe: PipeInput, tmp_path: Path) -> None:
    keys = keyboard(pipe, tmp_path)
    pipe.send_text(f"half{CTRL_C}")
    assert keys.read() == ""
    pipe.send_text(CTRL_D)
    assert keys.read() is None


def test_history_is_there_in_the_next_session(pipe: PipeInput, tmp_path: Path) -> None:
    pipe.send_text(f"earlier{ENTER}")
    keyboard(pipe, tmp_path).read()
    pipe.send_text(f"{UP}{ENTER}")
    assert keyboard(pipe, tmp_path).read() == "earlier"
