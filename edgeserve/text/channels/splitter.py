"""Reads an answer whose calls and reasoning stand in its text, between tags.

Reasoning opens where no content stands before, and only its end tag ends it: a call inside it is
a thought, not a call. White space beside markup belongs to the markup; white space before content
belongs to the content.
"""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.delta import Content, Reasoning
from edgeserve.text.channels.reader import Reader, Wait, openers
from edgeserve.text.channels.think import Tags
from edgeserve.text.channels.wire import Format


class Splitter:
    def __init__(
        self,
        reader: Reader,
        calls: Calls,
        *,
        wire: Format | None,
        tags: Tags | None,
        inside: bool,
    ) -> None:
        self._r = reader
        self._c = calls
        self._wire = wire if calls.tools else None
        self._tags = tags
        self.inside = inside and tags is not None
        # Where nothing but white space stands since the start, the reasoning or a call.
        self._is_blank = True
        self._is_first = True  # no markup and no content yet: white space is content
        self._has_reasoned = False

    def read(self) -> Wait[None]:
        if self._tags and self.inside:
            yield from self._reason(self._tags)
        while (opener := (yield from self._content())) is not None:
            if self._tags and opener == self._tags.start:
                yield from self._reason(self._tags)
            elif self._tags and opener == self._tags.end:
                self._r.drop()
                self._has_reasoned = True  # one stray tag is the template's; more are content
            else:
                yield from self._block(opener)

    def _block(self, opener: str) -> Wait[None]:
        r, c = self._r, self._c
        assert self._wire
        before = c.count
        yield from self._wire.read(opener, r, c)
        self._is_first = False
        self._is_blank = c.count > before and r.at == r.held
        r.content()

    def _literals(self) -> tuple[str, ...]:
        literals = self._wire.openers if self._wire else ()
        if self._tags and self._is_blank:
            literals = (*literals, self._tags.start)
        if self._tags and not self._has_reasoned:
            literals = (*literals, self._tags.end)
        return literals

    def _content(self) -> Wait[str | None]:
        """Give out content up to an opener, which is read; None at the end. "": a starter."""
        r = self._r
        if self._is_blank:
            opener = yield from self._blank()
            if opener is not None or (r.ended and r.at == len(r.text)):
                return opener
            self._is_blank = self._is_first = False
        look = openers(self._literals())
        while True:
            if match := look.search(r.text, r.at):
                r.at = match.start()
                r.content()
                r.at = match.end()
                return match.group()
            r.at = look.may_start(r.text, r.at)
            r.content()
            if not (yield from r.flow(Content, look)):
                r.at = len(r.text)
                r.content()
                return None

    def _blank(self) -> Wait[str | None]:
        """White space, and the opener after it."""
        r = self._r
        yield from r.skip_space()
        opener = yield from r.starts(self._literals())
        if opener is not None:
            r.at += len(opener)  # the space stays held: it is content if the block is
            return opener
        char = yield from r.char()
        if char and self._wire and char in self._wire.starters:
            return ""
        if not char and not self._is_first:
            r.drop()
        r.content()
        return None

    def _reason(self, tags: Tags) -> Wait[None]:
        r = self._r
        self.inside = True
        yield from r.skip_space()
        if (yield from r.starts((tags.start,))):
            r.at += len(tags.start)
            yield from r.skip_space()
        r.drop()
        look = openers((tags.end,))
        while True:
            found = r.text.find(tags.end, r.at)
            stop = found if found >= 0 else look.may_start(r.text, r.at)
            r.at = r.held + len(r.text[r.held : stop].rstrip())
            r.reasoning()
            r.at = stop
            if found >= 0:
                break
            if not (yield from r.flow(Reasoning, look)):
                r.at = len(r.text)
                r.reasoning()
                return
        r.at = found + len(tags.end)
        self.inside = False
        yield from r.skip_space()
        r.drop()
        self._has_reasoned = self._is_blank = True
        self._is_first = False
