"""The text of one choice, read front to back by a parser that pauses when the text runs out.

A parser is a generator: it `yield`s to wait for more text and returns when it is done. Every
question it asks here (`char`, `starts`, `until`, ...) waits until the answer no longer depends on
text to come; that is why the way the text is cut never changes the result.

Two positions: `at`, where reading is, and `held`, from where on nothing was given out. What lies
between is undecided; `content`, `reasoning` and `drop` decide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator
from functools import lru_cache
from typing import Protocol, TypeVar

from edgeserve.text.channels.delta import Content, Delta, Reasoning, joined
from edgeserve.text.channels.json_text import JsonScanner

T = TypeVar("T")
Wait = Generator[None, None, T]  # yields to wait for text, returns the answer

SPACE = re.compile(r"\s*")


class Scanner(Protocol):
    """Follows one value, of any size, through text that comes in pieces."""

    done: bool
    broken: bool

    def feed(self, text: str, at: int) -> int:
        """Read on from `at`; where reading stopped."""
        ...


class Openers:
    """Literals to look for, and which ends of a text may be the start of one."""

    def __init__(self, literals: tuple[str, ...]) -> None:
        self.literals = literals
        self.search = re.compile("|".join(re.escape(one) for one in literals) or r"(?!)").search
        firsts = "".join(sorted({re.escape(one[0]) for one in literals}))
        self.first = re.compile(f"[{firsts}]" if firsts else r"(?!)").search
        self._longest = max((len(one) for one in literals), default=1)

    def may_start(self, text: str, at: int) -> int:
        """Where the first live prefix of a literal begins that the end of the text cuts."""
        start = max(at, len(text) - self._longest + 1)
        while match := self.first(text, start):
            start = match.start()
            tail = text[start:]
            if any(one.startswith(tail) for one in self.literals):
                return start
            start += 1
        return len(text)


@lru_cache(maxsize=256)
def openers(literals: tuple[str, ...]) -> Openers:
    return Openers(literals)


class Reader:
    """Owned by one choice; one thread."""

    def __init__(self) -> None:
        self.text = ""
        self.held = 0
        self.at = 0
        self.ended = False
        self.truncated = False  # ended by a limit, not by the model
        self.released = False  # what is read is content, given out as soon as it is read
        self._deltas: list[Delta] = []
        # While text flows (nothing held, no state to change but by one of these characters), a
        # piece passes without waking the parser.
        self._flow: type[Content] | type[Reasoning] | None = None
        self._stop: Callable[[str], object] = lambda _: True

    def flows(self, text: str) -> Delta | None:
        """The text as a delta, when nothing in it could matter to the parser."""
        flow = self._flow
        if flow is None or self._stop(text) or (flow is Reasoning and text[-1:].isspace()):
            return None
        return flow(text)

    def feed(self, text: str) -> None:
        self._flow = None
        self.text = self.text[self.held :] + text
        self.at -= self.held
        self.held = 0

    def take(self) -> list[Delta]:
        deltas, self._deltas = self._deltas, []
        return deltas

    def give(self, delta: Delta) -> None:
        if self._deltas and (both := joined(self._deltas[-1], delta)):
            self._deltas[-1] = both
        else:
            self._deltas.append(delta)

    def content(self) -> None:
        """Give out what was read as content."""
        if self.at > self.held:
            self.give(Content(self.text[self.held : self.at]))
            self.held = self.at

    def reasoning(self) -> None:
        if self.at > self.held:
            self.give(Reasoning(self.text[self.held : self.at]))
            self.held = self.at

    def drop(self) -> None:
        """Give out nothing of what was read: it was markup."""
        self.held = self.at

    def flow(self, kind: type[Content] | type[Reasoning], stop: Openers) -> Wait[bool]:
        """Wait for text, letting all pass as `kind` that holds no first character of `stop`."""
        if self.held == self.at == len(self.text):
            self._flow, self._stop = kind, stop.first
        return (yield from self.more())

    def more(self) -> Wait[bool]:
        """Wait for text; False when the text has ended."""
        if self.released:
            self.content()
        if self.ended:
            return False
        yield
        return True

    def char(self) -> Wait[str]:
        """The character here, not read yet; empty at the end."""
        while self.at >= len(self.text):
            if not (yield from self.more()):
                return ""
        return self.text[self.at]

    def skip_space(self) -> Wait[None]:
        while True:
            match = SPACE.match(self.text, self.at)
            assert match
            self.at = match.end()
            if self.at < len(self.text) or not (yield from self.more()):
                return

    def starts(self, literals: tuple[str, ...]) -> Wait[str | None]:
        """Which of the literals stands here, not read yet."""
        while True:
            live = False
            for one in literals:
                if self.text.startswith(one, self.at):
                    return one
                live = live or one.startswith(self.text[self.at : self.at + len(one)])
            if not live or not (yield from self.more()):
                return None

    def expect(self, literal: str) -> Wait[bool]:
        """Read space and the literal; False, and nothing read, when something else stands here."""
        back = self.at - self.held
        yield from self.skip_space()
        if (yield from self.starts((literal,))) is None:
            if not self.released:
                self.at = self.held + back
            return False
        self.at += len(literal)
        return True

    def until(self, literals: tuple[str, ...]) -> Wait[str | None]:
        """Read up to the first of the literals, which is not read; None, and all read, at the
        end."""
        look = openers(literals)
        while True:
            if match := look.search(self.text, self.at):
                self.at = match.start()
                return match.group()
            self.at = look.may_start(self.text, self.at)
            if not (yield from self.more()):
                self.at = len(self.text)
                return None

    def word(self, allowed: Collection[str], end: str, strip: str = " \t\r\n") -> Wait[str | None]:
        """Read one of the allowed words and the `end` after it. None, and nothing read, as soon
        as what stands here can be none of them."""
        while True:
            stop = self.text.find(end, self.at)
            if stop >= 0:
                found = self.text[self.at : stop].strip(strip)
                if found not in allowed:
                    return None
                self.at = stop + len(end)
                return found
            part = self.text[self.at :].lstrip(strip)
            if not _may_become(part, allowed, end, strip) or not (yield from self.more()):
                return None

    def scan(self, scanner: Scanner) -> Wait[bool]:
        """Read one value; whether it is whole and sound."""
        while True:
            self.at = scanner.feed(self.text, self.at)
            if scanner.done or scanner.broken:
                return scanner.done
            if not (yield from self.more()):
                return False

    def copy(self, scanner: JsonScanner, sink: Callable[[str], None]) -> Wait[bool]:
        """Read one value, giving its text to `sink` as it comes; whether it is whole and sound.
        A value that the end of the text cuts is given out as far as it goes."""
        while True:
            self.at = scanner.feed(self.text, self.at)
            if text := scanner.take():
                sink(text)
            self.held = self.at - scanner.pending
            if scanner.done or scanner.broken:
                return scanner.done
            if not (yield from self.more()):
                if self.at > self.held:
                    sink(self.text[self.held : self.at])
                self.drop()
                return False


def _may_become(part: str, allowed: Collection[str], end: str, strip: str) -> bool:
    """Whether `part` begins one of the allowed words followed by `end`."""
    for one in allowed:
        if one.startswith(part):
            return True
        if part.startswith(one):
            rest = part[len(one) :].lstrip(strip)
            if end.startswith(rest):
                return True
    return False
