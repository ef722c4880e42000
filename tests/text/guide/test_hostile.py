"""Guides made to hurt: each is answered within a second, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from edgeserve.errors import EdgeserveError, InvalidRequest
from edgeserve.guide import Guide
from edgeserve.text.guide.checker import Checker
from edgeserve.text.guide.maker import GuideMaker
from edgeserve.text.guide.wish import Wish

SLOW = {  # its intersection never comes to an end
    "allOf": [{"type": "string", "pattern": f"(a|b)*a(a|b){{{i}}}"} for i in range(20)]
}


def deep(levels: int, key: str = "items") -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {key: schema}
    return schema


def chain(count: int) -> dict[str, Any]:
    defs: dict[str, Any] = {"d0": {"type": "object"}}
    for i in range(1, count):
        ref = {"$ref": f"#/$defs/d{i - 1}"}
        defs[f"d{i}"] = {"properties": {"a": ref, "b": ref}, "allOf": [ref, ref]}
    return {"$defs": defs, "$ref": f"#/$defs/d{count - 1}"}


SCHEMAS: dict[str, Any] = {
    "intersections": SLOW,
    "deep": deep(90),
    "too deep": deep(150),
    "far too deep": deep(900),
    "alternatives": {
        "allOf": [
            {"anyOf": [{"type": "object", "properties": {f"p{i}{k}": {}}} for k in range(4)]}
            for i in range(12)
        ]
    },
    "references": chain(40),
    "properties": {
        "type": "object",
        "properties": {f"p{i}": {"type": "string"} for i in range(3000)},
    },
    "values": {"enum": [f"value number {i}" for i in range(4000)]},
    "items": {"type": "array", "minItems": 10**9},
    "items in items": {
        "type": "array",
        "minItems": 10**6,
        "items": {"type": "array", "minItems": 10**6, "items": {"minLength": 10**9}},
    },
    "length": {"type": "string", "minLength": 10**9, "maxLength": 10**12},
    "lookalikes": {"oneOf": [{"type": "object", "required": [f"p{i}"]} for i in range(300)]},
    "numbers": {"type": "number", "minimum": -1.2345678901234567e300, "maximum": 1e308},
    "multiples": {"type": "integer", "multipleOf": 10**15 + 37},
    "patterns": {
        "type": "object",
        "patternProperties": {f"^{'(a|b)*' * i}c": {} for i in range(1, 40)},
    },
    "pattern": {"type": "string", "pattern": "(((a{100}){100}){100}){100}"},
}
REGEXES: dict[str, str] = {
    "bounds": "(((a{1000}){1000}){1000}){1000}",
    "one bound": "a{10000000}",
    "states": "(a|b)*a(a|b){60}",
    "classes": r"(\w{1,500}|\p{L}{1,500}){1,500}",
    "groups": "(" * 5000 + "a" + ")" * 5000,
    "long": "a" * 100_000,
    "bars": "|".join(f"{i}x" for i in range(15_000)),
    "stars": "(x+x+)+y" * 100,
    "look-behind": "(?<=a)b",
    "back-reference": r"(a)\1",
    "nothing": r"[^\s\S]",
}
GRAMMARS: dict[str, str] = {
    "doubling": "root ::= r0\n"
    + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60))
    + 'r60 ::= "a"',
    "bounds": 'root ::= a{100000}\na ::= b{100000}\nb ::= c{100000}\nc ::= "x" | "y"',
    "left": 'root ::= root root | root "a" | "a"',
    "empty loop": 'root ::= root | ""',
    "ambiguous": 'root ::= ("a"* "a"*)* root?',
    "long chain": "".join(f"r{i} ::= r{i + 1}\n" for i in range(3000))
    + 'r3000 ::= "a"\nroot ::= r0',
    "groups": "root ::= " + "(" * 20_000,
    "bars": "root ::= " + " | ".join(f'"{i}"' for i in range(12_000)),
    "classes": "root ::= " + " ".join(["[a-z0-9]*"] * 3000) + " root?",
    "unfinished": 'root ::= "' + "a" * 100_000,
}


def attempts() -> list[Any]:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("json_schema", SCHEMAS),
        ("regex", REGEXES),
        ("ebnf", GRAMMARS),
    ]
    return [
        pytest.param(kind, source, id=f"{kind} {name}")
        for kind, sources in kinds
        for name, source in sources.items()
    ]


@pytest.mark.parametrize(("kind", "source"), attempts())
def test_a_hostile_guide_is_answered_within_a_second(
    kind: Any, source: Any, maker: GuideMaker
) -> None:
    wish = Wish(kind=kind, source=source, param="p")
    maker.make_now(Wish(kind="regex", source="warm", param="p"))  # a child has started
    started = time.monotonic()
    try:
        assert isinstance(maker.make_now(wish), Guide)
    except EdgeserveError as error:
        assert error.status == 400
        assert error.param == "p"
        assert len(error.message) < 600
    took = time.monotonic() - started
    assert took < 1.0 or cpu_is_shared(took)


def cpu_is_shared(took: float) -> bool:
    """A busy machine stretches wall time; then what counts is that the deadline was kept."""
    import os

    return os.getloadavg()[0] > (os.cpu_count() or 1) and took < 5.0


def test_a_guide_that_never_compiles_is_refused_by_time(maker: GuideMaker) -> None:
    with pytest.raises(InvalidRequest, match="takes too long"):
        maker.make_now(Wish(kind="json_schema", source=SLOW, param="p"))


def test_others_are_served_while_a_hostile_guide_is_refused() -> None:
    async def play() -> float:
        maker = GuideMaker(Checker(children=2))
        body = {"type": "json_schema", "json_schema": {"name": "x", "schema": SLOW}}
        good = [{"guided_decoding": {"regex": f"a{i}"}} for i in range(3)]
        try:
            await maker.make(good[0])
            bad = asyncio.create_task(maker.make({"response_format": body}))
            longest = await longest_pause(bad)
            for surfaces in good:
                assert await maker.make(surfaces) is not None
            with pytest.raises(InvalidRequest):
                await bad
        finally:
            maker.close()
        return longest

    assert asyncio.run(play()) < 0.3  # the event loop went on


async def longest_pause(task: asyncio.Task[Any]) -> float:
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest


def test_a_child_that_died_is_replaced() -> None:
    checker = Checker(children=1)
    try:
        grammar = '{"grammars":[{"lark_grammar":"start: /%s/"}]}'
        assert checker.check(grammar % "a") == ""
        process = checker._children[0]._process
        assert process is not None
        process.kill()
        process.wait()
        assert checker.check(grammar % "b") == ""
    finally:
        checker.close()


def test_forty_tools_with_large_bounds_are_ready_soon(maker: GuideMaker) -> None:
    tool = {
        "type": "object",
        "properties": {
            "n": {
                "type": "object",
                "properties": {
                    "s": {"type": "string", "pattern": "^[a-z]+$"},
                    "t": {"type": "string", "pattern": "\\S"},
                    "u": {"type": "string", "maxLength": 20000},
                    "v": {"type": "array", "maxItems": 5000},
                },
            }
        },
    }
    schema = {"anyOf": [{**tool, "title": f"tool {i}"} for i in range(40)]}
    started = time.monotonic()
    maker.make_now(Wish(kind="json_schema", source=schema, param="p"))
    assert time.monotonic() - started < 2
