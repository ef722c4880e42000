"""Fields that the API knows and this version does not carry out.

A value that asks for nothing (`functions: []`, `modalities: ["text"]`) passes; any other is a 400
that names the field, so no wish is ever dropped silently.
"""

from __future__ import annotations

from typing import Any

from edgeserve.errors import UnsupportedFeature
from edgeserve.protocol.openai.harmless import Harmless


class Later(Harmless, frozen=True, kw_only=True, forbid_unknown_fields=True):
    functions: Any = None
    function_call: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    verbosity: Any = None
    reasoning: Any = None
    suffix: Any = None


NOTHING: dict[str, tuple[Any, ...]] = {  # values that ask for nothing
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"], []),
    "suffix": ("",),
}
LATER = tuple(name for name in Later.__struct_fields__ if name not in Harmless.__struct_fields__)


def refuse_later(body: Later) -> None:
    for name in LATER:
        value = getattr(body, name)
        if value is not None and not _is_nothing(name, value):
            raise UnsupportedFeature(
                f"'{name}' is not supported by this version; leave it out", param=name
            )


def _is_nothing(name: str, value: object) -> bool:
    return any(
        value == nothing and isinstance(value, bool) is isinstance(nothing, bool)
        for nothing in NOTHING.get(name, ())
    )
