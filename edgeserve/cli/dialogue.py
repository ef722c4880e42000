"""The conversation of `chat`: its messages, and what slash commands do to them. No terminal."""

from __future__ import annotations

from pathlib import Path

from edgeserve.errors import InvalidRequest

Message = dict[str, str]
MAX_FILE_BYTES = 1024**2


class Dialogue:
    """Messages so far. A question is added by `ask`, its answer by `answered`."""

    def __init__(self, system: str | None = None) -> None:
        self._system = system
        self._turns: list[Message] = []
        self._attached: list[str] = []

    @property
    def messages(self) -> list[Message]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        return [*system, *self._turns]

    def ask(self, text: str) -> None:
        content = "\n\n".join([*self._attached, text])
        self._attached.clear()
        self._turns.append({"role": "user", "content": content})

    def answered(self, text: str) -> None:
        self._turns.append({"role": "assistant", "content": text})

    def withdraw(self) -> None:
        """Take back a question that got no answer, so that roles keep alternating."""
        if self._turns and self._turns[-1]["role"] == "user":
            self._turns.pop()

    def again(self) -> bool:
        """Drop the last answer, so that its question can be answered again."""
        if not self._turns:
            return False
        if self._turns[-1]["role"] == "assistant":
            self._turns.pop()
        return True

    def clear(self) -> None:
        self._turns.clear()
        self._attached.clear()

    def attach(self, path: str) -> int:
        """Put a text file before the next question; its size in characters."""
        file = Path(path).expanduser()
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                raise InvalidRequest(f"{path} is larger than {MAX_FILE_BYTES} bytes")
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InvalidRequest(f"{path} is not UTF-8 text") from None
        self._attached.append(f"{file.name}:\n```\n{text}\n```")
        return len(text)
