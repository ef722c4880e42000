from __future__ import annotations

from pathlib import Path

import pytest

from edgeserve.cli.dialogue import MAX_FILE_BYTES, Dialogue
from edgeserve.errors import InvalidRequest


def roles(dialogue: Dialogue) -> list[str]:
    return [message["role"] for message in dialogue.messages]


def test_turns_follow_the_system_message() -> None:
    dialogue = Dialogue("Be brief.")
    dialogue.ask("Hello")
    dialogue.answered("Hi")
    dialogue.ask("Bye")
    assert roles(dialogue) == ["system", "user", "assistant", "user"]


def test_regenerating_drops_the_last_answer_only() -> None:
    dialogue = Dialogue()
    assert not dialogue.again()
    dialogue.ask("Hello")
    dialogue.answered("Hi")
    assert dialogue.again()
    assert roles(dialogue) == ["user"]
    assert dialogue.again()
    assert roles(dialogue) == ["user"]


def test_a_question_without_an_answer_is_taken_back() -> None:
    dialogue = Dialogue()
    dialogue.ask("Hello")
    dialogue.withdraw()
    assert dialogue.messages == []


def test_clearing_keeps_the_system_message() -> None:
    dialogue = Dialogue("Be brief.")
    dialogue.ask("Hello")
    dialogue.clear()
    assert roles(dialogue) == ["system"]


def test_files_go_before_the_next_question_once(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("rivers")
    dialogue = Dialogue()
    assert dialogue.attach(str(file)) == 6
    dialogue.ask("Sum up")
    dialogue.ask("More")
    assert dialogue.messages[0]["content"] == "notes.txt:\n```\nrivers\n```\n\nSum up"
    assert dialogue.messages[1]["content"] == "More"


def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    dialogue = Dialogue()
    binary, large = tmp_path / "binary", tmp_path / "large"
    binary.write_bytes(b"\xff\xfe\x00")
    large.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    for path, reason in ((binary, "UTF-8"), (large, "larger"), (tmp_path / "none", "No such")):
        with pytest.raises(InvalidRequest, match=reason):
            dialogue.attach(str(path))
