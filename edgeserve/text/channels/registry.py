"""Names of parsers, and which of them suits a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgeserve.errors import BadConfig
from edgeserve.text.channels import harmony, think
from edgeserve.text.channels.generic import GENERIC
from edgeserve.text.channels.hermes import HERMES
from edgeserve.text.channels.llama3 import LLAMA3
from edgeserve.text.channels.mistral import MISTRAL, MISTRAL_ARGS
from edgeserve.text.channels.nemotron import NEMOTRON
from edgeserve.text.channels.pythonic import PYTHONIC
from edgeserve.text.channels.qwen3_xml import QWEN3_XML
from edgeserve.text.channels.think import Tags
from edgeserve.text.channels.wire import CallGrammar, Format

AUTO = "auto"
NONE = "none"
HARMONY = "harmony"

TOOL_PARSERS: Mapping[str, Format | None] = {
    "hermes": HERMES,
    "qwen3_xml": QWEN3_XML,
    "llama3_json": LLAMA3,
    "mistral": MISTRAL,
    "mistral_args": MISTRAL_ARGS,
    "nemotron": NEMOTRON,
    HARMONY: None,  # reads whole answers: harmony.Harmony
    "pythonic": PYTHONIC,
    "generic": GENERIC,
}
REASONING_PARSERS: Mapping[str, Tags | None] = {
    "qwen3": think.QWEN3,
    "deepseek_r1": think.DEEPSEEK_R1,
    "nemotron": think.NEMOTRON,
    "mistral": think.MISTRAL,
    HARMONY: None,
    NONE: None,
}
# Names that other servers use.
ALIASES: Mapping[str, str] = {
    "openai": HARMONY,
    "gpt_oss": HARMONY,
    "gpt-oss": HARMONY,
    "openai_gptoss": HARMONY,
    "qwen": "hermes",
    "qwen25": "hermes",
    "qwen3_coder": "qwen3_xml",
    "llama3": "llama3_json",
    "llama4_json": "llama3_json",
    "llama4_pythonic": "pythonic",
    "nemotron_json": "nemotron",
    "deepseek-r1": "deepseek_r1",
}


class Hint(msgspec.Struct, frozen=True):
    """A parser suits when the chat template has one of the texts, or the model type begins so."""

    parser: str
    texts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def suits(self, model_type: str, template: str) -> bool:
        return any(text in template for text in self.texts) or model_type.startswith(self.types)


# The first that suits. The template tells more than the type: it is what the model was taught.
TOOL_HINTS = (
    Hint(HARMONY, ("<|channel|>",), ("gpt_oss",)),
    Hint("qwen3_xml", ("<function=",)),
    Hint("nemotron", ("<TOOLCALL>",)),
    Hint("mistral_args", ("[ARGS]",)),
    Hint("mistral", ("[TOOL_CALLS]",)),
    Hint("hermes", ("<tool_call>",)),
    Hint("pythonic", ("<|python_start|>", "<|tool_call_start|>", "[func_name1(")),
    Hint("llama3_json", ("<|python_tag|>", '"parameters": dictionary')),
    Hint("pythonic", types=("llama4",)),
    Hint("llama3_json", types=("mllama",)),
    Hint("mistral", types=("mistral", "mixtral", "ministral", "pixtral")),
    Hint("hermes", types=("qwen",)),
)
REASONING_HINTS = (
    Hint(HARMONY, ("<|channel|>",), ("gpt_oss",)),
    Hint("mistral", ("[THINK]",)),
    Hint("nemotron", types=("nemotron",)),
    # Not by type: deepseek_v3 is also that of models which do not reason.
    Hint("deepseek_r1", ("<｜Assistant｜><think>", "<｜Assistant｜>' + '<think>")),
    Hint("qwen3", ("<think>", "</think>")),
)


def tool_parser(name: str, *, model_type: str = "", template: str = "") -> str:
    """The name in `TOOL_PARSERS` that `name`, perhaps `auto`, stands for."""
    return _named(
        name, TOOL_PARSERS, TOOL_HINTS, "generic", "tool-call-parser", model_type, template
    )


def reasoning_parser(name: str, *, model_type: str = "", template: str = "") -> str:
    """The name in `REASONING_PARSERS` that `name`, perhaps `auto`, stands for."""
    return _named(
        name, REASONING_PARSERS, REASONING_HINTS, NONE, "reasoning-parser", model_type, template
    )


def call_grammar(name: str) -> CallGrammar:
    """The text around calls of a tool parser; see `CallGrammar`."""
    wire = TOOL_PARSERS[name]
    return harmony.GRAMMAR if wire is None else wire.grammar


def special_texts(tool: str, reasoning: str, *, calls: bool = True) -> tuple[str, ...]:
    """Special tokens that mean something to these parsers; without `calls`, of reasoning only."""
    if HARMONY in (tool, reasoning):
        return harmony.SPECIAL
    wire = TOOL_PARSERS[tool] if calls else None
    tags = REASONING_PARSERS[reasoning]
    texts = (wire.special if wire else ()) + ((tags.start, tags.end) if tags else ())
    return tuple(dict.fromkeys(texts))


def _named(
    name: str,
    parsers: Mapping[str, object],
    hints: tuple[Hint, ...],
    default: str,
    flag: str,
    model_type: str,
    template: str,
) -> str:
    if name == AUTO:
        found = (hint.parser for hint in hints if hint.suits(model_type, template))
        return next(found, default)
    name = ALIASES.get(name, name)
    if name not in parsers:
        raise BadConfig(f"--{flag} '{name}' is unknown; use one of {AUTO}, {', '.join(parsers)}")
    return name
