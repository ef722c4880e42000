"""A vocabulary as the grammar engine needs it. Made once per model; read by any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
from llguidance import LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

Encode = Callable[[str], list[int]]


class GuideTokenizer:
    """`pieces`: the exact bytes of each id, as long as the model's logits. `encode`: text to ids
    without added tokens; with it forced text becomes the tokens that the model knows it by.

    Building takes about 0.3 s for 150 thousand pieces; do it when the model loads, in a thread."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        special_ids: Iterable[int],
        eos_ids: Sequence[int],
        encode: Encode | None = None,
    ) -> None:
        if not eos_ids:
            raise ValueError("a model without an end-of-sequence token cannot follow a grammar")
        self.vocab = len(pieces)
        self.words = (self.vocab + 31) // 32
        self.eos_ids = tuple(eos_ids)
        self.pieces = pieces
        self.eos_mask = self.mask_of(eos_ids)
        special = sorted({*special_ids, *eos_ids})
        wrapper = _Wrapper(pieces, special, self.eos_ids[0], encode)
        # Without the slices that speed up long masks; they double the time this takes.
        self.plain = LLTokenizer(
            cast(TokenizerWrapper, wrapper),  # what the library calls of it
            n_vocab=self.vocab,
            eos_token=list(self.eos_ids),
            slices=[],
        )
        wrapper.greedy = self.plain.greedy_tokenize
        self._sliced: LLTokenizer | None = None

    @property
    def handle(self) -> LLTokenizer:
        """With slices, made at first use."""
        if self._sliced is None:
            self._sliced = self.plain.with_slices(LLTokenizer.json_slices())
        return self._sliced

    def mask_of(self, ids: Iterable[int]) -> NDArray[np.uint32]:
        """Bit words with these ids set."""
        bits = np.zeros(self.words * 32, dtype=np.uint8)
        bits[list(ids)] = 1
        return np.packbits(bits, bitorder="little").view(np.uint32)


class _Wrapper:
    """What `llguidance` asks of a tokenizer."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(
        self, pieces: Sequence[bytes], special: list[int], eos: int, encode: Encode | None
    ) -> None:
        self.tokens = list(pieces)
        self.special_token_ids = special
        self.eos_token_id = eos
        self.greedy: Callable[[str], list[int]] | None = None
        self._special = frozenset(special)
        self._encode = encode

    def __call__(self, text: str | bytes) -> list[int]:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        if self._encode is not None:
            ids = self._encode(text)
            # Not the tokens of this text: a tokenizer that puts a space before, or knows the name
            # of a special token in it.
            same = b"".join(self.tokens[i] for i in ids) == text.encode("utf-8")
            if same and self._special.isdisjoint(ids):
                return ids
        return self.greedy(text) if self.greedy is not None else []
