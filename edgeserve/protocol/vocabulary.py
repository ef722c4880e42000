"""Tokens as the wire shows them: exact bytes, and a readable name."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache


class Vocabulary:
    """Names of token ids. A token that is not whole UTF-8 is named `bytes:\\xe6\\x98`, as OpenAI
    does, so that different tokens never share a name."""

    def __init__(self, pieces: Sequence[bytes], special_ids: Set[int]) -> None:
        """`special_ids` are the tokens that give no text."""
        self._pieces = pieces
        self._special_ids = special_ids
        self.name = lru_cache(maxsize=4096)(self._name)

    def with_special(self) -> Vocabulary:
        """The same for answers that show special tokens (`skip_special_tokens` false)."""
        return Vocabulary(self._pieces, frozenset())

    def raw(self, token: int) -> bytes:
        return self._pieces[token] if 0 <= token < len(self._pieces) else b""

    def text_bytes(self, token: int) -> bytes:
        """What the token adds to the text: nothing when it is special."""
        return b"" if token in self._special_ids else self.raw(token)

    def _name(self, token: int) -> str:
        raw = self.raw(token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
