"""Chat templates: a conversation to the text a model was trained on, as transformers renders it.

A template is a program of its author and runs in a sandbox with a budget (sandbox.py). Whatever
goes wrong while rendering is the request's error, with the template's own words when it has some.
Immutable; any thread may render.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import meta, nodes

from edgeserve.errors import CheckpointError, InvalidRequest, UnsupportedFeature
from edgeserve.text.budget import TooMuch
from edgeserve.text.sandbox import Sandbox, render
from edgeserve.text.template_helpers import Raised
from edgeserve.text.tokenizer import token_text

if TYPE_CHECKING:
    from edgeserve.checkpoint.view import Checkpoint

_SOURCE_LIMIT = 1 << 20  # characters of a template
_REASONING = ("reasoning_content", "thinking", "reasoning")
_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")

Message = Mapping[str, Any]


class ChatTemplate:
    """A compiled chat template; `named` ones beside it, of which `tool_use` serves tools."""

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        special_tokens: Mapping[str, str] | None = None,
        named: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self._default = _Compiled(source)
        self._named = {name: _Compiled(text) for name, text in (named or {}).items()}
        self.all_sources = "\n".join([source, *(named or {}).values()])
        tokens = {"bos_token": bos_token, "eos_token": eos_token, **(special_tokens or {})}
        self._tokens = {name: token for name, token in tokens.items() if token}

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> ChatTemplate | None:
        """The checkpoint's templates with its special tokens; None when it has no template."""
        config = checkpoint.tokenizer_config
        stored = config.get("chat_template")
        entries = stored if isinstance(stored, list) else []
        named = {e["name"]: e["template"] for e in entries if {"name", "template"} <= e.keys()}
        source = checkpoint.chat_template() or named.get("default")
        if source is None:
            return None
        tokens = {f"{role}_token": token_text(config.get(f"{role}_token")) for role in _ROLES}
        named.pop("default", None)
        return cls(source, special_tokens=tokens, named=named)

    @property
    def takes_tools(self) -> bool:
        """Whether it has a place for tools."""
        return "tool_use" in self._named or "tools" in self._default.variables

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        **kwargs: Any,
    ) -> str:
        """The prompt's text. `kwargs` are the template's own variables (chat_template_kwargs)."""
        if continue_final_message and add_generation_prompt:
            raise InvalidRequest(
                "continue_final_message and add_generation_prompt exclude each other; set one",
                param="continue_final_message",
            )
        compiled = self._named.get("tool_use", self._default) if tools else self._default
        if documents and "documents" not in compiled.variables:
            raise UnsupportedFeature(
                "this model's chat template has no place for documents; put them into a message",
                param="documents",
            )
        chat = [_normal(message, keep_parts=compiled.takes_parts) for message in messages]
        tag = _mark_end(chat) if continue_final_message else ""
        variables = {
            **self._tokens,
            **kwargs,
            "messages": chat,
            "tools": list(tools) if tools else None,
            "documents": list(documents) if documents else None,
            "add_generation_prompt": add_generation_prompt,
        }
        text = compiled.render(variables)
        return _cut_at(text, tag) if tag else text


class _Compiled:
    """One template, and whether it handles content given as a list of parts."""

    def __init__(self, source: str) -> None:
        if len(source) > _SOURCE_LIMIT:
            raise CheckpointError(f"the chat template is longer than {_SOURCE_LIMIT} characters")
        sandbox = Sandbox()
        try:
            self._template = sandbox.from_string(source)
            tree = sandbox.parse(source)
            self.takes_parts = _takes_parts(tree)
            self.variables = meta.find_undeclared_variables(tree)
        except jinja2.TemplateSyntaxError as error:
            raise CheckpointError(
                f"the chat template is not valid Jinja: {error.message} (line {error.lineno})"
            ) from None
        except Exception as error:  # too deep for Python's own compiler
            raise CheckpointError(
                f"the chat template cannot be compiled: {type(error).__name__}"
            ) from None

    def render(self, variables: Mapping[str, Any]) -> str:
        try:
            return render(self._template, variables)
        except Raised as error:
            raise InvalidRequest(
                f"the chat template refuses this: {error.message}", param="messages"
            ) from None
        except TooMuch as error:
            raise InvalidRequest(
                f"the chat template was stopped: {error}; shorten the conversation",
                param="messages",
            ) from None
        except (RecursionError, MemoryError) as error:
            raise InvalidRequest(
                f"the chat template was stopped: {type(error).__name__}", param="messages"
            ) from None
        except Exception as error:  # whatever a template's expressions may raise
            raise InvalidRequest(
                f"the chat template fails on this conversation: {str(error)[:200]}",
                param="messages",
            ) from None


def _normal(message: Message, *, keep_parts: bool) -> dict[str, Any]:
    """A message as templates expect it: no None values, text as a string unless the template
    reads parts, reasoning under the names in use, arguments of tool calls as objects."""
    found = {key: value for key, value in message.items() if value is not None}
    reasoning = next((found[key] for key in _REASONING if key in found), None)
    if reasoning is not None:
        found = {"thinking": reasoning, **found, "reasoning_content": reasoning}
    content = found.get("content")
    if isinstance(content, (list, tuple)) and not keep_parts:
        found["content"] = "\n".join(map(_part_text, content))
    if isinstance(found.get("tool_calls"), (list, tuple)):
        found["tool_calls"] = [_parsed_call(call) for call in found["tool_calls"]]
    return found


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    if not isinstance(text, str):
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        raise UnsupportedFeature(
            f"this model's chat template takes text only, not a part of type '{kind}'",
            param="messages",
        )
    return text


def _parsed_call(call: Any) -> Any:
    """OpenAI's clients send arguments as JSON text; templates write objects out themselves."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    arguments = function["arguments"]
    try:
        parsed = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return call
    if not isinstance(parsed, dict):
        return call
    return {**call, "function": {**function, "arguments": parsed}}


def _mark_end(chat: list[dict[str, Any]]) -> str:
    """Append an unguessable tag to the last message's text, to find where to cut."""
    tag = f"{secrets.token_hex(16)} "  # the blank tells whether the template trims
    content = chat[-1].get("content") if chat else None
    if isinstance(content, str):
        chat[-1]["content"] = content + tag
        return tag
    if isinstance(content, (list, tuple)):
        parts = [dict(part) if isinstance(part, Mapping) else part for part in content]
        for part in reversed(parts):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                part["text"] += tag
                chat[-1]["content"] = parts
                return tag
    raise InvalidRequest(
        "continue_final_message needs a last message with text to continue",
        param="continue_final_message",
    )


def _cut_at(text: str, tag: str) -> str:
    at = text.rfind(tag.strip())
    if at < 0:
        raise InvalidRequest(
            "the chat template does not write the last message, so it cannot be continued",
            param="continue_final_message",
        )
    return text[:at] if text.startswith(tag, at) else text[:at].rstrip()


def _takes_parts(tree: nodes.Template) -> bool:
    """Whether the template loops over a message's content."""
    names = {"content"}
    for assign in tree.find_all(nodes.Assign):
        if isinstance(assign.target, nodes.Name) and _is_content(assign.node, names):
            names.add(assign.target.name)
    return any(_is_content(loop.iter, names) for loop in tree.find_all(nodes.For))


def _is_content(node: nodes.Node | None, names: set[str]) -> bool:
    while isinstance(node, nodes.Call) and node.args:  # the sandbox's own wrapper around loops
        node = node.args[0]
    if isinstance(node, nodes.Filter):
        return _is_content(node.node, names)
    if isinstance(node, nodes.Getattr):
        return node.attr == "content"
    if isinstance(node, nodes.Getitem):
        return isinstance(node.arg, nodes.Const) and node.arg.value == "content"
    return isinstance(node, nodes.Name) and node.name in names
