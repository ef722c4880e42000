"""The functions and filters that chat templates expect beside Jinja's own, as transformers has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError

_FORMAT = re.compile(r"%[-_0^#]?[a-zA-Z%]|[^%]")
_SEPARATOR_LIMIT = 16


class Raised(jinja2.TemplateError):
    """The template refuses the conversation by `raise_exception`."""


class Namespace(jinja2.utils.Namespace):
    """`namespace()`: the only object a template may change. Never written out with its values,
    so that it cannot make a small text large."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # `self` may be a key
        self, *given = args
        attributes = dict(*given, **kwargs)
        for name in attributes:
            _check_name(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes, as transformers writes it."""
    if separators is not None and any(len(s) > _SEPARATOR_LIMIT for s in separators):
        raise jinja2.TemplateError("tojson has a separator that is too long")
    if indent is not None and not (isinstance(indent, int) and indent <= _SEPARATOR_LIMIT):
        raise jinja2.TemplateError("tojson has an indent that is too wide")
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def number_sum(value: Iterable[Any], attribute: str | None = None, start: float = 0) -> Any:
    """The sum of numbers; lists are not summed, which would take quadratic time."""
    if not isinstance(start, (int, float)):
        raise jinja2.TemplateError("sum works on numbers only")
    items = value if attribute is None else [item[attribute] for item in value]
    return sum(items, start)


def raise_exception(message: Any) -> None:
    raise Raised(str(message)[:1000])


def strftime_now(format: str) -> str:  # the name that templates use
    if len(format) > 200 or "".join(_FORMAT.findall(format)) != format:
        raise jinja2.TemplateError("strftime_now has a format that is not supported")
    return datetime.now().strftime(format)


def make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError("a namespace has no names that start with '_'")


GLOBALS = {
    "raise_exception": raise_exception,
    "strftime_now": strftime_now,
    "dict": make_dict,
    "namespace": Namespace,
}
