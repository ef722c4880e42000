"""A Jinja environment for chat templates that nobody has vetted: bounded in time and memory.

Three rules make the bound honest. Every loop step, call, filter and operator passes `Budget.tick`,
which checks the thread's CPU time. Every operation that makes something larger than its inputs is
checked before it runs and charged after. Every container knows its full written-out size (its
weight), so a small object that prints as gigabytes cannot be made. What cannot be bounded this way
(a few filters and methods that no chat template needs) is absent.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgeserve.text import template_helpers as helpers

SECONDS = 1.0  # CPU time of one rendering
_CREATED = 64 << 20  # characters made in total, beside a multiple of the input's
_SINGLE = 4 << 20  # weight of one object, beside a multiple of the input's
_PIECES = 1 << 21  # parts of one split
_INT_BITS = 4096
_TICKS = 64  # ticks between looks at the clock


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STR_METHODS = _names(
    "capitalize casefold center count endswith find format index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
    "join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust "
    "rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
)
_METHODS: dict[type, frozenset[str]] = {
    str: _STR_METHODS,
    list: frozenset({"index", "count", "copy"}),
    tuple: frozenset({"index", "count"}),
    dict: frozenset({"get", "items", "keys", "values", "copy"}),
    int: frozenset(),
    float: frozenset({"is_integer"}),
    bool: frozenset(),
    bytes: frozenset(),
}
_NO_FILTERS = ("pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr")
_FORMAT_WIDTH = re.compile(r"\*|\d{5}|\{[^{}]*\{")  # also a width that is itself a field


class TooMuch(Exception):
    """A rendering went over its budget."""


class Budget:
    """What one rendering may still use. Belongs to one thread."""

    def __init__(self, inputs: Any) -> None:
        self._stop = time.thread_time() + SECONDS
        self._ticks = 0
        self._weights: dict[int, tuple[Any, int]] = {}
        self.single = 1 << 62
        size = self.weight(inputs)
        self.single = _SINGLE + 2 * size
        self._left = _CREATED + 32 * size

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % _TICKS == 0:
            self.check_time()

    def check_time(self) -> None:
        if time.thread_time() > self._stop:
            raise TooMuch(f"it takes longer than {SECONDS:g} s")

    def charge(self, value: Any) -> Any:
        """Pay for a new object; returns it."""
        size = self.weight(value)
        self._left -= size
        if self._left < 0:
            raise TooMuch("it makes too much text")
        if size > 100_000:
            self.check_time()
        return value

    def allow(self, size: int) -> None:
        """Refuse an operation that would make an object of this weight."""
        if size > self.single:
            raise TooMuch(f"it makes a text of more than {self.single} characters")

    def weight(self, value: Any) -> int:
        """Characters it takes to write the value out, at least one each. Containers are
        remembered: nothing in the sandbox can change them."""
        if isinstance(value, (str, bytes)):
            size = len(value) + 1
        elif isinstance(value, (list, tuple, Mapping)):
            known = self._weights.get(id(value))
            if known is not None:
                return known[1]
            size = 1 + sum(map(self.weight, _members(value)))
            self._weights[id(value)] = (value, size)  # keeps the id taken
        elif isinstance(value, int):
            return 1 + value.bit_length() // 3
        else:
            return 1
        self.allow(size)
        return size


def _members(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, Mapping) else value


_budget: ContextVar[Budget] = ContextVar("template_budget")


def render(template: jinja2.Template, variables: Mapping[str, Any]) -> str:
    """The rendered text; `TooMuch` when the budget does not suffice."""
    budget = Budget(variables)
    token = _budget.set(budget)
    try:
        chunks, size = [], 0
        for chunk in template.generate(variables):
            budget.tick()
            size += len(chunk)
            budget.allow(size)
            chunks.append(chunk)
        return "".join(chunks)
    finally:
        _budget.reset(token)


class Ticking:
    """An iterable of a `for` that looks at the clock at each step."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        budget = _budget.get()
        for item in self._items:
            budget.tick()
            yield item

    def __len__(self) -> int:
        return len(self._items)  # type: ignore[arg-type]  # TypeError is what jinja expects


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for training; here it is only a scope."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Code(CodeGenerator):
    """Generated code in which literals and `~` pass through the environment."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self._charged("concat", super().visit_List, nodes.List(node.nodes), frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        self._charged("made", super().visit_List, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx == "load":
            self._charged("made", super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self._charged("made", super().visit_Dict, node, frame)

    def _charged(self, how: str, visit: Callable[..., None], node: nodes.Node, frame: Any) -> None:
        self.write(f"environment.{how}(")
        visit(node, frame)
        self.write(")")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja as transformers sets it up for chat templates, within a `Budget`."""

    intercepted_binops = frozenset({"+", "-", "*", "**", "/", "//", "%"})
    code_generator_class = _Code

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # constants would be folded before any budget exists
            finalize=self._finalize,
            extensions=[_Generation, loopcontrols],
            cache_size=0,
        )
        for name in _NO_FILTERS:
            self.filters.pop(name, None)
        self.filters["tojson"] = helpers.tojson
        self.filters["join"] = self._join
        self.filters["sum"] = helpers.number_sum
        self.filters = {n: self._guarded(n, f) for n, f in self.filters.items()}
        self.globals.pop("lipsum", None)
        self.globals.update(helpers.GLOBALS)

    def _parse(self, source: str, name: Any, filename: Any) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            ticking = nodes.EnvironmentAttribute("ticking", lineno=loop.lineno)
            loop.iter = nodes.Call(ticking, [loop.iter], [], None, None, lineno=loop.lineno)
        return tree

    ticking = staticmethod(Ticking)

    def made(self, value: Any) -> Any:
        budget = _budget.get()
        budget.tick()
        return budget.charge(value)

    def concat(self, parts: Sequence[Any]) -> str:  # type: ignore[override]
        """`a ~ b`: also how jinja joins the chunks of a block that is set to a variable."""
        budget = _budget.get()
        parts = list(parts)
        budget.allow(sum(map(budget.weight, parts)))
        return str(budget.charge("".join(map(str, parts))))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        budget = _budget.get()
        budget.tick()
        budget.allow(_result_weight(budget, operator, left, right))
        return budget.charge(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        budget = _budget.get()
        budget.tick()
        method = getattr(__obj, "__wrapped__", __obj)  # str.format comes wrapped
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            check = _METHOD_CHECKS.get(method.__name__)
            if check is not None:
                check(budget, [owner, *args, *kwargs.values()])
            if method.__name__ == "join" and args:
                args = (__self._parts(owner, args[0]),)
        return budget.charge(super().call(__context, __obj, *args, **kwargs))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = _METHODS.get(type(obj))
        if allowed is not None:
            return attr in allowed
        return super().is_safe_attribute(obj, attr, value)

    def _parts(self, glue: str, values: Iterable[Any]) -> list[Any]:
        budget = _budget.get()
        parts = list(Ticking(values))
        budget.allow(sum(map(budget.weight, parts)) + len(glue) * len(parts))
        return parts

    def _join(self, value: Iterable[Any], d: str = "", attribute: Any = None) -> str:
        if attribute is not None:
            value = [self.getitem(item, attribute) for item in Ticking(value)]
        return str(d).join(map(str, self._parts(str(d), value)))

    @jinja2.pass_context  # so that nothing is written out while compiling
    def _finalize(self, context: Any, value: Any) -> Any:  # noqa: ARG002
        budget = _budget.get()
        budget.tick()
        budget.weight(value)
        return value

    def _guarded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        first = 1 if hasattr(function, "jinja_pass_arg") else 0  # the context or environment
        check = _FILTER_CHECKS.get(name)

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            budget = _budget.get()
            budget.tick()
            if check is not None:
                check(budget, [*args[first:], *kwargs.values()])
            return budget.charge(function(*args, **kwargs))

        return guarded


def _check_written(budget: Budget, given: Sequence[Any]) -> None:
    budget.allow(sum(map(budget.weight, given)))


def _check_width(budget: Budget, given: Sequence[Any]) -> None:
    _check_written(budget, given)
    text = str(given[0]) if isinstance(given[0], str) else ""
    for value in given[1:]:
        width = len(value) if isinstance(value, str) else value if isinstance(value, int) else 0
        budget.allow(len(text) + width * (1 + text.count("\n")))


def _check_digits(budget: Budget, given: Sequence[Any]) -> None:  # noqa: ARG001
    if any(isinstance(value, int) and abs(value) > 100 for value in given[1:]):
        raise TooMuch("it rounds to more than 100 digits")


def _check_format(budget: Budget, given: Sequence[Any]) -> None:
    text = str(given[0])
    if _FORMAT_WIDTH.search(text):
        raise TooMuch("it formats with a wide or computed width")
    marks = text.count("{") + text.count("%")
    budget.allow(len(text) + marks * max(map(budget.weight, given[1:]), default=0))


def _check_replace(budget: Budget, given: Sequence[Any]) -> None:
    if len(given) >= 3:
        text, old, new = map(str, given[:3])
        count = text.count(old) if old else len(text) + 1
        budget.allow(len(text) + count * len(new))


def _check_pieces(budget: Budget, given: Sequence[Any]) -> None:  # noqa: ARG001
    text = given[0]
    known = len(given) > 1 and isinstance(given[1], str) and given[1]
    pieces = text.count(given[1]) if known else len(text) // 2
    if pieces > _PIECES:
        raise TooMuch(f"it splits a text into {pieces} parts")


_Check = Callable[[Budget, Sequence[Any]], None]
# Filters that write their input out whole, or more than that.
_FILTER_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(
        _names("string tojson urlencode escape e forceescape title list safe upper lower"),
        _check_written,
    ),
    **dict.fromkeys(["center", "indent", "batch", "slice"], _check_width),
    "replace": _check_replace,
    "format": _check_format,
    "round": _check_digits,
}
_METHOD_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(["center", "ljust", "rjust", "zfill"], _check_width),
    "replace": _check_replace,
    "format": _check_format,
    **dict.fromkeys(["split", "rsplit", "splitlines"], _check_pieces),
}


def _result_weight(budget: Budget, operator: str, left: Any, right: Any) -> int:
    """An upper bound of what `left operator right` makes; refuses numbers without end."""
    if operator == "*":
        if isinstance(left, int) and isinstance(right, int):
            return _bounded(left.bit_length() + right.bit_length())
        count = left if isinstance(left, int) else right
        body = right if isinstance(left, int) else left
        return budget.weight(body) * max(1, count) if isinstance(count, int) else 1
    if operator == "**":
        if isinstance(left, int) and isinstance(right, int):
            return _bounded(max(1, left.bit_length()) * max(0, right))
        return 1
    if operator == "%" and isinstance(left, str):
        _check_format(budget, [left, right])
    if operator == "+" and not isinstance(left, (int, float)):
        return budget.weight(left) + budget.weight(right)
    return 1


def _bounded(bits: int) -> int:
    if bits > _INT_BITS:
        raise TooMuch(f"it makes a number of {bits} bits")
    return 1
