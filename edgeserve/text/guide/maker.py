"""The door of this part: from the surfaces of a body to a checked `Guide`.

One `GuideMaker` per front. Reading and writing grammars is quick; proving one goes to the
checker's processes, through a thread of `asyncio`, so the event loop never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from edgeserve.errors import InvalidRequest, UnsupportedFeature
from edgeserve.guide import Guide
from edgeserve.text.channels.wire import CallGrammar
from edgeserve.text.guide.calls import NO_PARAMETERS, Target, calls_grammar
from edgeserve.text.guide.checker import TOO_SLOW, Checker
from edgeserve.text.guide.grammar import (
    ANY_OBJECT,
    enforceable,
    json_grammar,
    make_grammar,
    oneof_paths,
)
from edgeserve.text.guide.schema import Finding, Schema, prepare
from edgeserve.text.guide.wish import Wish, read_wish

Tool = Mapping[str, Any]


class Relaxed(NamedTuple):
    """A schema that can be enforced, and what it leaves to the model."""

    schema: Schema
    findings: tuple[Finding, ...]

    @property
    def statement(self) -> str | None:
        """What an answer says of it; None when nothing was relaxed."""
        names = [f"{f.keyword} at {f.path}" for f in self.findings]
        return "not enforced: " + ", ".join(names) if names else None


class GuideMaker:
    def __init__(self, checker: Checker | None = None) -> None:
        self._checker = checker or Checker()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="guide")

    async def make(
        self, surfaces: Mapping[str, Any], *, start_after: int | None = None
    ) -> Guide | None:
        """The guide that a body asks for, ready to run; None when it asks for none.

        `surfaces`: the members of the body named in `wish.SURFACES`. Raises InvalidRequest."""
        wish = read_wish(surfaces)
        if wish is None:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.make_now, wish, start_after)

    def make_now(self, wish: Wish, start_after: int | None = None) -> Guide:
        """As `make`, in the calling thread."""
        grammar = make_grammar(wish)
        self._refuse(grammar, wish)
        return Guide(
            kind=wish.kind,
            grammar=grammar,
            param=wish.param,
            start_after=start_after,
            jump_forward=wish.jump_forward,
        )

    async def strict(self, schema: Any, *, param: str) -> Schema:
        """A `strict` tool's schema, made ready. Raises InvalidRequest naming the keyword."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.strict_now, schema, param)

    def strict_now(self, schema: Any, param: str) -> Schema:
        wish = Wish(kind="json_schema", source=schema, param=param)
        ready = enforceable(schema, param)
        self._refuse(json_grammar(ready), wish)
        return ready

    async def relaxed(self, schema: Any, *, param: str) -> Relaxed:
        """A tool's schema without what cannot be enforced. Raises only for what is no schema."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.relaxed_now, schema, param)

    def relaxed_now(self, schema: Any, param: str) -> Relaxed:
        ready = prepare(schema, param=param)
        if not self._checker.check(json_grammar(ready.schema)):
            return Relaxed(ready.schema, ready.findings)
        easier = _any_of(ready.schema)
        if easier != ready.schema and not self._checker.check(json_grammar(easier)):
            return Relaxed(easier, ready.findings + tuple(oneof_paths(ready.schema)))
        why = self._checker.check(json_grammar(ready.schema))
        return Relaxed(dict(ANY_OBJECT), (Finding("#", "the whole schema", why),))

    async def calls(
        self,
        wire: CallGrammar,
        tools: Sequence[Tool],
        special: Callable[[str], int | None],
        *,
        several: bool,
    ) -> Guide:
        """For an answer that is calls of these tools. Raises InvalidRequest for a `strict` tool
        that cannot be enforced; the others are relaxed."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, lambda: self._calls_now(wire, tools, special, several=several)
        )

    def _calls_now(
        self,
        wire: CallGrammar,
        tools: Sequence[Tool],
        special: Callable[[str], int | None],
        *,
        several: bool,
    ) -> Guide:
        targets, statements = [], []
        for index, tool in enumerate(tools):
            function = tool["function"]
            schema = self._parameters(function, f"tools[{index}].function.parameters")
            targets.append(Target(function["name"], schema.schema))
            if schema.statement:
                statements.append(f"{function['name']}: {schema.statement}")
        grammar = calls_grammar(wire, targets, special, several=several)
        return Guide(kind="calls", grammar=grammar, param="tools", relaxed="; ".join(statements))

    def _parameters(self, function: Mapping[str, Any], param: str) -> Relaxed:
        schema = function.get("parameters") or NO_PARAMETERS
        if function.get("strict"):
            return Relaxed(self.strict_now(schema, param), ())
        return self.relaxed_now(schema, param)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._checker.close()

    def _refuse(self, grammar: str, wish: Wish) -> None:
        why = self._checker.check(grammar)
        if not why:
            return
        at = wish.param
        if "oneOf constraints" in why and (found := oneof_paths(wish.source)):
            raise UnsupportedFeature(f"{at}: {found[0]}", param=at)
        if why.startswith("Unimplemented keys"):
            raise UnsupportedFeature(f"'{at}' cannot be enforced: {why}", param=at)
        verb = "is refused" if why == TOO_SLOW or "too complex" in why else "cannot be enforced"
        raise InvalidRequest(f"'{at}' {verb}: {_first_line(why)}", param=at)


def _first_line(text: str) -> str:
    return " ".join(text.split("\n   1 |")[0].split())[:300]


def _any_of(node: Any) -> Any:
    if isinstance(node, list):
        return [_any_of(item) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "oneOf" and isinstance(value, list):
            if "anyOf" in node:
                out.setdefault("allOf", []).append({"anyOf": _any_of(value)})
            else:
                out["anyOf"] = _any_of(value)
        elif key in ("enum", "const"):
            out[key] = value
        elif key == "allOf" and "allOf" in out:
            out[key] = out[key] + _any_of(value)
        else:
            out[key] = _any_of(value)
    return out
