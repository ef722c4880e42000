"""The tokenizer inside a GGUF as a tokenizer.json: same ids for the same text.

Two kinds: byte-level BPE (`gpt2`) with its merges, cut by a named rule (pretokenizer.py); and
SentencePiece BPE (`llama`), whose merges follow from the scores of its pieces. Anything else is
refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgeserve.errors import CheckpointError
from edgeserve.text.pretokenizer import Rule, find_rule

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6  # llama.cpp's token types
_SPACE = "\u2581"
_LONGEST_PIECE = 4096  # characters
# llama.cpp's converter marks these as control tokens; in Qwen's own files they are plain added
# tokens, which decoding keeps. Gemma's unused tokens are the same case.
_QWEN_PLAIN = frozenset(
    {
        *("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
        *("<|repo_name|>", "<|file_sep|>", "<tool_call>", "</tool_call>"),
    }
)
_UNUSED_NAME = re.compile(r"<unused\d+>")


def convert(metadata: Mapping[str, Any]) -> str:
    """The text of tokenizer.json."""
    kind = metadata.get("tokenizer.ggml.model")
    tokens, types = _vocabulary(metadata)
    if kind == "gpt2":
        document = _byte_level(metadata, tokens, types)
    elif kind == "llama":
        document = _sentencepiece(metadata, tokens, types)
    else:
        raise CheckpointError(
            f"the file's tokenizer model {kind!r} is not supported; use the model's Hugging Face "
            "folder with its tokenizer.json instead"
        )
    return json.dumps(document, ensure_ascii=False)


def _vocabulary(metadata: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(t, str) for t in tokens):
        raise CheckpointError("the file has no tokenizer.ggml.tokens, so no tokenizer")
    types = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
    if not isinstance(types, list) or len(types) != len(tokens):
        raise CheckpointError("tokenizer.ggml.token_type does not fit tokenizer.ggml.tokens")
    return tokens, types


def _byte_level(
    metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]
) -> dict[str, Any]:
    name = metadata.get("tokenizer.ggml.pre", "default")
    rule = find_rule(str(name))
    if rule is None:
        raise CheckpointError(
            f"the file's pre-tokenizer {name!r} is not known; use the model's Hugging Face folder "
            "with its tokenizer.json instead"
        )
    plain = _QWEN_PLAIN if str(name).startswith("qwen") else frozenset()
    return _document(
        tokens,
        _vocab(tokens, types),
        _stored_merges(metadata),
        _added(tokens, types, plain),
        normalizer={"type": "NFC"} if rule.nfc else None,
        pre_tokenizer=_cuts(rule),
        post_processor=_template(metadata, tokens, bos=rule.bos, bos_id=None),
        decoder={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        model={"ignore_merges": rule.whole_words, "byte_fallback": False, "fuse_unk": False},
    )


def _cuts(rule: Rule) -> dict[str, Any]:
    splits: list[dict[str, Any]] = [
        {
            "type": "Split",
            "pattern": {"Regex": regex},
            "behavior": "Isolated",
            "invert": False,
        }
        for regex in rule.regexes
    ]
    encode = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    return {"type": "Sequence", "pretokenizers": [*splits, encode]}


def _stored_merges(metadata: Mapping[str, Any]) -> list[list[str]]:
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise CheckpointError("the file has no tokenizer.ggml.merges, so no usable tokenizer")
    pairs = []
    for merge in merges:
        at = merge.find(" ", 1) if isinstance(merge, str) else -1
        if at < 0:
            raise CheckpointError("tokenizer.ggml.merges holds an entry that is not a pair")
        pairs.append([merge[:at], merge[at + 1 :]])
    return pairs


def _sentencepiece(
    metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]
) -> dict[str, Any]:
    scores = metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise CheckpointError("tokenizer.ggml.scores does not fit tokenizer.ggml.tokens")
    if not all(isinstance(score, float) for score in scores):
        raise CheckpointError("tokenizer.ggml.scores holds something else than real numbers")
    if max(map(len, tokens)) > _LONGEST_PIECE:  # every cut of every piece is tried
        raise CheckpointError(
            f"tokenizer.ggml.tokens has a piece of {max(map(len, tokens))} characters, over the "
            f"limit of {_LONGEST_PIECE}"
        )
    # llama.cpp writes user-defined runs of blanks with real spaces; the vocabulary has U+2581.
    tokens = [
        t.replace(" ", _SPACE) if k == _USER else t for t, k in zip(tokens, types, strict=True)
    ]
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    prefix = metadata.get("tokenizer.ggml.add_space_prefix", True)
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    back = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
    normalizers = [{"type": "Prepend", "prepend": _SPACE}, replace] if prefix else [replace]
    decoders: list[dict[str, Any]] = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return _document(
        tokens,
        _vocab(tokens, types),
        _scored_merges(tokens, types, scores),
        _added(tokens, types, frozenset(filter(_UNUSED_NAME.fullmatch, tokens))),
        normalizer={"type": "Sequence", "normalizers": normalizers},
        pre_tokenizer=None,
        post_processor=_template(metadata, tokens, bos=True, bos_id=1),
        decoder={"type": "Sequence", "decoders": decoders},
        model={
            "unk_token": tokens[unknown] if _is_id(unknown, tokens) else None,
            "fuse_unk": True,
            "byte_fallback": _BYTE in types,
        },
    )


def _scored_merges(
    tokens: Sequence[str], types: Sequence[int], scores: Sequence[float]
) -> list[tuple[str, str]]:
    """Every way to make a piece of two others; the piece with the best score merges first."""
    ids = {
        t: i
        for i, (t, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (_NORMAL, _USER)
    }
    found: list[tuple[float, int, int, str, str]] = []
    for piece, i in ids.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                found.append((-scores[i], -len(left), ids[left], left, right))
    found.sort(key=lambda merge: merge[:3])
    return [(left, right) for *_, left, right in found]


def _vocab(tokens: Sequence[str], types: Sequence[int]) -> dict[str, int]:
    vocab: dict[str, int] = {}
    for i, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind != _UNUSED:  # rows of padding: no text ever means them
            vocab.setdefault(token, i)
    return vocab


def _added(
    tokens: Sequence[str], types: Sequence[int], plain: frozenset[str]
) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != _USER and token not in plain,
        }
        for i, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (_UNKNOWN, _CONTROL, _USER) and token
    ]


def _template(
    metadata: Mapping[str, Any], tokens: Sequence[str], *, bos: bool, bos_id: int | None
) -> dict[str, Any] | None:
    """The post-processor that puts BOS before and EOS after, as the file's flags say."""
    start = _flagged(metadata, "bos", tokens, default=bos, default_id=bos_id)
    stop = _flagged(metadata, "eos", tokens, default=False, default_id=None)
    if start is None and stop is None:
        return None

    def around(sequence: str, type_id: int) -> list[dict[str, Any]]:
        text = {"Sequence": {"id": sequence, "type_id": type_id}}
        before, after = (
            [{"SpecialToken": {"id": tokens[i], "type_id": type_id}}] if i is not None else []
            for i in (start, stop)
        )
        return [*before, text, *after]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {
            tokens[i]: {"id": tokens[i], "ids": [i], "tokens": [tokens[i]]}
            for i in (start, stop)
            if i is not None
        },
    }


def _flagged(
    metadata: Mapping[str, Any],
    role: str,
    tokens: Sequence[str],
    *,
    default: bool,
    default_id: int | None,
) -> int | None:
    wanted = metadata.get(f"tokenizer.ggml.add_{role}_token", default)
    token = metadata.get(f"tokenizer.ggml.{role}_token_id", default_id)
    return token if wanted and _is_id(token, tokens) else None


def _is_id(value: Any, tokens: Sequence[str]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(tokens)


def _document(
    tokens: Sequence[str],
    vocab: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    added: Sequence[Mapping[str, Any]],
    *,
    model: Mapping[str, Any],
    **stages: Any,
) -> dict[str, Any]:
    known = vocab.keys()
    for left, right in merges:
        if left not in known or right not in known or left + right not in known:
            raise CheckpointError(
                f"the file's tokenizer merges {left!r} and {right!r}, which are not {len(tokens)} "
                "tokens of its own; the file is damaged"
            )
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, **model}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        **stages,
        "model": {**bpe, "vocab": dict(vocab), "merges": merges},
    }
