"""The channels of gpt-oss."""
# ruff: noqa: E501 (a sample is one line)

from __future__ import annotations

from typing import Any

from edgeserve.generation import Finish
from tests.text.channels.sample import OSLO, TABLES, WEATHER, Call, Sample


def samples() -> list[Sample]:
    def one(
        id: str, text: str, reasoning: str = "", content: str = "", *calls: Call, **more: Any
    ) -> Sample:
        more.setdefault("prompt", "<|start|>user<|message|>Hi<|end|><|start|>assistant")
        more.setdefault("think", "harmony")
        return Sample(f"harmony-{id}", "harmony", text, content, reasoning, list(calls), **more)

    thought = "<|channel|>analysis<|message|>Hm {x}.<|end|><|start|>assistant"
    call = (
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{OSLO}<|call|>"
    )
    return [
        one("final", "<|channel|>final<|message|>4 < 5<|return|>", "", "4 < 5"),
        one("thought", thought + "<|channel|>final<|message|>4", "Hm {x}.", "4"),
        one("call", thought + call, "Hm {x}.", "", WEATHER),
        one("call-without-token", thought + call.removesuffix("<|call|>"), "Hm {x}.", "", WEATHER),
        one(
            "role-recipient",
            f"{thought} to=functions.get_weather<|channel|>commentary json<|message|>{OSLO}<|call|>",
            "Hm {x}.",
            "",
            WEATHER,
        ),
        one(
            "analysis-call",
            f"<|channel|>analysis to=functions.get_weather code<|message|>\n{OSLO}\n<|call|>",
            "",
            "",
            WEATHER,
        ),
        one(
            "preamble",
            f"<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant{call}",
            "",
            "Plan.",
            WEATHER,
        ),
        one("two", f"{call}<|start|>assistant{call}", "", "", WEATHER, WEATHER),
        one(
            "empty-arguments",
            "<|channel|>commentary to=functions.list_tables<|message|>{}<|call|>",
            "",
            "",
            TABLES,
        ),
        one(
            "empty-body",
            "<|channel|>commentary to=functions.list_tables<|message|><|call|>",
            "",
            "",
            TABLES,
        ),
        one(
            "empty-body-stop",
            "<|channel|>commentary to=functions.list_tables<|message|>",
            "",
            "",
            TABLES,
        ),
        one(
            "empty-body-cut",
            "<|channel|>commentary to=functions.list_tables<|message|>",
            finish=Finish.LENGTH,
        ),
        one("unknown", "<|channel|>commentary to=functions.nope<|message|>{}<|call|>", "", "{}"),
        one(
            "browser",
            '<|channel|>analysis to=browser.search<|message|>{"q": 1}<|call|>',
            '{"q": 1}',
        ),
        one("not-json", "<|channel|>commentary to=functions.edit<|message|>hm<|call|>", "", "hm"),
        one("cut-thought", "<|channel|>analysis<|message|>So <", "So <", finish=Finish.LENGTH),
        one(
            "cut-arguments",
            '<|channel|>commentary to=functions.edit<|message|>{"a": [1',
            "",
            "",
            ("edit", '{"a": [1'),
            incomplete=True,
            finish=Finish.LENGTH,
        ),
        one("cut-header", thought + "<|channel|>fin", "Hm {x}.", finish=Finish.LENGTH),
        one("plain", "Just text.", "", "Just text."),
        one(
            "prefill",
            "on<|end|>",
            "",
            "on",
            prompt="<|start|>assistant<|channel|>final<|message|>Go ",
        ),
        one(
            "prefill-thought",
            "on<|end|><|start|>assistant<|channel|>final<|message|>ok",
            "on",
            "ok",
            prompt="<|start|>assistant<|channel|>analysis<|message|>",
        ),
        one(
            "no-end",
            "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
            "a",
            "b",
        ),
        one(
            "empty-message",
            "<|channel|>analysis<|end|><|start|>assistant<|channel|>final<|message|>b",
            "",
            "b",
        ),
        one("not-split", thought + "<|channel|>final<|message|>4", "", "Hm {x}.4", think="none"),
    ]
