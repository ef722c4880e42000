"""The tokens: one for each byte (id = byte), then the special ones."""

from __future__ import annotations

import re
from typing import Any

BYTES = 256
# Text of the token -> whether it is "special" to a tokenizer (not part of plain text). Reasoning
# and tool markers are ordinary added tokens, as in Qwen's tokenizers.
TOKENS = {
    "<|endoftext|>": True,
    "<|im_start|>": True,
    "<|im_end|>": True,
    "<think>": False,
    "</think>": False,
    "<tool_call>": False,
    "</tool_call>": False,
    "<tool_response>": False,
    "</tool_response>": False,
    "<|image|>": True,
}
SPECIAL = {text: BYTES + index for index, text in enumerate(TOKENS)}
VOCAB = 288  # rows of the network's logits; ids after the last token mean nothing
IM_START, IM_END, EOS = SPECIAL["<|im_start|>"], SPECIAL["<|im_end|>"], SPECIAL["<|im_end|>"]

_SPLIT = re.compile("(" + "|".join(re.escape(text) for text in TOKENS) + ")")


def encode(text: str) -> list[int]:
    """Token ids of a text, markers recognised: what the checkpoint's tokenizer.json does."""
    ids: list[int] = []
    for part in _SPLIT.split(text):
        ids.extend([SPECIAL[part]] if part in SPECIAL else part.encode())
    return ids


def decode(ids: list[int]) -> str:
    """The text of token ids, markers included, broken UTF-8 replaced."""
    names = {id: text.encode() for text, id in SPECIAL.items()}
    return b"".join(names.get(id, b"") if id >= BYTES else bytes([id]) for id in ids).decode(
        errors="replace"
    )


def tokenizer_json() -> dict[str, Any]:
    """A byte-level BPE without merges."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in printable}
    for byte in range(BYTES):
        letters.setdefault(byte, chr(0x100 + byte - sum(b < byte for b in printable)))
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = [
        {
            "id": id,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": TOKENS[text],
        }
        for text, id in SPECIAL.items()
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {**split, "use_regex": False},
        "post_processor": None,
        "decoder": {**split, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {letters[byte]: byte for byte in range(BYTES)},
            "merges": [],
        },
    }
