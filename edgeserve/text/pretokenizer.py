"""How byte-level vocabularies cut text before merging, by the name a GGUF gives the rule.

A GGUF names its rule (`tokenizer.ggml.pre`) and does not carry it. Each rule is a list of
regular expressions as in the models' own tokenizer.json files, applied one after the other: the
matches and what lies between them become pieces of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LLAMA3 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}|{_TAIL}"
_QWEN2 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_SYMBOLS}|{_TAIL}"
_QWEN35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}"
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}"
)
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}"
)
_DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_TAIL}"
)
_LATIN = (
    r"A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7D"
    r"ᾀ-ᾴᾶ-ᾼ\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗ"
    r"Ａ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_HAN = r"[一-龥ࠀ-一가-퟿]+"


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to cut text, and what goes with it in the models that use it."""

    regexes: tuple[str, ...]
    nfc: bool = False  # text is normalised first
    whole_words: bool = False  # a piece that is a token is not merged (ignore_merges)
    bos: bool = False  # starts with BOS unless the file says otherwise


_RULES: dict[str, Rule] = {
    "default": Rule((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2": Rule((_GPT2,)),
    "starcoder": Rule((r"\p{N}", _GPT2)),
    "llama-bpe": Rule((_LLAMA3,), whole_words=True, bos=True),
    "dbrx": Rule((_LLAMA3,)),
    "glm4": Rule((_LLAMA3,), whole_words=True),
    "qwen2": Rule((_QWEN2,), nfc=True),
    "deepseek-r1-qwen": Rule((_QWEN2,)),
    "qwen35": Rule((_QWEN35,), nfc=True),
    "falcon": Rule((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    "deepseek-llm": Rule(
        (
            r"[\r\n]",
            rf"\s?[{_LATIN}]+",
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            _HAN,
            r"\p{N}+",
        )
    ),
    "deepseek-coder": Rule((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN, r"\p{N}")),
    "deepseek-v3": Rule((r"\p{N}{1,3}", r"[一-龥\u3040-ゟ゠-ヿ]+", _DEEPSEEK3)),
    "tekken": Rule((_TEKKEN,), whole_words=True, bos=True),
    "gpt-4o": Rule((_GPT4O,)),
    "bloom": Rule((r" ?[^(\s|.,!?…。，、।۔،)]+",)),
    "viking": Rule((r" ?[^(\s|.,!?…。，、।۔،)]+", r"\p{N}")),
    "seed-coder": Rule(
        (
            rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1}}"
            rf"| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_TAIL}",
        )
    ),
}
_SAME: dict[str, tuple[str, ...]] = {
    "gpt-2": (
        *("phi-2", "mpt", "olmo", "jais", "gigachat", "roberta-bpe", "jina-es", "jina-de"),
        *("jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "a.x-4.0", "mellum"),
        *("modern-bert", "trillion", "granite-docling", "exaone4"),
    ),
    "starcoder": (
        *("smollm", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
    ),
    "llama-bpe": (
        *("llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        "jina-v5-nano",
    ),
    "dbrx": ("smaug-bpe", "chatglm-bpe"),
    "qwen2": ("megrez",),
    "deepseek-r1-qwen": ("stablelm2", "hunyuan", "grok-2", "solar-open", "kormo", "f2llmv2"),
    "deepseek-v3": ("hunyuan-dense", "joyai-llm", "hy_v4"),
    "gpt-4o": ("llama4", "kanana2", "minimax-m2", "talkie"),
    "bloom": ("poro-chat", "gpt3-finnish"),
}


def find_rule(name: str) -> Rule | None:
    """The rule of that name, or None: a wrong cut would silently be another tokenizer."""
    for original, others in _SAME.items():
        if name in others:
            return _RULES[original]
    return _RULES.get(name)
