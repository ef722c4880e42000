"""What a message of a conversation may be, whether it came over HTTP or from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgeserve.errors import InvalidRequest, MissingField, UnsupportedFeature, WrongType

# A model sees OpenAI's newer name of the system role as the one that its template knows.
ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
MEDIA_PARTS = ("image_url", "input_image", "input_audio", "audio_url", "video_url", "file")


def checked(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as the template takes them: a known role, and the content as one text. Other keys
    stay as they are."""
    return [_checked(one, f"messages[{i}]") for i, one in enumerate(messages)]


def _checked(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    role, content = message.get("role"), message.get("content")
    if role is None:
        raise MissingField(f"{path}.role")
    if not isinstance(role, str):
        raise WrongType(f"{path}.role", "a string", type(role).__name__)
    return {
        **message,
        "role": template_role(role, path),
        "content": content_text(role, content, f"{path}.content"),
    }


def template_role(role: str, path: str) -> str:
    """The role as a template knows it; `path` is that of the message."""
    if role not in ROLES:
        raise InvalidRequest(
            f"{path} has the unknown role '{short(role)}'; use one of {', '.join(ROLES)}",
            param=f"{path}.role",
        )
    return ROLES[role]


def content_text(role: str, content: Any, path: str) -> str:
    """The text of a content: a string, or parts that are strings or have a type and a text."""
    if isinstance(content, str):
        return content
    if content is None:
        if role != "assistant":
            raise MissingField(path)
        return ""
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise WrongType(path, "a string or a list of parts", type(content).__name__)
    return "".join(_part_text(part, f"{path}[{i}]") for i, part in enumerate(content))


def _part_text(part: Any, path: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise WrongType(path, "a string or an object", type(part).__name__)
    kind, text = part.get("type"), part.get("text")
    if kind in MEDIA_PARTS:
        raise UnsupportedFeature(
            f"{path} is '{kind}'; this model reads text only", param=f"{path}.type"
        )
    if kind != "text":
        raise InvalidRequest(
            f"{path} has the unknown type '{short(str(kind))}'; use 'text'", param=f"{path}.type"
        )
    if not isinstance(text, str):
        raise WrongType(f"{path}.text", "a string", "null" if text is None else type(text).__name__)
    return text


def short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."
