"""Trees of `ebnf.py` as the grammar text that `llguidance` reads.

Its lexer takes the longest match of a lexeme, which would change a grammar cut into lexemes
freely. So a part becomes one lexeme (a regex; fast) only where the longest match is the only one:
in a grammar without recursion the whole of it, else a series or rule whose match cannot go on with
a character that may also follow it. The rest is written character by character (exact, slower).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from edgeserve.text.guide.ebnf import (
    BadGrammar,
    Chars,
    Choice,
    Literal,
    Name,
    Node,
    Repeat,
    Series,
    names_in,
)
from edgeserve.text.guide.lexeme import Follow, is_lexeme

REGEX_CHARS = 60_000  # a grammar without recursion is written as one regex up to this size
RUN = 12  # items of a series that are tried together as one lexeme


def to_lark(rules: Mapping[str, Node]) -> str:
    """The grammar of `rules`, which start at `root`."""
    flat = _Flat(rules)
    recursive = {name for name in rules if flat.is_recursive(name)}
    names = {name: "start" if name == "root" else f"r{i}" for i, name in enumerate(rules)}
    if "root" not in recursive and flat.fits("root"):
        return f"start: {_regex_literal(flat.regex(rules['root']))}\n"
    follow = Follow(rules)
    writer = _Writer(rules, names, flat, follow)
    used = _reachable(rules)
    return "".join(f"{names[name]}: {writer.rule(name)}\n" for name in rules if name in used)


def _reachable(rules: Mapping[str, Node]) -> set[str]:
    seen, todo = set(), ["root"]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [n.name for n in names_in(rules[name])]
    return seen


class _Flat:
    """Parts without recursion as regexes."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._rules = rules
        self._calls = {name: {n.name for n in names_in(node)} for name, node in rules.items()}
        self._reach = {name: self._reached(name) for name in rules}
        self._sizes: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        todo = list(self._calls[name])
        while todo:
            other = todo.pop()
            if other not in seen:
                seen.add(other)
                todo += self._calls[other]
        return seen

    def is_recursive(self, name: str) -> bool:
        """Whether its tree of rules comes back to a rule."""
        return name in self._reach[name] or any(n in self._reach[n] for n in self._reach[name])

    def can_flatten(self, node: Node) -> bool:
        names = {n.name for n in names_in(node)}
        return all(not self.is_recursive(n) and self.fits(n) for n in names)

    def fits(self, name: str) -> bool:
        return self._size(name) <= REGEX_CHARS

    def _size(self, name: str) -> int:
        # Rules in an order that has what they call first; no recursion over long chains.
        stack = [name]
        while stack:
            current = stack[-1]
            missing = [n for n in self._calls[current] if n not in self._sizes]
            if missing:
                stack += missing
                continue
            stack.pop()
            if current not in self._sizes:
                self._sizes[current] = self._measure(self._rules[current])
                if self._sizes[current] <= REGEX_CHARS:
                    self._texts[current] = self.regex(self._rules[current])
        return self._sizes[name]

    def _measure(self, node: Node) -> int:
        if isinstance(node, Name):
            return min(self._sizes[node.name] + 4, REGEX_CHARS + 1)
        if isinstance(node, Repeat):
            return self._measure(node.item) + 16
        if isinstance(node, (Series, Choice)):
            return sum(map(self._measure, node.items)) + len(node.items) + 4
        return len(node.text) * 2 if isinstance(node, Literal) else 24 * len(node.ranges) + 2

    def regex(self, node: Node) -> str:
        if isinstance(node, Name):
            return f"(?:{self._texts[node.name]})"
        if isinstance(node, Repeat):
            return f"(?:{self.regex(node.item)}){_bounds(node)}"
        if isinstance(node, Series):
            return "".join(map(self._grouped, node.items))
        if isinstance(node, Choice):
            return "|".join(map(self.regex, node.items))
        if isinstance(node, Literal):
            return "".join(map(escape_regex, node.text))
        return chars_regex(node)

    def _grouped(self, node: Node) -> str:
        return f"(?:{self.regex(node)})" if isinstance(node, Choice) else self.regex(node)


class _Writer:
    def __init__(
        self, rules: Mapping[str, Node], names: Mapping[str, str], flat: _Flat, follow: Follow
    ) -> None:
        self._rules = rules
        self._names = names
        self._flat = flat
        self._follow = follow

    def rule(self, name: str) -> str:
        return self._write(self._rules[name], self._follow.of_rule(name))

    def _write(self, node: Node, after: Chars | None) -> str:
        """`after`: the characters that may come behind this node."""
        if isinstance(node, Name):
            return self._names[node.name]
        if isinstance(node, Literal):
            return json.dumps(node.text, ensure_ascii=False)
        if isinstance(node, Chars):
            return _regex_literal(chars_regex(node))
        if (lexeme := self._lexeme(node, after)) is not None:
            return lexeme
        if isinstance(node, Choice):
            return "(" + " | ".join(self._write(item, after) for item in node.items) + ")"
        if isinstance(node, Repeat):
            inner = self._follow.join(after, self._follow.first(node.item))
            return f"({self._write(node.item, inner)}){_bounds(node)}"
        return self._series(node, after)

    def _lexeme(self, node: Node, after: Chars | None) -> str | None:
        if not self._flat.can_flatten(node):
            return None
        expanded = self._follow.expand(node)
        if expanded is None or not is_lexeme(expanded, after):
            return None
        return _regex_literal(self._flat.regex(node))

    def _series(self, node: Series, after: Chars | None) -> str:
        afters = [after]
        for item in reversed(node.items):
            afters.append(self._follow.before(item, afters[-1]))
        afters.reverse()  # afters[i]: what may stand where item i begins
        parts = self._parts(node.items, afters)
        return "(" + " ".join(parts) + ")" if parts else '""'

    def _parts(self, items: tuple[Node, ...], afters: list[Chars | None]) -> list[str]:
        """The longest run that may be one lexeme, and what is before and behind it."""
        count = len(items)
        for size in range(count if count <= RUN else 1, 1, -1):
            for start in range(count - size + 1):
                stop = start + size
                lexeme = self._lexeme(Series(items[start:stop]), afters[stop])
                if lexeme is not None:
                    before = self._parts(items[:start], afters[: start + 1])
                    return before + [lexeme] + self._parts(items[stop:], afters[stop:])
        return [self._write(item, afters[i + 1]) for i, item in enumerate(items)]


def _bounds(node: Repeat) -> str:
    plain = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    most = "" if node.most is None else str(node.most)
    return plain.get((node.least, node.most)) or f"{{{node.least},{most}}}"


def escape_regex(char: str) -> str:
    if char.isalnum() and char.isascii():
        return char
    return f"\\x{{{ord(char):X}}}" if char.isascii() else char


def chars_regex(node: Chars) -> str:
    parts = []
    for low, high in node.ranges:
        parts.append(f"\\x{{{low:X}}}" + ("" if low == high else f"-\\x{{{high:X}}}"))
    return f"[{''.join(parts)}]"


def _regex_literal(regex: str) -> str:
    if not regex:
        return '""'
    if len(regex) > 2 * REGEX_CHARS:
        raise BadGrammar("it is too large")
    return f"/{regex}/"
