"""Which tokens end a text: what the configs say, and the marker that ends a chat turn."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.errors import CheckpointError

# Markers that end a turn in some template; one counts when the template of the model writes it.
TURN_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<|end|>",
    "<|return|>",
    "<|endofturn|>",
)


class _AddedToken(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _TokenizerFile(msgspec.Struct):
    """The one part of tokenizer.json that is read here."""

    added_tokens: list[_AddedToken] = []


def eos_ids(checkpoint: Checkpoint) -> tuple[int, ...]:
    """End-of-sequence ids in ascending order, from generation_config.json, config.json and the
    tokenizer."""
    found: set[int] = set()
    for source in (checkpoint.generation_config, checkpoint.config):
        found.update(_ids(source.get("eos_token_id")))
    names = set(_end_names(checkpoint))
    if names:
        tokens = _added_tokens(checkpoint.tokenizer_json())
        found.update(token.id for token in tokens if token.content in names and token.special)
    return tuple(sorted(found))


def _added_tokens(text: str) -> list[_AddedToken]:
    try:
        return msgspec.json.decode(text, type=_TokenizerFile).added_tokens
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise CheckpointError(f"tokenizer.json cannot be read: {error}") from None


def _ids(value: object) -> Iterator[int]:
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            yield item


def _end_names(checkpoint: Checkpoint) -> Iterator[str]:
    eos = checkpoint.tokenizer_config.get("eos_token")
    if isinstance(eos, dict):  # an AddedToken written out
        eos = eos.get("content")
    if isinstance(eos, str):
        yield eos
    template = checkpoint.chat_template() or ""
    yield from (name for name in TURN_ENDS if name in template)
