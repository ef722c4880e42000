"""Random grammars: what the engine accepts is what a plain recursive matcher accepts."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest

from edgeserve.engine.guides import Guides
from edgeserve.errors import InvalidRequest
from edgeserve.text.guide.ebnf import Chars, Choice, Literal, Name, Node, Repeat, Series, read_ebnf
from edgeserve.text.guide.maker import GuideMaker
from edgeserve.text.guide.wish import Wish
from tests.text.guide.test_texts import accepts

TEXTS = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]


class Plain:
    """A matcher without cleverness: all ends of a node from a place in the text. Without left
    recursion: a rule call deeper than the text is long fails."""

    def __init__(self, rules: dict[str, Node], text: str) -> None:
        self._rules = rules
        self._text = text
        self.ends = cache(self._ends)

    def is_match(self) -> bool:
        return len(self._text) in self.ends(self._rules["root"], 0, 0)

    def _ends(self, node: Node, at: int, depth: int) -> frozenset[int]:
        if depth > 2 * len(self._text) + 8:
            return frozenset()
        if isinstance(node, Name):
            return self.ends(self._rules[node.name], at, depth + 1)
        if isinstance(node, Choice):
            return frozenset().union(*(self.ends(item, at, depth) for item in node.items))
        if isinstance(node, Series):
            here = frozenset([at])
            for item in node.items:
                here = self._all(item, here, depth)
            return here
        if isinstance(node, Repeat):
            return self._repeated(node, at, depth)
        return self._atom(node, at)

    def _atom(self, node: Literal | Chars, at: int) -> frozenset[int]:
        if isinstance(node, Literal):
            is_there = self._text.startswith(node.text, at)
            return frozenset([at + len(node.text)] if is_there else [])
        code = ord(self._text[at]) if at < len(self._text) else -1
        is_in = any(low <= code <= high for low, high in node.ranges)
        return frozenset([at + 1] if is_in else [])

    def _repeated(self, node: Repeat, at: int, depth: int) -> frozenset[int]:
        here, found, count = frozenset([at]), set[int](), 0
        most = node.most if node.most is not None else len(self._text) + node.least + 1
        while here and count <= most:
            if count >= node.least:
                found |= here
            here = self._all(node.item, here, depth)
            count += 1
        return frozenset(found)

    def _all(self, node: Node, places: frozenset[int], depth: int) -> frozenset[int]:
        return frozenset().union(*(self.ends(node, place, depth) for place in places))


def make(rng: random.Random, depth: int, names: list[str]) -> str:
    kind = rng.randrange(9 if depth else 4)
    if kind < 3:
        return rng.choice(['"a"', '"b"', '"ab"', '"aba"', "[ab]", "[a]", "[^a]"])
    if kind == 3:
        return rng.choice(names)
    if kind == 4:
        return f"({make(rng, depth - 1, names)} | {make(rng, depth - 1, names)})"
    if kind in (5, 6):
        return f"{make(rng, depth - 1, names)} {make(rng, depth - 1, names)}"
    return f"({make(rng, depth - 1, names)}){rng.choice(['?', '*', '+', '{1,2}'])}"


@pytest.mark.parametrize("seed", range(60))
def test_a_grammar_accepts_its_language_exactly(
    seed: int, byte_guides: Guides, maker: GuideMaker
) -> None:
    rng = random.Random(seed)
    names = ["x", "y"]
    grammar = (
        # Recursion behind a character, so that the plain matcher comes to an end.
        f'root ::= {make(rng, 2, names)} | "a" root "b" | {make(rng, 1, names)}\n'
        f"x ::= {make(rng, 2, ['y'])}\ny ::= [ab] | {make(rng, 1, ['[b]'])}\n"
    )
    try:
        guide = maker.make_now(Wish(kind="ebnf", source=grammar, param="p"))
    except InvalidRequest as error:
        assert "nothing satisfies" in error.message or "too complex" in error.message
        return
    rules = read_ebnf(grammar)
    wrong = [t for t in TEXTS if accepts(byte_guides, guide, t) != Plain(rules, t).is_match()]
    assert not wrong, f"{grammar}\n{guide.grammar}"
