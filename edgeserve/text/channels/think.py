"""Where reasoning stands between tags, and whether an answer begins inside it."""

from __future__ import annotations

import msgspec


class Tags(msgspec.Struct, frozen=True, kw_only=True):
    start: str
    end: str
    begins_inside: bool = False  # the model reasons first, whether or not the prompt says so

    def inside(self, prompt: str, prefill: str = "") -> bool:
        """Whether the text after `prompt` begins inside reasoning. `prefill`: the text of an
        assistant's message at the prompt's end that is being continued. Tags that stand in other
        messages say nothing."""
        opened, closed = prefill.rfind(self.start), prefill.rfind(self.end)
        if opened >= 0 or closed >= 0:
            return opened > closed
        tail = prompt.removesuffix(prefill).rstrip() if prefill else prompt.rstrip()
        if tail.endswith(self.end):
            return False
        return tail.endswith(self.start) or (self.begins_inside and not prefill)


class Thoughts(msgspec.Struct, frozen=True):
    """The reasoning of one answer."""

    tags: Tags
    is_open: bool  # the prompt ends inside; else the model opens it, or not


QWEN3 = Tags(start="<think>", end="</think>")
NEMOTRON = Tags(start="<think>", end="</think>")
DEEPSEEK_R1 = Tags(start="<think>", end="</think>", begins_inside=True)
MISTRAL = Tags(start="[THINK]", end="[/THINK]")
