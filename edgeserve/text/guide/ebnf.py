"""GBNF, the EBNF of llama.cpp and XGrammar, read into a tree. The entry rule is `root`.

    root ::= "[" item ("," item)* "]"   # comment
    item ::= [a-z0-9]+ | "\\"" [^"\\n]{1,20} "\\""

Errors name the line. Nothing here recurses deeper than `DEPTH`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEPTH = 64  # of nested groups
MOST = 100_000  # repetitions that a bound may name
RULES = 1_000
LAST = 0x10FFFF


class BadGrammar(ValueError):
    """What is wrong with the text of a grammar, and where."""


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of these ranges: sorted, disjoint, both ends included."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Series:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Node, ...]


Node = Literal | Chars | Name | Repeat | Series | Choice

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_INLINE_SPACE = re.compile(r"[ \t]*(?:#[^\n]*)?")
_HEAD = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*::=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "f": "\f", "v": "\v", "b": "\b", "a": "\a"}
_HEX = {"x": 2, "u": 4, "U": 8}


def read_ebnf(text: str) -> dict[str, Node]:
    """The rules by name. Raises BadGrammar."""
    rules = _Reader(text).rules()
    if "root" not in rules:
        raise BadGrammar("it has no rule 'root', where a grammar begins")
    for node in rules.values():
        for name in names_in(node):
            if name.name not in rules:
                raise BadGrammar(f"line {name.line}: rule '{name.name}' is not defined")
    return rules


def names_in(node: Node) -> list[Name]:
    if isinstance(node, Name):
        return [node]
    if isinstance(node, Repeat):
        return names_in(node.item)
    if isinstance(node, (Series, Choice)):
        return [name for item in node.items for name in names_in(item)]
    return []


def count(node: Node) -> int:
    """Nodes of a tree."""
    if isinstance(node, Repeat):
        return 1 + count(node.item)
    if isinstance(node, (Series, Choice)):
        return 1 + sum(map(count, node.items))
    return 1


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        self._skip(_SPACE)
        while self._at < len(self._text):
            head = _HEAD.match(self._text, self._at)
            if head is None:
                raise self._bad("a rule 'name ::= ...' is expected")
            if head.group(1) in rules:
                raise self._bad(f"rule '{head.group(1)}' is defined twice")
            if len(rules) >= RULES:
                raise self._bad(f"a grammar may have at most {RULES} rules")
            self._at = head.end()
            rules[head.group(1)] = self._choice()
            self._skip(_SPACE)
        return rules

    def _choice(self) -> Node:
        items = [self._series()]
        while self._peek() == "|":
            self._at += 1
            items.append(self._series())
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def _series(self) -> Node:
        items: list[Node] = []
        while True:
            self._skip(_SPACE)
            if self._peek() in ("", "|", ")") or _HEAD.match(self._text, self._at):
                break
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else Series(tuple(items))

    def _atom(self) -> Node:
        char = self._peek()
        if char == '"':
            return self._literal()
        if char == "[":
            return self._chars()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return Chars(((0, LAST),))
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise self._bad(f"{char!r} is not expected here")
        line = self._line()
        self._at = name.end()
        return Name(name.group(), line)

    def _group(self) -> Node:
        if self._text.startswith("(=", self._at):
            raise self._bad("look-ahead '(=' cannot be enforced")
        if self._depth >= DEPTH:
            raise self._bad(f"groups are nested more than {DEPTH} deep")
        self._depth += 1
        self._at += 1
        node = self._choice()
        if self._peek() != ")":
            raise self._bad("')' is missing")
        self._at += 1
        self._depth -= 1
        return node

    def _repeated(self, node: Node) -> Node:
        self._skip(_INLINE_SPACE)
        marks = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        while (char := self._peek()) and char in "*+?{":
            if char == "{":
                node = self._bounded(node)
            else:
                self._at += 1
                node = Repeat(node, *marks[char])
            self._skip(_INLINE_SPACE)
        return node

    def _bounded(self, node: Node) -> Node:
        found = _BOUNDS.match(self._text, self._at)
        if found is None or not (found.group(1) or found.group(3)):
            raise self._bad("a bound is written {n}, {n,}, {,m} or {n,m}")
        least = int(found.group(1) or 0) if len(found.group(1)) < 9 else MOST + 1
        most = int(found.group(3)) if found.group(3) and len(found.group(3)) < 9 else None
        if not found.group(2):
            most = least
        if max(least, most or 0) > MOST or len(found.group(3)) >= 9:
            raise self._bad(f"a bound may be at most {MOST}")
        if most is not None and most < least:
            raise self._bad("the upper bound is less than the lower")
        self._at = found.end()
        return Repeat(node, least, most)

    # Characters ------------------------------------------------------------------------------

    def _literal(self) -> Node:
        self._at += 1
        out: list[str] = []
        while self._peek() != '"':
            if self._peek() in ("", "\n"):
                raise self._bad("a closing quote is missing")
            out.append(self._character())
        self._at += 1
        return Literal("".join(out))

    def _chars(self) -> Node:
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            low = high = ord(self._member())
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = ord(self._member())
            if high < low:
                raise self._bad("a range of characters ends before it begins")
            ranges.append((low, high))
        self._at += 1
        found = merge(ranges)
        if negated:
            found = invert(found)
        if not found:
            raise self._bad("a class of no characters matches nothing")
        return Chars(found)

    def _member(self) -> str:
        if self._peek() in ("", "\n"):
            raise self._bad("']' is missing")
        return self._character()

    def _character(self) -> str:
        char = self._text[self._at]
        self._at += 1
        if char != "\\":
            return char
        kind = self._peek()
        self._at += 1
        if kind in _HEX:
            digits = self._text[self._at : self._at + _HEX[kind]]
            self._at += _HEX[kind]
            if len(digits) == _HEX[kind] and re.fullmatch("[0-9a-fA-F]+", digits):
                code = int(digits, 16)
                if code <= LAST and not 0xD800 <= code <= 0xDFFF:
                    return chr(code)
            raise self._bad(f"'\\{kind}{digits}' is no character")
        if not kind or (kind.isalnum() and kind not in _SIMPLE):
            raise self._bad(f"'\\{kind}' is not an escape")
        return _SIMPLE.get(kind, kind)

    # Places ----------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _bad(self, why: str) -> BadGrammar:
        return BadGrammar(f"line {self._line()}: {why}")


def merge(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted and disjoint."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def invert(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    out, start = [], 0
    for low, high in ranges:
        if low > start:
            out.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        out.append((start, LAST))
    return tuple(out)
