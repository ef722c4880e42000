"""A Jinja environment for chat templates that nobody has vetted: bounded in time and memory.

Three rules make the bound honest. Every loop step, call, filter and operator passes `Budget.tick`,
which checks the thread's CPU time. Every operation that makes something larger than its inputs is
checked before it runs and charged after (budget.py). Every container knows its full written-out
size, so a small object that prints as gigabytes cannot be made. What cannot be bounded this way (a
few filters and methods that no chat template needs) is absent.
"""

from __future__ import annotations

import functools
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
from edgeserve.text.budget import FILTER_CHECKS, METHOD_CHECKS, Budget, names, result_weight

_STR_METHODS = names(
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
        budget.allow(result_weight(budget, operator, left, right))
        return budget.charge(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        budget = _budget.get()
        budget.tick()
        method = getattr(__obj, "__wrapped__", __obj)  # str.format comes wrapped
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            check = METHOD_CHECKS.get(method.__name__)
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
        check = FILTER_CHECKS.get(name)

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            budget = _budget.get()
            budget.tick()
            if check is not None:
                check(budget, [*args[first:], *kwargs.values()])
            return budget.charge(function(*args, **kwargs))

        return guarded
