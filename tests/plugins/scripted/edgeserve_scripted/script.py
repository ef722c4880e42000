"""What is to be said: named scripts, and the directives in a message that choose one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from edgeserve_scripted.vocabulary import BYTES, EOS, IM_END, IM_START, encode


@dataclass(frozen=True)
class Script:
    """A run of tokens with times. Everything is per request; nothing is remembered between
    tokens."""

    text: str = ""  # markers such as <think> become their tokens
    ids: Sequence[int] | None = None  # instead of text: exact token ids
    delay_ms: float = 0.0  # before each token
    first_ms: float = 0.0  # more, before the first token
    tokens: int | None = None  # exactly so many: the text is cut or repeated
    repeat: bool = False  # begins again at its end until max_tokens, in place of end-of-sequence
    fail_at: int | None = None  # the hook raises in place of this token (0: the first)
    free: bool = False  # the network's own logits, unchanged
    turns: Sequence[str] | None = None  # names of scripts: one per tool result since the user spoke

    def token(self, index: int) -> int:
        """The token at `index`; end-of-sequence after the last."""
        ids = encode(self.text) if self.ids is None else self.ids
        stop = len(ids) if self.tokens is None else self.tokens
        if not ids or (index >= stop and not self.repeat):
            return EOS
        return ids[index % len(ids)]

    def to_config(self) -> dict[str, Any]:
        """What config.json holds: the fields that differ from their defaults."""
        default = asdict(Script())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


BUILT_IN: dict[str, Script] = {
    "hello": Script("Hello! How can I help you today?"),
    "empty": Script(""),
    "endless": Script("all work and no play ", repeat=True),
    "unicode": Script("naïve café – 日本語 👩‍👩‍👧 ✓"),
    "think": Script("<think>\nTwo and two.\n</think>\n\nThe answer is 4."),
    "tool": Script(
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    ),
    "agent": Script(turns=["tool", "sunny"]),
    "sunny": Script("It is sunny in Paris."),
    "broken-utf8": Script(ids=[0x6F, 0x6B, 0xE2, 0x82]),
    "fail": Script("This will not be said.", fail_at=5),
    "free": Script(free=True),
}

_DIRECTIVE = re.compile(r"\A\s*((?:[a-z_]+=\S+\s+)*)(?:(script|say):(.*))?\Z", re.DOTALL)
_OPTIONS = {"delay_ms": float, "first_ms": float, "tokens": int, "fail_at": int}
_FLAGS = ("repeat", "free")


def choose(prompt: Sequence[int], scripts: Mapping[str, Script]) -> Script:
    """The script that a prompt asks for. Without a directive the message is echoed."""
    message, tool_results = last_message(prompt)
    match = _DIRECTIVE.match("".join(_letter(id) for id in message))
    if match is None or not (match[1] or match[2]):
        return Script(ids=message)
    if match[2] == "script":
        name, _, rest = match[3].strip().partition(" ")
        script = _turn(scripts, name, tool_results)
        return replace(script, **_options(f"{match[1]} {rest}"))
    return replace(Script(ids=[_id(letter) for letter in match[3] or ""]), **_options(match[1]))


def last_message(prompt: Sequence[int]) -> tuple[Sequence[int], int]:
    """The last user message of a ChatML prompt and the number of tool results after it; all of a
    prompt that is not ChatML."""
    tool_results = 0
    for start in range(len(prompt) - 1, -1, -1):
        if prompt[start] != IM_START:
            continue
        role, text = _turn_at(prompt, start + 1)
        if role == "tool":
            tool_results += 1
        elif role == "user":
            return text, tool_results
    return prompt, 0


def _turn_at(prompt: Sequence[int], start: int) -> tuple[str, Sequence[int]]:
    stop = start
    while stop < len(prompt) and prompt[stop] != IM_END:
        stop += 1
    text = prompt[start:stop]
    role = "".join(chr(id) for id in text[:16] if id < BYTES).partition("\n")[0]
    return role, text[len(role) + 1 :]


def _turn(scripts: Mapping[str, Script], name: str, turn: int) -> Script:
    if name not in scripts:
        return Script(f"no script '{name}'; there are: {', '.join(sorted(scripts))}")
    script = scripts[name]
    if script.turns:
        return _turn(scripts, script.turns[min(turn, len(script.turns) - 1)], 0)
    return script


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name in _OPTIONS:
            options[name] = _OPTIONS[name](value)
        elif name in _FLAGS:
            options[name] = value not in ("0", "false")
    return options


# A message as a string of one letter per token, so that regular expressions work on token ids.
def _letter(id: int) -> str:
    return chr(id) if id < BYTES else chr(0xE000 + id - BYTES)


def _id(letter: str) -> int:
    return ord(letter) if ord(letter) < BYTES else ord(letter) - 0xE000 + BYTES


def from_config(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Script]:
    """The scripts of a checkpoint's config.json, over the built-in ones."""
    known = {field.name for field in fields(Script)}
    own = {
        name: Script(**{key: value for key, value in entry.items() if key in known})
        for name, entry in config.items()
    }
    return {**BUILT_IN, **own}
