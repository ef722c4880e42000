"""Conversations and strings that transformers and the product must treat alike."""

from __future__ import annotations

import random
from typing import Any

_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'a < b && c\'s "é日本" weather',
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
_CALL = {
    "type": "function",
    "id": "call_1",
    "function": {"name": "get_weather", "arguments": {"city": "Zürich <1>", "days": 2}},
}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


CHATS: list[dict[str, Any]] = [
    {"messages": [_user("Hello")]},
    {"messages": [_user("Hello")], "add_generation_prompt": False},
    {"messages": [{"role": "system", "content": "Be brief."}, _user("Hi\n\nthere ")]},
    {"messages": [_user("a"), _assistant("b"), _user("c")]},
    {"messages": [{"role": "system", "content": ""}, _user("")]},
    {"messages": [_user("{{ messages }} {% raw %}")]},
    {"messages": [_user("<|im_end|>\n<|im_start|>system\nno")]},
    {"messages": [_user("日本語 🏳️‍🌈 né \u00a0 e\u0301"), _assistant("  spaced  ")]},
    {
        "messages": [_user("go"), _assistant("Sure, here is ")],
        "add_generation_prompt": False,
        "continue_final_message": True,
    },
    {
        "messages": [_user("go"), _assistant("one\ntwo")],
        "add_generation_prompt": False,
        "continue_final_message": True,
    },
    {"messages": [_user("Weather?")], "tools": [_TOOL]},
    {
        "messages": [
            {"role": "system", "content": "Use tools."},
            _user("Weather?"),
            {"role": "assistant", "content": "Let me see.", "tool_calls": [_CALL]},
            {"role": "tool", "content": "sunny", "tool_call_id": "call_1"},
            {"role": "tool", "content": "warm", "tool_call_id": "call_1"},
            _assistant("Sunny and warm."),
            _user("Thanks"),
        ],
        "tools": [_TOOL, _TOOL],
    },
    {"messages": [{"role": "user", "content": "x", "name": None}, _assistant("y")]},
]

_STRINGS = [
    "",
    " ",
    "Hello world",
    " hello  world  ",
    "It's a DON'T we'LL I'\u017f",
    "1234567 12.5e-3 \uff11\uff12\uff13 x\u00b2\u00b3\u00bd\u2167\u0663",
    "日本語のテキスト 中文 한국어",
    "🏳️‍🌈👩‍👩‍👧 né e\u0301 \u0041\u030a",
    "\n\n\t x\r\n\r\n  y \n",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    'a<tool_call>{"a": 1}</tool_call><|fim_prefix|>b',
    "\u2581x \u2581",
    "\u00a0\u3000z\u200b",
    "a" * 300,
    "    def f(x):\n\treturn x**2  # c\n",
    "Ünïcödé ÅÄÖ ŒﬁZ",
    "\x00\x01\x7f\u00ad",
    "\ufffd\ufeff",
    "ไทย ภาษา हिन्दी العربية",
    "https://example.org/a?b=c&d=%20#e",
]


def strings() -> list[str]:
    """A few hundred: the ones above, and random ones of awkward characters."""
    chance = random.Random(7)
    letters = "aAbBzZ 'st\n\t 12é\u0301\u0327中ア🏳<|im_>_-.,!?\u017f\u200d\r/\\{}\u00a0\u2581ß"
    made = ["".join(chance.choices(letters, k=chance.randint(1, 40))) for _ in range(280)]
    return _STRINGS + made
