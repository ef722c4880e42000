"""Trees of `ebnf.py` as the grammar text that `llguidance` reads.

Its lexer takes the longest match of a lexeme, which would change a grammar cut into lexemes
freely. So a part becomes one lexeme (a regex; fast) only where the longest match is the only one:
in a grammar without recursion the whole of it, else a series whose match cannot go on with a
character that may also follow it, and that takes no match away from another lexeme. The rest is
written character by character (exact, slower).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from edgeserve.text.guide.ebnf import (
    BadGrammar,
    Chars,
    Choice,
    Literal,
    Name,
    Node,
    Repeat,
    Series,
    count,
    names_in,
)
from edgeserve.text.guide.lexeme import NONE, Follow, Lexeme, is_lexeme, takers

REGEX_CHARS = 60_000  # a grammar without recursion is written as one regex up to this size
TOTAL_CHARS = 1_000_000  # of all regexes of one grammar
NODES = 3_000  # a larger grammar is not looked at for lexemes
TRIES = 8  # sets of lexemes
RUN = 12  # items of a series that are tried together as one lexeme


def to_lark(rules: Mapping[str, Node]) -> str:
    """The grammar of `rules`, which start at `root`."""
    order = _order(rules)
    rules = {name: rules[name] for name in order}
    names = {name: "start" if name == "root" else f"r{i}" for i, name in enumerate(rules)}
    flat = _Flat(rules)
    if flat.fits("root"):
        return f"start: {_regex_literal(flat.regex(rules['root']))}\n"
    follow = _follow(rules, order)
    return _with_lexemes(rules, names, flat, follow) or _Writer(names, flat, None).rules(rules)


def _with_lexemes(
    rules: Mapping[str, Node], names: Mapping[str, str], flat: _Flat, follow: Follow | None
) -> str | None:
    """None when no set of lexemes was found that leave each other's matches alone."""
    banned: set[Node] = set()
    for _ in range(TRIES if follow else 0):
        writer = _Writer(names, flat, follow, banned)
        text = writer.rules(rules)
        try:
            found = takers(writer.lexemes)
        except OverflowError:
            return None
        if not found:
            return text
        banned |= found
    return None


def _order(rules: Mapping[str, Node]) -> list[str]:
    """The rules that `root` reaches, callers first as far as recursion lets them be."""
    done: list[str] = []
    seen = {"root"}
    stack = [("root", iter(names_in(rules["root"])))]
    while stack:
        name, calls = stack[-1]
        called = next((n.name for n in calls if n.name not in seen), None)
        if called is None:
            done.append(name)
            stack.pop()
        else:
            seen.add(called)
            stack.append((called, iter(names_in(rules[called]))))
    return done[::-1]


def _follow(rules: Mapping[str, Node], order: list[str]) -> Follow | None:
    """None for a grammar that would take long: it is written without lexemes."""
    if sum(map(count, rules.values())) > NODES:
        return None
    try:
        return Follow(rules, order)
    except OverflowError:
        return None


class _Flat:
    """The rules without recursion, and not too large, as regexes."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._texts: dict[str, str] = {}
        room = TOTAL_CHARS
        for name in reversed(list(rules)):  # what a rule calls comes first
            node = rules[name]
            if any(n.name not in self._texts for n in names_in(node)):
                continue  # recursion, or too large
            size = self._measure(node)
            if size <= min(REGEX_CHARS, room):
                self._texts[name] = self.regex(node)
                room -= size

    def fits(self, name: str) -> bool:
        return name in self._texts

    def can_flatten(self, node: Node) -> bool:
        return all(n.name in self._texts for n in names_in(node)) and (
            self._measure(node) <= REGEX_CHARS
        )

    def _measure(self, node: Node) -> int:
        if isinstance(node, Name):
            return len(self._texts[node.name]) + 4
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
        self,
        names: Mapping[str, str],
        flat: _Flat,
        follow: Follow | None,
        banned: Collection[Node] = (),
    ) -> None:
        self._banned = banned
        self._names = names
        self._flat = flat
        self._follow = follow

        self.lexemes: list[Lexeme] = []

    def rules(self, rules: Mapping[str, Node]) -> str:
        lines = []
        for name, node in rules.items():
            after = self._follow.of_rule(name) if self._follow else None
            lines.append(f"{self._names[name]}: {self._write(node, after)}\n")
        return "".join(lines)

    def _write(self, node: Node, after: Chars | None) -> str:
        """`after`: the characters that may come behind this node."""
        if isinstance(node, Name):
            return self._names[node.name]
        if isinstance(node, Literal):
            return self._literal(node, after)
        if isinstance(node, Chars):
            self._note(node, after)
            return _regex_literal(chars_regex(node))
        if (lexeme := self._lexeme(node, after)) is not None:
            return lexeme
        if isinstance(node, Choice):
            return "(" + " | ".join(self._write(item, after) for item in node.items) + ")"
        if isinstance(node, Repeat):
            inner = Follow.join(after, self._follow.first(node.item)) if self._follow else None
            return f"({self._write(node.item, inner)}){_bounds(node)}"
        return self._series(node, after)

    def _literal(self, node: Literal, after: Chars | None) -> str:
        if len(node.text) > 1 and (self._follow is None or node in self._banned):
            for char, then in zip(node.text, (*node.text[1:], ""), strict=True):
                behind = Chars(((ord(then),) * 2,)) if then else after
                self._note(Literal(char), behind)
            return "(" + " ".join(json.dumps(c, ensure_ascii=False) for c in node.text) + ")"
        self._note(node, after)
        return json.dumps(node.text, ensure_ascii=False)

    def _note(self, node: Node, after: Chars | None) -> None:
        if self._follow is not None and (not isinstance(node, Literal) or node.text):
            self.lexemes.append(Lexeme(node, after or NONE))

    def _lexeme(self, node: Node, after: Chars | None) -> str | None:
        if self._follow is None or not self._flat.can_flatten(node):
            return None
        expanded = self._follow.expand(node)
        if expanded is None or expanded in self._banned or not is_lexeme(expanded, after):
            return None
        self._note(expanded, after)
        return _regex_literal(self._flat.regex(node))

    def _series(self, node: Series, after: Chars | None) -> str:
        afters = [after]
        for item in reversed(node.items):
            afters.append(self._follow.before(item, afters[-1]) if self._follow else None)
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
