"""Reasoning between tags."""

from __future__ import annotations

from typing import Any

from edgeserve.generation import Finish
from tests.text.channels.sample import OSLO, WEATHER, Call, Sample, hermes


def samples() -> list[Sample]:
    def one(
        id: str,
        text: str,
        reasoning: str,
        content: str = "",
        *calls: Call,
        think: str = "qwen3",
        **more: Any,
    ) -> Sample:
        return Sample(
            f"think-{id}", "hermes", text, content, reasoning, list(calls), think=think, **more
        )

    call = hermes("get_weather", OSLO)
    opened = "<|im_start|>assistant\n<think>\n"
    closed = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    return [
        one("whole", "<think>\nabc\n</think>\n\ndef", "abc", "def"),
        one("only-end", "abc</think>\n\ndef", "abc", "def", prompt=opened),
        one("unfinished", "abc\n def ", "abc\n def ", prompt=opened, finish=Finish.LENGTH),
        one("unfinished-tag", "abc </thi", "abc </thi", prompt=opened),
        one("closed-by-prompt", "abc", "", "abc", prompt=closed),
        one("stray-end", "abc</think>\n\ndef", "", "abc\n\ndef", prompt=closed),
        one("mentioned", "Use <think> tags", "", "Use <think> tags"),
        one("user-said-it", "abc", "", "abc", prompt="user: <think>\nassistant:"),
        one("then-call", f"<think>\nabc\n</think>\n\n{call}", "abc", "", WEATHER),
        one("then-text-and-call", f"<think>abc</think>Hm.{call}", "abc", "Hm.", WEATHER),
        one("call-inside", f"abc {call}", f"abc {call}", "", prompt=opened),
        one(
            "call-inside-closed",
            f"abc {call}</think>{call}",
            f"abc {call}",
            "",
            WEATHER,
            prompt=opened,
        ),
        one("after-call", f"{call}\n<think>b</think>{call}", "b", "", WEATHER, WEATHER),
        one("empty", "<think>\n\n</think>\n\nok", "", "ok"),
        one("r1", "abc</think>ok", "abc", "ok", think="deepseek_r1"),
        one("r1-start", "<think>\nabc</think>ok", "abc", "ok", think="deepseek_r1"),
        one("r1-closed", "ok", "", "ok", think="deepseek_r1", prompt="x<think>\n\n</think>\n\n"),
        one("r1-prefill", " on", "", " on", think="deepseek_r1", prompt="x: go", prefill="go"),
        one(
            "prefill-open", "on</think>ok", "on", "ok", prompt="x: <think>go ", prefill="<think>go "
        ),
        one(
            "prefill-closed",
            "on",
            "",
            "on",
            prompt="x: <think>a</think>go ",
            prefill="<think>a</think>go ",
        ),
        one(
            "nemotron",
            "abc</think>ok",
            "abc",
            "ok",
            think="nemotron",
            prompt="<SPECIAL_11>Assistant\n<think>\n",
        ),
        one("none", "<think>a</think>b", "", "<think>a</think>b", think="none"),
        one("magistral", "[THINK]abc[/THINK]ok", "abc", "ok", think="mistral"),
        one("not-split", "abc</think>\n\ndef", "", "abcdef", prompt=opened, split_reasoning=False),
    ]
