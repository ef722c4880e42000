"""Tokenizers of each kind: exact bytes, exact ids, thread-safe, no crash on bad text."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.errors import CheckpointError, InvalidRequest
from edgeserve.text.gguf_tokenizer import convert
from edgeserve.text.pretokenizer import _RULES, _SAME, find_rule
from edgeserve.text.token_bytes import _BYTES
from edgeserve.text.tokenizer import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
STAND_INS = {byte: chr(code) for code, byte in _BYTES.items() if byte < 256}


def byte_level(pre: str = "gpt-2", merges: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Metadata of a GGUF with 256 bytes, the results of merges, and three special tokens."""
    tokens = [STAND_INS[byte] for byte in range(256)]
    tokens += [merge.replace(" ", "") for merge in merges]
    tokens += ["<bos>", "<eos>", "<tool>", "[PAD]"]
    types = [NORMAL] * (len(tokens) - 4) + [CONTROL, CONTROL, USER, UNUSED]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": list(merges),
        "tokenizer.ggml.bos_token_id": len(tokens) - 4,
        "tokenizer.ggml.eos_token_id": len(tokens) - 3,
        **{f"tokenizer.ggml.{key}": value for key, value in more.items()},
    }


PIECES = ["\u2581", "a", "b", "c", "\u2581a", "ab", "bc", "\u2581ab", "abc", "\u2581abc", "é"]
SCORES = {"\u2581a": -1.0, "bc": -2.0, "ab": -3.0, "\u2581ab": -4.0, "abc": -5.0, "\u2581abc": -6.0}


def sentencepiece(**more: Any) -> dict[str, Any]:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES, "  "]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(PIECES), USER]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": [SCORES.get(token, -100.0) for token in tokens],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **{f"tokenizer.ggml.{key}": value for key, value in more.items()},
    }


def opened(metadata: dict[str, Any]) -> Tokenizer:
    return Tokenizer(convert(metadata))


def pieces_of(text: str) -> list[str]:
    """SentencePiece by its definition: merge the adjacent pair whose result scores best, leftmost
    first; what is not a piece becomes bytes."""
    symbols = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        results = [a + b for a, b in pairwise(symbols)]
        pairs = [(SCORES[r], -i) for i, r in enumerate(results) if r in SCORES]
        if not pairs:
            break
        i = -max(pairs)[1]
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    known = set(PIECES)
    return [
        piece
        for symbol in symbols
        for piece in ([symbol] if symbol in known else [f"<0x{b:02X}>" for b in symbol.encode()])
    ]


@settings(max_examples=300, deadline=None)
@given(st.text("abc é\u4e2d", max_size=20))
def test_sentencepiece_follows_its_definition(text: str) -> None:
    if "  " in f" {text}" or not text:
        return  # a run of blanks is a user-defined token of this vocabulary
    tokenizer = opened(sentencepiece(add_bos_token=False))
    tokens = sentencepiece()["tokenizer.ggml.tokens"]
    ids = tokenizer.encode(text)
    assert [tokens[i] for i in ids] == pieces_of(text)
    assert tokenizer.decode(ids) == text


def test_sentencepiece_flags() -> None:
    assert opened(sentencepiece()).encode("a")[0] == 1
    assert opened(sentencepiece()).encode("a", special=False)[0] != 1
    assert opened(sentencepiece(add_bos_token=False)).encode("a")[0] != 1
    assert opened(sentencepiece(add_eos_token=True)).encode("a")[-1] == 2
    tokens = sentencepiece()["tokenizer.ggml.tokens"]
    unprefixed = opened(sentencepiece(add_space_prefix=False, add_bos_token=False))
    assert [tokens[i] for i in unprefixed.encode("ab a")] == ["ab", "\u2581a"]
    assert unprefixed.decode(unprefixed.encode("ab a")) == "ab a"


def test_sentencepiece_bytes() -> None:
    tokenizer = opened(sentencepiece(add_bos_token=False))
    pieces = tokenizer.token_bytes()
    assert pieces[3:259] == [bytes([byte]) for byte in range(256)]
    assert pieces[tokenizer.id_of("\u2581abc") or 0] == b" abc"
    text = "ab é\u4e2d🏳️ c"
    assert b"".join(pieces[i] for i in tokenizer.encode(text)).decode() == " " + text


def test_byte_level_bytes_are_exact() -> None:
    tokenizer = opened(byte_level(merges=("a b", "Ã ©")))
    pieces = tokenizer.token_bytes(300)
    assert len(pieces) == 300
    assert pieces[:256] == [bytes([byte]) for byte in range(256)]
    assert pieces[256:258] == [b"ab", "é".encode()]
    assert pieces[tokenizer.id_of("<eos>") or 0] == b"<eos>"
    assert pieces[-1] == b""


def test_an_added_token_is_its_own_text() -> None:
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"][-2] = "<ü▁é>"
    tokenizer = opened(metadata)
    ids = tokenizer.encode("x<ü▁é>y")
    pieces = tokenizer.token_bytes()
    assert len(ids) == 3
    assert b"".join(pieces[i] for i in ids).decode() == "x<ü▁é>y"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_byte_level_keeps_any_text(text: str) -> None:
    tokenizer = opened(byte_level(merges=("a b", "Ġ a")))
    ids = tokenizer.encode(text)
    pieces = tokenizer.token_bytes()
    assert b"".join(pieces[i] for i in ids) == text.encode()


def test_special_tokens_in_text() -> None:
    tokenizer = opened(byte_level())
    bos, eos, tool = (tokenizer.id_of(t) for t in ("<bos>", "<eos>", "<tool>"))
    assert tokenizer.special_ids == {bos, eos}
    assert tokenizer.encode("<bos><tool><eos>", special=False) == [bos, tool, eos]
    assert tokenizer.decode([bos, tool, eos]) == "<tool>"  # type: ignore[list-item]
    assert tokenizer.id_of("[PAD]") is None


def test_begin_and_end_flags() -> None:
    plain = opened(byte_level()).encode("a")
    tokens = byte_level()["tokenizer.ggml.tokens"]
    both = opened(byte_level(add_bos_token=True, add_eos_token=True)).encode("a")
    assert both == [tokens.index("<bos>"), *plain, tokens.index("<eos>")]
    assert len(opened(byte_level(pre="llama-bpe")).encode("a")) == 2  # starts with BOS by rule
    assert len(opened(byte_level(pre="llama-bpe", add_bos_token=False)).encode("a")) == 1


@pytest.mark.parametrize("surrogate", ["\ud83d", "a\udc00b"])
def test_a_lone_surrogate_is_refused(surrogate: str) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        opened(byte_level()).encode(surrogate)


ALL_RULES = [*_RULES, *(name for names in _SAME.values() for name in names)]


@pytest.mark.parametrize("name", ALL_RULES)
def test_every_rule_compiles_and_keeps_the_text(name: str) -> None:
    tokenizer = opened(byte_level(pre=name, add_bos_token=False))
    text = "It's 12345,\r\n\n  I'LL  été 中文ア \t x² ÅB_c.d!? 한국 🏳️\u200d🌈 ।"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def cuts(name: str, text: str) -> list[str]:
    """The pieces of text between which a rule never merges."""
    document = json.loads(convert(byte_level(pre=name)))
    splits = document["pre_tokenizer"]["pretokenizers"][:-1]
    document["pre_tokenizer"]["pretokenizers"] = splits
    cutter = tokenizers.Tokenizer.from_str(json.dumps(document)).pre_tokenizer
    return [piece for piece, _ in cutter.pre_tokenize_str(text)]


def test_rules_cut_as_their_models_do() -> None:
    assert cuts("llama-bpe", "Ab 1234's  x\n\ny") == [
        "Ab",
        " ",
        "123",
        "4",
        "'s",
        " ",
        " x",
        "\n\n",
        "y",
    ]
    assert cuts("qwen2", "a 12!\n") == ["a", " ", "1", "2", "!\n"]
    assert cuts("smollm", "a 12  b") == ["a", " ", "1", "2", " ", " b"]
    assert cuts("gpt-2", "a 12  b") == ["a", " 12", " ", " b"]
    assert cuts("deepseek-coder", "if x:\n 12中") == ["if", " x", ":", "\n", " ", "1", "2", "中"]
    assert cuts("deepseek-v3", "1234 中文x") == ["123", "4", " ", "中文", "x"]
    assert cuts("gpt-4o", "HelloWorld's 1234") == ["Hello", "World's", " ", "123", "4"]
    assert cuts("tekken", "HelloWorld 12") == ["Hello", "World", " ", "1", "2"]


def test_unknown_rules_are_not_guessed() -> None:
    assert find_rule("kimi-k2") is None
    assert find_rule("") is None


@pytest.mark.parametrize("unknown", ["x", 0.5, [], True, -1, 10**6])
def test_an_unknown_token_that_is_no_id_is_none(unknown: Any) -> None:
    metadata = sentencepiece(unknown_token_id=unknown)
    assert json.loads(convert(metadata))["model"]["unk_token"] is None


def test_hostile_pieces_and_scores_are_refused() -> None:
    metadata = sentencepiece()
    scores = ["x"] * len(metadata["tokenizer.ggml.scores"])
    with pytest.raises(CheckpointError, match="scores holds something else than real numbers"):
        convert({**metadata, "tokenizer.ggml.scores": scores})
    metadata["tokenizer.ggml.tokens"][-1] = "a" * 10_000_000
    with pytest.raises(CheckpointError, match="a piece of 10000000 characters, over the limit"):
        convert(metadata)


def test_many_threads_encode_at_once() -> None:
    tokenizer = opened(byte_level(merges=("a b", "b c", "Ġ a")))
    texts = [f"{i} abc ab a {chr(200 + i)}" * 20 for i in range(8)]
    expected = [tokenizer.encode(text) for text in texts]
    wrong: list[int] = []

    def work(i: int) -> None:
        if any(tokenizer.encode(texts[i]) != expected[i] for _ in range(50)):
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_merges_may_be_pairs_or_text() -> None:
    document = json.loads(convert(byte_level(merges=("a b", "ab c"))))
    pairs = Tokenizer(json.dumps(document))
    document["model"]["merges"] = ["a b", "ab c"]
    assert Tokenizer(json.dumps(document)).encode("abcab") == pairs.encode("abcab") == [257, 256]


def test_truncation_and_padding_of_the_file_are_ignored() -> None:
    document = json.loads(convert(byte_level()))
    document["truncation"] = {
        "direction": "Right",
        "max_length": 2,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    assert len(Tokenizer(json.dumps(document)).encode("abcdef")) == 6


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": {"type": "BPE"}}', "null"])
def test_a_broken_tokenizer_is_one_clear_error(text: str) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        Tokenizer(text)
