from __future__ import annotations

import io
import logging

import pytest

from edgeserve import log
from edgeserve.cli.progress import Bars, Lines, reporter


def test_without_a_terminal_a_stage_is_two_lines() -> None:
    stream = io.StringIO()
    with reporter(stream) as progress:
        assert isinstance(progress, Lines)
        for done in (0, 1024, 2048, 2048):
            progress("downloading x", done, 2048)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "downloading x (2 KiB)"
    assert lines[1].startswith("downloading x: done in ")
    assert len(lines) == 2


def test_a_stage_of_unknown_length_is_one_line() -> None:
    stream = io.StringIO()
    with reporter(stream) as progress:
        progress("loading", 0, 0)
        progress("loading", 0, 0)
    assert stream.getvalue() == "loading\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_line_does_not_stand_between_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for name in ("edgeserve", "uvicorn.error"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", logger.propagate)
        monkeypatch.setattr(logger, "level", logger.level)
    log.configure("info")
    with reporter() as progress:
        progress("packing", 0, 100)
        log.Log("front").info("worker_ready")
        assert "event=worker_ready" in terminal.getvalue()
        assert "packing" in terminal.getvalue().partition("time=")[2], "drawn again below the line"


def test_a_terminal_gets_bars() -> None:
    stream = Terminal()
    with reporter(stream) as progress:
        assert isinstance(progress, Bars)
        progress("packing", 0, 100)
        progress("packing", 100, 100)
    assert "packing" in stream.getvalue()


def test_after_the_end_nothing_is_said() -> None:
    stream = io.StringIO()
    with reporter(stream) as progress:
        progress.close()
        progress("loading again", 0, 10)
    assert stream.getvalue() == ""


def test_nothing_to_report_prints_nothing() -> None:
    stream = io.StringIO()
    with reporter(stream):
        pass
    assert stream.getvalue() == ""
