"""Whether a part of a grammar may become one lexeme: its longest match is its only match.

`Follow` holds the first characters of each rule and those that may come behind it. `is_lexeme`
walks the automaton of a part (Glushkov): where a match may end, no character that would carry it
on may also come behind it. Both lean to "no", which costs speed and never truth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from edgeserve.text.guide.ebnf import Chars, Choice, Literal, Name, Node, Repeat, Series, merge

NONE = Chars(())
POSITIONS = 400  # a part with more characters and classes is left alone
LEXEMES = 120  # of one grammar
PASSES = 30  # over all rules, until nothing changes
STATES = 300  # the same, by states of its automaton


class Follow:
    """First and following characters over all rules, by fixed point. Raises OverflowError when
    that takes long.

    `order`: the rules, callers before what they call as far as that goes."""

    def __init__(self, rules: Mapping[str, Node], order: Sequence[str]) -> None:
        self._rules = rules
        self._empty: dict[str, bool] = dict.fromkeys(rules, False)
        self._first: dict[str, Chars] = dict.fromkeys(rules, NONE)
        self._after: dict[str, Chars] = dict.fromkeys(rules, NONE)
        self._changed = True
        self._repeat(self._find_first, list(reversed(order)))
        self._repeat(self._find_after, order)

    def _repeat(self, work: Callable[[str], None], order: Sequence[str]) -> None:
        for _ in range(PASSES):
            self._changed = False
            for name in order:
                work(name)
            if not self._changed:
                return
        raise OverflowError

    def _find_first(self, name: str) -> None:
        empty, first = self.is_empty(self._rules[name]), self.first(self._rules[name])
        if (empty, first) != (self._empty[name], self._first[name]):
            self._empty[name], self._first[name], self._changed = empty, first, True

    def _find_after(self, name: str) -> None:
        self._spread(self._rules[name], self._after[name])

    def of_rule(self, name: str) -> Chars:
        return self._after[name]

    def is_empty(self, node: Node) -> bool:
        """Whether it matches nothing at all."""
        if isinstance(node, Name):
            return self._empty[node.name]
        if isinstance(node, Literal):
            return not node.text
        if isinstance(node, Repeat):
            return node.least == 0 or self.is_empty(node.item)
        if isinstance(node, Series):
            return all(map(self.is_empty, node.items))
        return isinstance(node, Choice) and any(map(self.is_empty, node.items))

    def first(self, node: Node) -> Chars:
        if isinstance(node, Name):
            return self._first[node.name]
        if isinstance(node, Literal):
            return Chars(((ord(node.text[0]),) * 2,)) if node.text else NONE
        if isinstance(node, Repeat):
            return self.first(node.item)
        if isinstance(node, Choice):
            return self.join(*map(self.first, node.items))
        if isinstance(node, Series):
            found = NONE
            for item in node.items:
                found = self.join(found, self.first(item))
                if not self.is_empty(item):
                    break
            return found
        return node

    def before(self, node: Node, after: Chars | None) -> Chars:
        """What may come behind something that stands before `node`."""
        return self.join(self.first(node), after) if self.is_empty(node) else self.first(node)

    @staticmethod
    def join(*sets: Chars | None) -> Chars:
        return Chars(merge([pair for chars in sets if chars for pair in chars.ranges]))

    def expand(self, node: Node, room: int = POSITIONS) -> Node | None:
        """The node with its rules written out; None when it is too large. No recursion in it."""
        if room <= 0:
            return None
        if isinstance(node, Name):
            return self.expand(self._rules[node.name], room - 1)
        if isinstance(node, Repeat):
            item = self.expand(node.item, room - 1)
            return None if item is None else Repeat(item, node.least, node.most)
        if isinstance(node, (Series, Choice)):
            items: list[Node] = []
            for part in node.items:
                found = self.expand(part, room - len(node.items))
                if found is None:
                    return None
                items.append(found)
            return type(node)(tuple(items))
        return node

    def _spread(self, node: Node, after: Chars) -> None:
        """Tell each rule named in `node` what may come behind it there."""
        if isinstance(node, Name):
            joined = self.join(self._after[node.name], after)
            if joined != self._after[node.name]:
                self._after[node.name], self._changed = joined, True
        elif isinstance(node, Repeat):
            self._spread(node.item, self.join(after, self.first(node.item)))
        elif isinstance(node, Choice):
            for item in node.items:
                self._spread(item, after)
        elif isinstance(node, Series):
            for item in reversed(node.items):
                self._spread(item, after)
                after = self.before(item, after)


def is_lexeme(node: Node, after: Chars | None) -> bool:
    positions = _Positions()
    try:
        empty, begin, last = positions.add(node)
    except OverflowError:
        return False
    if empty or not last:
        return False
    return not _can_go_on(positions, begin, last, after or NONE)


def _can_go_on(positions: _Positions, begin: set[int], last: set[int], after: Chars) -> bool:
    """Whether a whole match can be carried on by a character of `after`. Walks the states of the
    part's automaton: sets of positions that one text leads to."""
    atoms = _atoms(positions.chars)
    takes = [{i for i, c in enumerate(positions.chars) if _overlap(c, atom)} for atom in atoms]
    follows = [_overlap(atom, after) for atom in atoms]
    seen: set[frozenset[int]] = set()
    todo = [(frozenset(begin), False)]
    while todo:
        ready, is_match = todo.pop()  # ready: positions that may take the next character
        for taken, follow in zip(takes, follows, strict=True):
            state = ready & taken
            if state and is_match and follow:
                return True
            if state and state not in seen:
                seen.add(state)
                if len(seen) > STATES:
                    return True
                ready_next = frozenset[int]().union(*(positions.next[p] for p in state))
                todo.append((ready_next, not last.isdisjoint(state)))
    return False


class Lexeme(NamedTuple):
    """A part that is written as one lexeme, and the characters that may come behind it."""

    node: Node  # without names
    after: Chars


def takers(lexemes: Iterable[Lexeme]) -> set[Node]:
    """Those that take away a match of another: where that one is whole and may be followed by a
    character, they began with it too and go on with that character. The lexer would keep only
    them. Raises OverflowError when finding out takes long."""
    kept = list(dict.fromkeys(lexemes))
    if len(kept) > LEXEMES:
        raise OverflowError
    parts = [(_Part(lexeme.node), lexeme) for lexeme in kept]
    return {
        mine.node
        for one, mine in parts
        if one.is_long
        if any(one is not other and one.takes_from(other, its.after) for other, its in parts)
    }


class _Part:
    """The automaton of a lexeme."""

    def __init__(self, node: Node) -> None:
        self._positions = _Positions()
        _, self._begin, self._last = self._positions.add(node)
        self.is_long = any(self._positions.next)
        self._first = Follow.join(*(self._positions.chars[p] for p in self._begin))

    def takes_from(self, other: _Part, after: Chars) -> bool:
        if not _overlap(self._first, other._first):
            return False
        atoms = _atoms(self._positions.chars + other._positions.chars)
        seen = set()
        todo = [(frozenset(self._begin), frozenset(other._begin))]
        while todo:
            mine, theirs = todo.pop()
            for atom in atoms:
                one, two = self._take(mine, atom), other._take(theirs, atom)
                if not one or not two or (one, two) in seen:
                    continue
                seen.add((one, two))
                ready = self._next(one)
                goes_on = any(_overlap(self._positions.chars[p], after) for p in ready)
                if len(seen) > STATES or (goes_on and not other._last.isdisjoint(two)):
                    return True
                todo.append((ready, other._next(two)))
        return False

    def _take(self, ready: frozenset[int], atom: Chars) -> frozenset[int]:
        return frozenset(p for p in ready if _overlap(self._positions.chars[p], atom))

    def _next(self, state: frozenset[int]) -> frozenset[int]:
        return frozenset[int]().union(*(self._positions.next[p] for p in state))


def _atoms(chars: list[Chars]) -> list[Chars]:
    """Ranges that no class divides and that together cover all classes."""
    cuts = sorted({cut for c in chars for low, high in c.ranges for cut in (low, high + 1)})
    atoms = [Chars(((low, high - 1),)) for low, high in itertools.pairwise(cuts)]
    return [atom for atom in atoms if any(_overlap(atom, c) for c in chars)]


def _overlap(one: Chars, other: Chars) -> bool:
    return any(a <= d and c <= b for a, b in one.ranges for c, d in other.ranges)


class _Positions:
    """Each character or class of a part, and which may come next in a match."""

    def __init__(self) -> None:
        self.chars: list[Chars] = []
        self.next: list[set[int]] = []

    def add(self, node: Node) -> tuple[bool, set[int], set[int]]:
        """Whether it may be empty, where it begins, where it ends."""
        if isinstance(node, Literal):
            return self._series([Chars(((ord(c),) * 2,)) for c in node.text])
        if isinstance(node, Chars):
            return self._one(node)
        if isinstance(node, Series):
            return self._series(list(node.items))
        if isinstance(node, Choice):
            parts = [self.add(item) for item in node.items]
            return (
                any(empty for empty, _, _ in parts),
                set().union(*(first for _, first, _ in parts)),
                set().union(*(last for _, _, last in parts)),
            )
        assert isinstance(node, Repeat), "rules are written out before"
        empty, first, last = self.add(node.item)
        if node.most != 1:
            self._link(last, first)
        return empty or node.least == 0, first, last

    def _one(self, chars: Chars) -> tuple[bool, set[int], set[int]]:
        if len(self.chars) >= POSITIONS:
            raise OverflowError
        self.chars.append(chars)
        self.next.append(set())
        place = {len(self.chars) - 1}
        return False, place, set(place)

    def _series(self, items: list[Node]) -> tuple[bool, set[int], set[int]]:
        empty, first, last = True, set[int](), set[int]()
        for item in items:
            empty_, first_, last_ = self.add(item)
            self._link(last, first_)
            first |= first_ if empty else set()
            last = last | last_ if empty_ else last_
            empty = empty and empty_
        return empty, first, last

    def _link(self, last: set[int], first: set[int]) -> None:
        for p in last:
            self.next[p] |= first
